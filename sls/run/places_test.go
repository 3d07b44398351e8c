package run

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/sls/compile"
)

// An error names the line that somebody wrote, in the file where they wrote it, whatever loops, macros, imports and
// includes made of it.
func TestErrorsNameTheSource(t *testing.T) {
	lib := "{% macro dirs(names) %}\n{% for n in names %}\n{{ n }}:\n  file.directory:\n    - nam: /{{ n }}\n{% endfor %}\n{% endmacro %}\n" +
		"{% macro yaml() %}\nq:\n  test.nop: []\n bad: x\n{% endmacro %}\n{% macro broken(d) %}\n{{ d.nope.none }}\n{% endmacro %}\n"
	for _, c := range []struct{ name, sls, at string }{
		{"an argument in a loop", "{% for i in [1, 2] %}\n\nf{{ i }}:\n  file.managed:\n    - name: /x{{ i }}\n    - contnts: y\n{% endfor %}", "app.sls:6     - contnts: y"},
		{"a function after a long loop", "{% for i in range(50) %}\nn{{ i }}:\n  test.nop: []\n{% endfor %}\nend:\n  test.npo: []\n", "app.sls:6   test.npo: []"},
		{"an argument of a macro", "{% from 'lib' import dirs %}\n{{ dirs(['a', 'b']) }}\n", "lib:5     - nam: /{{ n }}"},
		{"YAML of a macro", "{% import 'lib' as lib %}\nok:\n  test.nop: []\n{{ lib.yaml() }}\n", "lib:11  bad: x"},
		{"Jinja in a macro", "{% import 'lib' as lib %}\n\n{{ lib.broken({}) }}\n", "lib:14 {{ d.nope.none }}"},
		{"YAML of an included template", "a:\n  test.nop: []\n{% include 'part' %}\n", "part:3  c: d"},
		{"Jinja in an included SLS", "include:\n  - sub\n", "sub.sls:2 {{ nothing }}"},
		{"a function in an included SLS", "include:\n  - typo\n", "typo.sls:4   tset.nop: []"},
		{"YAML after a value of several lines", "{% set v = 'x\\n\\n\\n' %}\na:\n  test.nop:\n    - comment: '{{ v }}'\n b: c\n", "app.sls:5  b: c"},
		{"a requisite in a loop", "{% for i in [1, 2] %}\nf{{ i }}:\n  test.nop:\n    - require:\n      - test: g\n{% endfor %}", "app.sls:4     - require:"},
		{"an unfinished text ends with the file", "a:\n  test.nop:\n    - comment: \"x\n{% if true %}\n{% endif %}\n", "app.sls:5 {% endif %}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(t, map[string]string{"app.sls": c.sls, "lib": lib, "part": "b:\n  test.nop: []\n c: d\n",
				"sub.sls": "a:\n{{ nothing }}\n", "typo.sls": "{% if true %}\n\nx:\n  tset.nop: []\n{% endif %}\n"})
			_, err := compile.SLS(context.Background(), in, nil)
			at, ok := fault.PosOf(err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.at, (fault.Pos{File: at.File, Line: at.Line}).String()+" "+at.Text, "%v", err)
		})
	}
}

// So does a state that fails.
func TestFailedStatesNameTheSource(t *testing.T) {
	in := input(t, map[string]string{
		"app.sls": "{% from 'lib' import run %}\n{% for i in [0, 1] %}\n{{ run('c' ~ i, i) }}\n{% endfor %}\n",
		"lib":     "{% macro run(id, code) %}\n{{ id }}:\n  cmd.run:\n    - name: exit {{ code }}\n{% endmacro %}",
	})
	res, _ := apply(t, in)
	f := res.Failed()
	require.NotNil(t, f)
	require.Equal(t, "c1", f.ID)
	require.Equal(t, "lib", f.File)
	require.Equal(t, 3, f.Line)
}
