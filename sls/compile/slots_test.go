package compile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

func TestParseSlot(t *testing.T) {
	for _, c := range []struct {
		text, fun, path, tail string
		args                  []any
		kw                    *py.Dict
	}{
		{text: "__slot__:salt:cmd.run(echo a, python_shell=True)", fun: "cmd.run", args: []any{"echoa"}, kw: py.NewDict("python_shell", "True")},
		{text: `__slot__:salt:cmd.run("echo a, b")`, fun: "cmd.run", args: []any{"echo a, b"}},
		{text: `__slot__:salt:test.echo('it''s \'x\'')`, fun: "test.echo", args: []any{"its 'x'"}},
		{text: "__slot__:salt:a.b({x: [1, 2]}, (y))", fun: "a.b", args: []any{"{x:[1,2]}", "(y)"}},
		{text: `__slot__:salt:a.b().c.d ~ " tail"`, fun: "a.b", path: "c.d", tail: " tail"},
		{text: "__slot__:salt:a.b(x) ~ /e ~ f", fun: "a.b", args: []any{"x"}, tail: "/e ~ f"},
		{text: "__slot__:salt:a.b(x"}, {text: "__slot__:salt:a.b"}, {text: "__slot__:salt:a.b([)"}, {text: "__slot__:salt"},
		{text: "__slot__:runner:a.b(x)"}, {text: "x__slot__:salt:a.b(x)"},
	} {
		s, ok, err := ParseSlot(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.fun != "", ok, c.text)
		if !ok {
			continue
		}
		kw := c.kw
		if kw == nil {
			kw = py.NewDict()
		}
		require.Equal(t, []any{c.fun, c.path, c.tail, c.args, kw.Len()}, []any{s.Fun, s.Path, s.Tail, s.Args, s.Kw.Len()}, c.text)
		require.True(t, py.Equal(kw, s.Kw), c.text)
	}
	_, _, err := ParseSlot(`__slot__:salt:a.b("x)`)
	require.EqualError(t, err, "No closing quotation")
}
