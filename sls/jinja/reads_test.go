package jinja_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/jinja"
)

func TestFindReads(t *testing.T) {
	get := func(name string, path []string, args []any) (jinja.Read, bool) {
		if name == "salt" && slices.Equal(path, []string{"pillar.get"}) && args[0] != nil {
			return jinja.Read{Name: "pillar", Path: strings.Split(args[0].(string), ":")}, true
		}
		return jinja.Read{}, false
	}
	for src, want := range map[string]string{
		"plain":                  "",
		"{{ a.b['c'] }}":         "a.b.c*",
		"{% set x = a.b %}":      "",
		"{% set x = a.b %}{{x}}": "a.b*",
		"{% set x = a %}{% set y = x.b %}{{ y.c }}":                                              "a.b.c*",
		"{% for i in [1] %}{{ x.y }}{% set x = a %}{% endfor %}":                                 "a.y*",
		"{% with x = a.b %}{{ x.c }}{% endwith %}":                                               "a.b.c*",
		"{% if a.b and not a.c %}{{ a.d }}{% endif %}":                                           "a.b a.c a.d*",
		"{% if a.b is defined %}1{% endif %}":                                                    "a.b",
		"{% if 'k' in a.b %}1{% endif %}":                                                        "a.b a.b.k",
		"{% if a.b == 'k' %}1{% endif %}":                                                        "a.b*",
		"{{ a[key] }}":                                                                           "a* key*",
		"{% for k, v in a.items() %}{{ k }}{{ v.x }}{% endfor %}":                                "a*",
		"{{ a.get('b', c.d).e }}":                                                                "a.b.e* c.d.e*",
		"{% do a.update({'k': b.c}) %}":                                                          "b.c*",
		"{% do a.setdefault('k', b) %}":                                                          "",
		"{{ (a.b or a.c).d }}":                                                                   "a.b a.b.d* a.c.d*",
		"{{ a.b|default({}) }}{{ a.c|json }}":                                                    "a.b* a.c*",
		"{% set x = a.b|d(c) %}{{ x.y }}":                                                        "a.b.y* c*",
		"{{ (x if a.t else y).z }}":                                                              "a.t x.z* y.z*",
		"{% macro m(p, q=a.b) %}{{ p.c }}{{ q }}{% endmacro %}{{ m(d) }}":                        "a.b* d* p.c* q*",
		"{% import 'f' as f %}{{ f.m(a.b) }}":                                                    "a.b* f*",
		"{% include a.b %}{% set z %}{{ a.c }}{% endset %}":                                      "a.b* a.c*",
		"{% import_yaml 'f' as f %}{% load_yaml as g %}{{ a.b }}{% endload %}{{ f.x }}{{ g.y }}": "a.b* f* f.x*",
		"{{ salt['pillar.get']('x:y', a.b).z }}":                                                 "a.b.z* pillar.x.y.z*",
		"{% raw %}{{ a }}{% endraw %}{# {{ b }} #}":                                              "",
		"{% set x = x.n %}{{ x.m }}":                                                             "x.m* x.n.m* x.n.n.m* x.n.n.n.m* x.n.n.n.n.m*",
		"{% if c %}{% set x = a.b %}{% endif %}{{ x.m }}":                                        "a.b.m* c x.m*",
	} {
		found, err := jinja.FindReads(src, jinja.ReadOptions{Formats: []string{"yaml"}, Called: get})
		require.NoError(t, err, src)
		var got []string
		for _, r := range found {
			s := strings.Join(append([]string{r.Name}, r.Path...), ".")
			if r.Whole {
				s += "*"
			}
			got = append(got, s)
		}
		slices.Sort(got)
		require.Equal(t, want, strings.Join(got, " "), src)
	}
	_, err := jinja.FindReads("{{ a", jinja.ReadOptions{})
	require.Error(t, err)
}
