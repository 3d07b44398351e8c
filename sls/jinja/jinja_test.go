package jinja

import (
	"context"
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
		{"salt", []string{"cmd.run"}, "salt['cmd.run']", 1, true},
		{"pillar", []string{"get"}, "pillar.get", 2, true},
		{"grains", []string{"os"}, "grains['os']", 2, false},
		{"salt", []string{"test", "ping"}, "salt.test.ping", 2, false},
	}, tmpl.Calls())
}
