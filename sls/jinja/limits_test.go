package jinja

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each template tries to take all of the machine's time, memory or stack. TestHostileTemplates holds all to an error.
var hostile = map[string]string{
	"deep autoescape":      strings.Repeat("{% autoescape true %}", 100000),
	"escaping grows":       "{% set n = namespace(s='&' * 1000) %}{% autoescape true %}{% for i in range(60) %}{% set n.s = n.s|forceescape %}{% endfor %}{% endautoescape %}{{ n.s }}{{ x.y }}",
	"escaped and joined":   "{% set n = namespace(s='<' * 8) %}{% autoescape true %}{% for i in range(60) %}{% set n.s = n.s ~ ('<'|e) ~ n.s %}{% endfor %}{% endautoescape %}",
	"escaping a tree":      "{% set n = namespace(s=['<']) %}{% autoescape true %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}{% endautoescape %}",
	"fields of a format":   "{{ ('{0' ~ '.a' * 400000 ~ '}').format({}) }}{{ x.y }}",
	"keys of a format":     "{% set x = [] %}{% do x.append(x) %}{% for i in range(9999) %}{% set y = ('{0' ~ '[0]' * 9999 ~ '}').format(x) %}{% endfor %}",
	"loop without end":     "{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
	"growing list":         "{% set x = [1] %}{% for i in x %}{% do x.append(i) %}{% endfor %}",
	"doubling string":      "{% set n = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
	"doubling with +":      "{% set n = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
	"doubling list":        "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
	"string times":         "{{ 'x' * 10000000000 }}",
	"markup times":         "{{ ('x'|safe) * 10000000000 }}",
	"list times":           "{{ [0] * 10000000000 }}",
	"times overflows":      "{{ 'xxxx' * 9223372036854775807 }}",
	"power":                "{{ 9 ** (9 ** 9) }}",
	"power in a loop":      "{% set n = namespace(s=3) %}{% for i in range(99) %}{% set n.s = n.s * n.s %}{% endfor %}",
	"range":                "{{ range(100000000)|list }}",
	"recursive macro":      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
	"recursive caller":     "{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}",
	"recursive include":    "{% include 'main' %}",
	"recursive import":     "{% import 'main' as m %}",
	"recursive extends":    "{% extends 'main' %}",
	"recursive loop":       "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
	"recursive block":      "{% block a %}{{ self.a() }}{% endblock %}",
	"exponential macro":    "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(100) }}",
	"deep brackets":        "{{ " + strings.Repeat("(", 100000) + " }}",
	"deep lists":           "{{ " + strings.Repeat("[", 100000) + " }}",
	"deep not":             "{{ " + strings.Repeat("not ", 100000) + "1 }}",
	"deep minus":           "{{ " + strings.Repeat("-", 100000) + "1 }}",
	"deep if":              strings.Repeat("{% if 1 %}", 100000),
	"deep inline else":     "{{ " + strings.Repeat("1 if 0 else ", 50000) + "1 }}",
	"long sum":             "{{ 1" + strings.Repeat("+1", 400000) + " }}",
	"long chain":           "{{ a" + strings.Repeat(".b", 400000) + " }}",
	"long filters":         "{{ a" + strings.Repeat("|e", 400000) + " }}",
	"long calls":           "{{ a" + strings.Repeat("()", 400000) + " }}",
	"printf width":         "{{ '%1000000000d' % 1 }}",
	"printf star":          "{{ '%*d' % (1000000000, 1) }}",
	"printf precision":     "{{ '%.1000000000f' % 1.5 }}",
	"format width":         "{{ '{:1000000000}'.format('x') }}",
	"format precision":     "{{ '{:.1000000000f}'.format(1.5) }}",
	"center":               "{{ 'x'.center(1000000000) }}",
	"center filter":        "{{ 'x'|center(1000000000) }}",
	"zfill":                "{{ 'x'.zfill(1000000000) }}",
	"ljust":                "{{ 'x'.ljust(1000000000) }}",
	"expandtabs":           "{{ '\\t\\t\\t'.expandtabs(1000000000) }}",
	"replace":              "{{ ('x' * 100000).replace('x', 'y' * 100000) }}",
	"replace filter":       "{{ ('x' * 100000)|replace('', 'y' * 100000) }}",
	"join":                 "{{ range(99999)|join('y' * 10000) }}",
	"str join":             "{{ ('x' * 10000).join(['a'] * 100000) }}",
	"indent":               "{{ ('a\\n' * 100000)|indent(100000) }}",
	"indent width":         "{{ 'a\\nb'|indent(10000000000) }}",
	"batch fill":           "{{ [1]|batch(1000000000, 0)|list }}",
	"slice":                "{{ [1]|slice(1000000000)|list }}",
	"tojson indent":        "{{ [[[[1]]]]|tojson(indent=1000000000) }}",
	"nested value":         "{% set n = namespace(s=[]) %}{% for i in range(99999) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s }}",
	"nested value equal":   "{% set n = namespace(s=[], t=[]) %}{% for i in range(99999) %}{% set n.s = [n.s] %}{% set n.t = [n.t] %}{% endfor %}{{ n.s == n.t }}",
	"exponential value":    "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}",
	"exponential equal":    "{% set n = namespace(s=[1], t=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% set n.t = [n.t, n.t] %}{% endfor %}{{ n.s == n.t }}",
	"exponential json":     "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s|tojson }}",
	"exponential pprint":   "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s|pprint }}",
	"exponential key":      "{% set n = namespace(s=(1,)) %}{% for i in range(99) %}{% set n.s = (n.s, n.s) %}{% endfor %}{{ {n.s: 1} }}",
	"self json":            "{% set x = [] %}{% do x.append(x) %}{{ x|tojson }}",
	"self pprint":          "{% set x = [] %}{% do x.append(x) %}{{ x|pprint }}",
	"self equal":           "{% set x = [] %}{% do x.append(x) %}{% set y = [] %}{% do y.append(y) %}{{ x == y }}",
	"namespace of itself":  "{% set n = namespace() %}{% set n.n = n %}{{ n }}{{ undefined_thing.x }}",
	"endless map":          "{% set n = namespace(m=[1]) %}{% for i in range(9999) %}{% set n.m = n.m|map('string') %}{% endfor %}{{ n.m|list }}{{ 1/0 }}",
	"much output":          "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
	"much captured output": "{% set x %}{% for i in range(99999) %}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endset %}",
	"wordwrap":             "{{ ('x ' * 1000000)|wordwrap(1) }}",
	"urlize":               "{{ ('http://a.b ' * 1000000)|urlize }}",
	"striptags":            "{% for i in range(9999) %}{% set x = ('<' * 3000000)|striptags|striptags|striptags|striptags %}{% endfor %}",
	"sort":                 "{% for i in range(10000) %}{% set x = range(99999)|sort(reverse=true) %}{% endfor %}",
	"contains":             "{% set x = range(99999)|list %}{% for i in range(99999) %}{{ -1 in x }}{% endfor %}",
	"list index":           "{% set x = range(99999)|list %}{% for i in range(99999) %}{% set y = x.index(99998) %}{% endfor %}",
	"insert at front":      "{% set x = [] %}{% for j in range(10) %}{% for i in range(99999) %}{% do x.insert(0, 1) %}{% endfor %}{% endfor %}",
	"remove at front":      "{% set x = range(99999)|list %}{% for j in range(99) %}{% for i in range(99999) %}{% do x.remove(x[0]) %}{% do x.append(1) %}{% endfor %}{% endfor %}",
	"string index":         "{% set x = 'é' * 900000 %}{% for i in range(99999) %}{% set y = x[-1] %}{% endfor %}",
	"string find":          "{% set x = 'ab' * 900000 %}{% for i in range(99999) %}{% set y = x.find('bb') %}{% endfor %}",
	"split":                "{% for i in range(99) %}{% set x = ('a ' * 1000000).split() %}{% endfor %}",
	"float power":          "{{ 10.0 ** 400 }}",
	"big str":              "{{ 10 ** 5000 }}",
	"big literal":          "{{ " + strings.Repeat("9", 5000) + " }}",
	"unpack":               "{% for a, b in [range(99999)] %}{% endfor %}",
	"lipsum":               "{{ lipsum(1000000) }}",
	"wordcount of a text":  "{% set s = 'a ' * 750000 %}{% for i in range(99999) %}{% set x = s|wordcount %}{% endfor %}",
	"length of a text":     "{% set s = 'é' * 750000 %}{% for i in range(99999) %}{% set x = s|length %}{% endfor %}",
	"int of a text":        "{% set s = 'a' * 3000000 %}{% for i in range(99999) %}{% set x = s|int %}{% endfor %}",
	"startswith":           "{% set s = 'é' * 1500000 %}{% for i in range(99999) %}{% set x = s.startswith('x') %}{% endfor %}",
	"mapped startswith":    "{% set s = ['é' * 1500000] * 99999 %}{% set x = s|map('length')|list %}",
	"a text is upper":      "{% set s = 'A' * 1500000 %}{% for i in range(99999) %}{% set x = s is upper %}{% endfor %}",
	"texts are equal":      "{% set s = 'A' * 1500000 %}{% set t = 'A' * 1500000 %}{% for i in range(99999) %}{% for j in range(999) %}{% set x = s == t %}{% endfor %}{% endfor %}",
	"joining a list":       "{% set x = ['abc'] * 99999 %}{% for i in range(99999) %}{% set y = x|join %}{% set y = ''.join(x) %}{% endfor %}",
	"json of a text":       "{% set x = 'é' * 1000000 %}{% for i in range(99999) %}{% set y = x|tojson %}{% endfor %}",
	"a text is copied":     "{% set x = 'a' * 3000000 %}{% for i in range(99999) %}{% set y = x ~ 'b' %}{% endfor %}",
	"sorting of a text":    "{% set s = 'A' * 1500000 %}{% for i in range(99999) %}{% set x = [s]|sort %}{% endfor %}",
}

