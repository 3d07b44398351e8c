package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

// What is carried is itself only if a copy of it is the same.
func TestCarry(t *testing.T) {
	list, dict := py.NewList(int64(1), "x"), py.NewDict("b", nil)
	ordered := py.NewDict("z", int64(1), "a", int64(2))
	ordered.KeepOrder()
	endless := py.NewDict()
	endless.SetStr("in", py.NewList(endless))
	wide := py.NewDict()
	for i := range 100 {
		require.NoError(t, wide.Set(int64(i), py.NewList()))
	}
	for name, c := range map[string]struct {
		in   any
		same bool
		want string // py.Repr, "" is that of in
		left []string
		err  string
	}{
		"plain":             {in: py.NewDict("l", list, "d", dict, "f", 1.5, "t", true), same: true},
		"a tuple":           {in: py.Tuple{int64(1), list}},
		"marked up":         {in: jinja.Markup("<b>"), want: "'<b>'"},
		"one value twice":   {in: py.NewList(list, list)},
		"one in its order":  {in: ordered},
		"many containers":   {in: wide},
		"no value":          {in: py.NewDict("f", func() {}, "g", int64(1)), want: "{'g': 1}", left: []string{"v:f"}},
		"one in itself":     {in: endless, err: "holds itself"},
		"no dict":           {in: (*py.Dict)(nil), want: "{}"},
		"a value that ends": {in: py.NewList(nil, []byte("x")), same: true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := py.NewDict("v", c.in, "w", "x")
			before := ""
			if c.err == "" {
				if before = c.want; before == "" {
					before = py.Repr(c.in)
				}
			}
			out, left, err := Carry(cfg)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.left, left)
			require.Equal(t, c.same, out == cfg)
			require.Equal(t, "{'v': "+before+", 'w': 'x'}", py.Repr(out))
			if v, _ := out.GetStr("v"); name == "one in its order" {
				require.False(t, v.(*py.Dict).KeepsOrder())
			}
			if v, _ := out.GetStr("v"); name == "one value twice" {
				l := v.(*py.List)
				require.NotSame(t, l.At(0), l.At(1))
			}
		})
	}
}

func BenchmarkCarry(b *testing.B) {
	cfg := py.NewDict()
	for _, k := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v"} {
		cfg.SetStr(k, "value")
		cfg.SetStr("d"+k, py.NewDict("x", "y", "z", int64(1)))
	}
	for b.Loop() {
		_, _, err := Carry(cfg)
		require.NoError(b, err)
	}
}
