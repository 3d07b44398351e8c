package jinja

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

// Each line of output is after the template line that must have made it.
func TestLines(t *testing.T) {
	lib := "{% macro two(a) %}{{ a }}:\n  two{% endmacro %}\n{% macro wrap() %}\n[\n{{ caller() }}\n]{% endmacro %}\n{% set text %}\nx\ny{% endset %}"
	for _, c := range []struct {
		name, main string
		want       []string
	}{
		{"text", "a\nb\n", []string{"main:1 a", "main:2 b"}},
		{"values", "a: {{ one }}\n{{ one }}: b\n", []string{"main:1 a: 1", "main:2 1: b"}},
		{"a value of several lines", "a\n{{ many }}\nb", []string{"main:1 a", "main:2 x", "main:2 y", "main:2 z", "main:3 b"}},
		{"loop", "{% for i in [1, 2] %}\nk{{ i }}:\n  v\n{% endfor %}\nend", []string{"main:2 k1:", "main:3   v", "main:2 k2:", "main:3   v", "main:5 end"}},
		{"trimmed tags", "a\n{%- if one %}\n\nb\n{%- endif %}\n{#-\n c\n-#}\n d", []string{"main:1 a", "main:4 bd"}},
		{"comment between", "a {# 1\n2 #} b\nc", []string{"main:1 a  b", "main:3 c"}},
		{"raw", "{% raw %}\na {{\n{% endraw %}b\n", []string{"main:2 a {{", "main:3 b"}},
		{"macro", "{% macro m(x) %}\n{{ x }}:\n  y\n{% endmacro %}{{ m(1) }}{{ m(2) }}\nz", []string{"main:2 1:", "main:3   y", "main:2 2:", "main:3   y", "main:5 z"}},
		{"imported macro", "a\n{% from 'lib' import two %}{{ two('k') }}\nb", []string{"main:1 a", "lib:1 k:", "lib:2   two", "main:3 b"}},
		{"filtered macro", "{% import 'lib' as l %}a:\n  {{ l.two('k')|indent(2) }}\nb", []string{"main:1 a:", "lib:1   k:", "lib:2     two", "main:3 b"}},
		{"macro in text", "{% import 'lib' as l %}- {{ l.two('k') }}", []string{"main:1 - k:", "lib:2   two"}},
		{"macro kept in a variable", "{% import 'lib' as l %}{% set s = l.two('k') %}\n{{ s }}", []string{"lib:1 k:", "lib:2   two"}},
		{"call block", "{% import 'lib' as l %}{% call l.wrap() %}\ninner\n{% endcall %}\nz", []string{"lib:4 [", "main:2 inner", "lib:6 ]", "main:4 z"}},
		{"set block", "{% set s %}\na\nb{% endset %}\nc\n{{ s }}", []string{"main:4 c", "main:2 a", "main:3 b"}},
		{"set block of an import", "{% import 'lib' as l %}\n{{ l.text }}", []string{"lib:8 x", "lib:9 y"}},
		{"filter block", "{% filter upper %}\na\nb\n{% endfilter %}\nc", []string{"main:2 A", "main:3 B", "main:5 c"}},
		{"include", "a\n{% include 'part' %}\nb", []string{"main:1 a", "part:1 p1", "part:2 p2", "main:3 b"}},
		{"include without context", "a\n{% include 'part' without context %}\nb", []string{"main:1 a", "part:1 p1", "part:2 p2", "main:3 b"}},
		{"extends", "{% extends 'base' %}\n{% block b %}\nmine\n{{ super() }}\n{% endblock %}", []string{"base:1 head", "main:3 mine", "base:3 theirs", "base:5 foot"}},
		{"recursive loop", "{% for x in tree recursive %}\n{{ x.n }}:\n{{ loop(x.c) }}\n{% endfor %}", []string{"main:2 1:", "main:2 2:"}},
		{"with", "{% with a = 1 %}\n{{ a }}\n{% endwith %}\nb", []string{"main:2 1", "main:4 b"}},
		{"line ends of Windows", "a\r\n{{ one }}\r\nb", []string{"main:1 a", "main:2 1", "main:3 b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := New(Options{KeepTrailingNewline: true, Loader: MapLoader{"main": c.main, "lib": lib, "part": "p1\np2", "base": "head\n{% block b %}\ntheirs\n{% endblock %}\nfoot"}})
			tmpl, err := env.Get(context.Background(), "main")
			require.NoError(t, err)
			vars := py.NewDict("one", int64(1), "many", "x\ny\nz", "tree",
				py.NewList(py.NewDict("n", int64(1), "c", py.NewList(py.NewDict("n", int64(2), "c", py.NewList())))))
			text, lines, err := tmpl.RenderLines(context.Background(), vars)
			require.NoError(t, err)
			plain, err := tmpl.Render(context.Background(), vars)
			require.NoError(t, err)
			require.Equal(t, plain, text)
			var got []string
			for i, l := range strings.Split(text, "\n") {
				s, ok := lines.Source(i + 1)
				require.True(t, ok)
				if strings.TrimSpace(l) != "" {
					got = append(got, fmt.Sprintf("%s:%d %s", s.Template, s.Line, l))
				}
			}
			require.Equal(t, c.want, got)
			require.Len(t, lines.at, strings.Count(text, "\n")+1)
		})
	}
}

func TestLinesOfNothing(t *testing.T) {
	tmpl, err := New(Options{}).Parse("t", "")
	require.NoError(t, err)
	_, lines, err := tmpl.RenderLines(context.Background(), nil)
	require.NoError(t, err)
	_, ok := lines.Source(1)
	require.False(t, ok)
}
