package jinja

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

func TestRenderGreets(t *testing.T) {
	tmpl, err := New(Options{}).Parse("hello", "{% for n in names %}Hello {{ n|title }}!{{ ', ' if not loop.last }}{% endfor %}")
	require.NoError(t, err)
	out, err := tmpl.Render(context.Background(), py.NewDict("names", py.NewList("ada", "bob")))
	require.NoError(t, err)
	require.Equal(t, "Hello Ada!, Hello Bob!", out)
}

func TestErrorNamesThePlaceAndNeverAValue(t *testing.T) {
	env := New(Options{StrictUndefined: true, Loader: MapLoader{
		"lib":  "{% macro m(x) %}\n{{ x + 1 }}{% endmacro %}",
		"main": "{% from 'lib' import m %}\n\n{{ m(secret) }}",
	}})
	tmpl, err := env.Get(t.Context(), "main")
	require.NoError(t, err)
	_, err = tmpl.Render(t.Context(), py.NewDict("secret", "hunter2"))
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "lib", e.Template)
	require.Equal(t, 2, e.Line)
	require.Equal(t, "TypeError", e.Class)
	require.Equal(t, []Pos{{"main", 3}}, e.Stack)
	require.NotContains(t, err.Error(), "hunter2")
	f := e.Fault("render")
	require.Equal(t, fault.Failed, f.Kind)
	require.Equal(t, fault.Pos{File: "lib", Line: 2}, f.At)
}

func TestCallsListsStaticChains(t *testing.T) {
	tmpl, err := New(Options{}).Parse("x", "{{ salt['cmd.run']('ls') }}\n{% set a = pillar.get('x', grains['os']) %}{{ salt.test.ping }}")
	require.NoError(t, err)
	require.Equal(t, []Call{
		{"salt", []string{"cmd.run"}, "salt['cmd.run']", 1, true, true},
		{"pillar", []string{"get"}, "pillar.get", 2, true, true},
		{"grains", []string{"os"}, "grains['os']", 2, false, true},
		{"salt", []string{"test", "ping"}, "salt.test.ping", 2, false, true},
	}, tmpl.Calls())
}

func TestCallsTellsWhatIsAlwaysRendered(t *testing.T) {
	for src, want := range map[string]string{
		"{% set x = y or a.b %}{{ c }}":                                           "y c",
		"{% if a %}{{ b }}{% elif c %}{{ d }}{% else %}{{ e }}{% endif %}{{ f }}": "a f",
		"{% for x in a %}{{ b }}{% endfor %}":                                     "a",
		"{{ b if a else c }}":                                                     "a",
		"{% macro m(x=a) %}{{ b }}{% endmacro %}{{ m(c) }}":                       "m c",
		"{% with x = a %}{{ b|upper }}{% endwith %}":                              "a b",
		"{% extends 'x' %}{{ a }}":                                                "",
	} {
		tmpl, err := New(Options{}).Parse("x", src)
		require.NoError(t, err)
		var got []string
		for _, c := range tmpl.Calls() {
			if c.Always {
				got = append(got, c.Expr)
			}
		}
		require.Equal(t, want, strings.Join(got, " "), src)
	}
}

// Errors must not show what a variable holds, wherever the value is.
func TestErrorsHideValues(t *testing.T) {
	const secret = "hunter2"
	for _, src := range []string{
		"{{ d[s].x }}", "{{ d[s]() }}", "{{ [d]|map(attribute=s)|map('upper')|list }}{{ ([d]|map(attribute=s)|first).x }}",
		"{{ d.pop(s) }}", "{{ s|int + s }}", "{{ [1]|map(s)|list }}", "{{ [1]|select(s)|list }}", "{{ ('%(' ~ s ~ ')s') % d }}",
		"{{ ('{' ~ s ~ '}').format() }}", "{{ ('{0.' ~ s ~ '}').format(1) }}", "{{ s.index('q') }}", "{{ [1].index(s) }}",
		"{{ 1|default(**{s: 1}) }}", "{% macro m() %}{% endmacro %}{{ m(**{s: 1}) }}", "{{ range(**{s: 1}) }}", "{{ s() }}",
		"{% for a, b in [s] %}{% endfor %}", "{{ s / 2 }}", "{{ -s }}", "{{ 1 < s }}", "{{ s|round }}", "{{ s|filesizeformat }}",
		"{{ 1|round(1, s) }}", "{{ d|dictsort(by=s) }}", "{{ {s: 1}|xmlattr(1, 2) }}", "{{ {s ~ ' ': 1}|xmlattr }}",
		"{{ 'x'|urlize(extra_schemes=[s]) }}", "{{ '%d' % s }}", "{{ '{:d}'.format(s) }}", "{{ dict(s) }}", "{{ d|attr(s) + 1 }}",
	} {
		tmpl, err := New(Options{StrictUndefined: true}).Parse("x", src)
		require.NoError(t, err, src)
		_, err = tmpl.Render(t.Context(), py.NewDict("s", secret, "d", py.NewDict("a", secret)))
		require.Error(t, err, src)
		require.NotContains(t, err.Error(), secret, src)
	}
}

func TestTemplatesAreSharedBetweenRenders(t *testing.T) {
	env := New(Options{Loader: MapLoader{
		"lib":  "{% set l = [] %}{% macro m(x) %}{% do l.append(x) %}{{ l|length }}{% endmacro %}",
		"main": "{% import 'lib' as lib %}{% for i in range(n) %}{{ lib.m(i) }}{% endfor %}",
	}})
	done := make(chan string)
	for range 8 {
		go func() {
			tmpl, err := env.Get(context.Background(), "main")
			if err != nil {
				done <- err.Error()
				return
			}
			out, err := tmpl.Render(context.Background(), py.NewDict("n", int64(5)))
			if err != nil {
				out = err.Error()
			}
			done <- out
		}()
	}
	for range 8 {
		require.Equal(t, "12345", <-done)
	}
}

// BenchmarkLine renders a line that reads the context once: what any render takes, however little it does.
func BenchmarkLine(b *testing.B) {
	tmpl, err := New(Options{}).Parse("line", "port: {{ port }}\n")
	require.NoError(b, err)
	vars := py.NewDict("port", int64(8080))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(b.Context(), vars); err != nil {
			b.Fatal(err)
		}
	}
}

// An overlay sees what it is based on, and changes nothing of it.
func TestOverlay(t *testing.T) {
	base := New(Options{
		Filters: map[string]FilterFunc{"twice": func(_ *Context, v any, _ []any, _ *py.Dict) (any, error) { return v.(string) + v.(string), nil }},
		Globals: map[string]any{"a": "base", "b": "base"}, Loader: MapLoader{"x": "of base"}, StrictUndefined: true,
	})
	over := base.Overlay(MapLoader{"x": "of the overlay"}, map[string]any{"b": "over", "c": "over"})
	for _, c := range []struct {
		env       *Environment
		src, want string
	}{
		{over, "{{ a }} {{ b|twice }} {{ c }} {% include 'x' %}", "base overover over of the overlay"},
		{base, "{{ a }} {{ b|twice }} {{ c is defined }} {% include 'x' %}", "base basebase False of base"},
		{over, "{% include 'x' %}", "of the overlay"},
	} {
		tpl, err := c.env.Parse("t", c.src)
		require.NoError(t, err)
		got, err := tpl.Render(t.Context(), py.NewDict())
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	tpl, err := over.Parse("t", "{{ missing }}")
	require.NoError(t, err)
	_, err = tpl.Render(t.Context(), py.NewDict())
	require.Error(t, err)
}
