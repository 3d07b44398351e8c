package render_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

// A template of a project must not hold the server's processor: each ends by the price of what it does.
func TestHostileFiltersEnd(t *testing.T) {
	for name, src := range map[string]string{
		"regex_search":        "{% set s = 'a' * 3000000 %}{% for i in range(9999) %}{% set x = s|regex_search('(a|b)*c') %}{% endfor %}",
		"regex that explodes": "{% set s = 'a' * 40 ~ '!' %}{% for i in range(9999) %}{% set x = s|regex_search('(?=(a+)+$)') %}{% endfor %}",
		"regex on a long one": "{% set s = 'a' * 3000000 %}{% set x = s|regex_search('(?=b)') %}",
		"regex_replace":       "{% set s = 'a' * 100000 %}{% for i in range(9999) %}{% set x = s|regex_replace('a', 'b' * 1000) %}{% endfor %}",
		"hashes":              "{% set s = 'a' * 3000000 %}{% for i in range(9999) %}{% set x = s|sha512 %}{% endfor %}",
		"yaml":                "{% set s = ['a b'] * 100000 %}{% for i in range(9999) %}{% set x = s|yaml %}{% endfor %}",
		"permutations":        "{% set x = range(100)|permutations|list %}",
		"hosts":               "{% set x = '10.0.0.0/8'|network_hosts %}",
		"hosts of version 6":  "{% set x = 'fe80::/16'|network_hosts %}",
		"product":             "{% for x in range(99999)|product(repeat=9) %}{% endfor %}",
		"product repeated":    "{% set x = [1]|product(repeat=1000000000) %}",
		// As many rounds as take seconds: what they write out of lists, break into lines or look through is charged, too.
		"e of a list":      "{% set s = ['ab'] * 50000 %}{% for i in range(2000) %}{% set x = s|e %}{% endfor %}",
		"e":                "{% set s = '&' * 400000 %}{% for i in range(2000) %}{% set x = s|e %}{% endfor %}",
		"safe of a list":   "{% set s = range(99999)|list %}{% for i in range(2000) %}{% set x = s|safe %}{% endfor %}",
		"format of a list": "{% set s = ['ab'] * 50000 %}{% for i in range(2000) %}{% set x = s|format %}{% endfor %}",
		"replace":          "{% set s = 'a' * 1500000 %}{% for i in range(300) %}{% set x = s|replace('a', 'b') %}{% endfor %}",
		"reverse":          "{% set s = 'a' * 1500000 %}{% for i in range(300) %}{% set x = s|reverse %}{% endfor %}",
		"min":              "{% set s = range(99999)|list %}{% for i in range(2000) %}{% set x = s|min %}{% endfor %}",
		"indent":           "{% set s = 'a\n' * 500000 %}{% for i in range(300) %}{% set x = s|indent(2) %}{% endfor %}",
		"striptags":        "{% set s = '&' * 400000 %}{% for i in range(1000) %}{% set x = s|striptags %}{% endfor %}",
		"pprint":           "{% set s = 'a ' * 700000 %}{% for i in range(50) %}{% set x = s|pprint %}{% endfor %}",
		"split":            "{% set s = 'x' * 1500000 %}{% for i in range(150) %}{% set x = s.split() %}{% endfor %}",
		"swapcase":         "{% set s = 'x' * 1500000 %}{% for i in range(30) %}{% set x = s.swapcase() %}{% endfor %}",
		"translate":        "{% set s = 'x' * 1500000 %}{% for i in range(100) %}{% set x = s.translate({120: 'y'}) %}{% endfor %}",
		"strip":            "{% set s = 'x' * 1500000 %}{% for i in range(200) %}{% set x = s.strip('x') %}{% endfor %}",
		"expandtabs":       "{% set s = 'x' * 1500000 %}{% for i in range(200) %}{% set x = s.expandtabs() %}{% endfor %}",
		"pprint of a list": "{% set s = ['ab'] * 50000 %}{% for i in range(300) %}{% set x = s|pprint %}{% endfor %}",
	} {
		_, err := newRenderer().Text(t.Context(), "x", src, py.NewDict())
		var e *jinja.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, jinja.ClassLimit, e.Class, "%s: %v", name, err)
	}
}

func TestCancelStopsARender(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newRenderer().Text(ctx, "x", "{% set s = 'a' * 3000000 %}{% for i in range(9999) %}{% set x = s|regex_search('b') %}{% endfor %}", py.NewDict())
	require.ErrorIs(t, err, context.Canceled)
}