// What an honest template may need, and what it used to fail for: memory counts while it is in use.
func TestHonestTemplatesPass(t *testing.T) {
	for name, src := range map[string]string{
		"a list that grows":  "{% set ns = namespace(l=[]) %}{% for i in range(3000) %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.l|length }}",
		"a text that grows":  "{% set ns = namespace(s='') %}{% for i in range(10000) %}{% set ns.s = ns.s ~ 'abcdefghij' %}{% endfor %}{{ ns.s|length }}",
		"a long text grows":  "{% set ns = namespace(s='') %}{% set x = 'a' * 100 %}{% for i in range(10000) %}{% set ns.s = ns.s ~ x %}{% endfor %}{{ ns.s|length }}",
		"long lines added":   "{% set ns = namespace(s='') %}{% set x = 'a' * 100 %}{% for i in range(10000) %}{% set ns.s = ns.s + x ~ '\\n' %}{% endfor %}{{ ns.s|length }}",
		"many texts dropped": "{% for i in range(2000) %}{% set x = 'x' * 50000 %}{% endfor %}1",
		"a large template":   strings.Repeat("line of a file that is a template\n", 65000),
	} {
		tmpl, err := New(Options{}).Parse("x", src)
		require.NoError(t, err, name)
		_, err = tmpl.Render(t.Context(), nil)
		require.NoError(t, err, name)
	}
}

func TestTimeStopsARender(t *testing.T) {
	tmpl, err := New(Options{Limits: Limits{Fuel: 1e15, Time: 1}}).Parse("x", hostile["loop without end"])
	require.NoError(t, err)
	_, err = tmpl.Render(t.Context(), nil)
	require.ErrorContains(t, err, "evaluation took longer than 1ns")
}

func TestDeadlineStopsARender(t *testing.T) {
	tmpl, err := New(Options{}).Parse("x", "{% for i in range(99999) %}{% for j in range(99999) %}{{ i }}{% endfor %}{% endfor %}")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tmpl.Render(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestLoopControlsNeedALoop(t *testing.T) {
	for _, src := range []string{"{% break %}", "{% if 1 %}{% continue %}{% endif %}",
		"{% for i in x %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}"} {
		_, err := New(Options{}).Parse("x", src)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, ClassSyntax, e.Class)
	}
}
