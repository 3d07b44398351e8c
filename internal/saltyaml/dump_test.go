package saltyaml_test

import (
	"encoding/json"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
)

// decodeValue reads a value as generate_dump.py writes it.
func decodeValue(t *testing.T, raw any, ids map[int]any) any {
	m, ok := raw.(map[string]any)
	if !ok {
		return raw
	}
	if s, ok := m["$i"].(string); ok {
		n, ok := new(big.Int).SetString(s, 10)
		require.True(t, ok)
		return py.Norm(n)
	}
	if s, ok := m["$f"].(string); ok {
		f, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		return f
	}
	id := int(m["id"].(float64))
	if v, ok := ids[id]; ok {
		return v
	}
	if items, ok := m["$l"].([]any); ok {
		l := py.NewList()
		ids[id] = l
		for _, i := range items {
			l.Append(decodeValue(t, i, ids))
		}
		return l
	}
	d := py.NewDict()
	ids[id] = d
	for _, kv := range m["$"].([]any) {
		p := kv.([]any)
		require.NoError(t, d.Set(decodeValue(t, p[0], ids), decodeValue(t, p[1], ids)))
	}
	return d
}

// TestDumpAgainstPyYAML compares every value and option with the real dumper's text.
func TestDumpAgainstPyYAML(t *testing.T) {
	raw, err := os.ReadFile("testdata/dumper.json")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	var options []struct {
		Flow                    *bool
		Sort, Unicode, Indented bool
	}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &options))
	require.Greater(t, len(lines), 500, "the suite is incomplete: run testdata/generate_dump.py")
	failed := 0
	for _, line := range lines[1:] {
		var c struct {
			Value any
			Out   []string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		v := decodeValue(t, c.Value, map[int]any{})
		for i, o := range options {
			opts := saltyaml.DumpOptions{KeepOrder: !o.Sort, ASCII: !o.Unicode}
			if o.Flow != nil {
				opts.Flow = map[bool]saltyaml.Flow{true: saltyaml.FlowStyle, false: saltyaml.BlockStyle}[*o.Flow]
			}
			got, err := saltyaml.Dump(v, opts)
			require.NoError(t, err)
			if got != c.Out[i] {
				if failed++; failed < 40 {
					t.Errorf("%s with %+v:\nwant %q\ngot  %q", py.Repr(v), opts, c.Out[i], got)
				}
			}
		}
	}
	require.Zero(t, failed)
}

func TestDumpLimits(t *testing.T) {
	l := py.NewList()
	for range 2000 {
		l = py.NewList(l)
	}
	_, err := saltyaml.Dump(l, saltyaml.DumpOptions{})
	require.True(t, py.IsErr(err, py.RecursionError))

	self := py.NewList(int64(1))
	self.Append(self)
	got, err := saltyaml.Dump(self, saltyaml.DumpOptions{})
	require.NoError(t, err)
	require.Equal(t, "&id001\n- 1\n- *id001\n", got)

	f := py.NewFunc("f", nil)
	got, err = saltyaml.Dump(py.NewDict("a", f, "t", py.Tuple{int64(1)}), saltyaml.DumpOptions{Flow: saltyaml.FlowStyle})
	require.NoError(t, err)
	require.Equal(t, "{a: NULL, t: [1]}\n", got)
	_, err = saltyaml.Dump(f, saltyaml.DumpOptions{Strict: true})
	require.ErrorContains(t, err, "cannot represent")
}

// FuzzDump checks that what is dumped reads back as the same value.
func FuzzDump(f *testing.F) {
	for _, c := range loadCases(f) {
		if c.Error == "" && len(c.In) < 200 {
			f.Add(c.In, uint8(0))
		}
	}
	f.Fuzz(func(t *testing.T, in string, o uint8) {
		doc, err := saltyaml.Parse("f", []byte(in), saltyaml.Options{MaxDepth: 50})
		if err != nil || strings.Contains(in, "pairs") { // tuples are read back as lists
			return
		}
		opts := saltyaml.DumpOptions{Flow: saltyaml.Flow(o % 3), KeepOrder: true, ASCII: o&4 != 0}
		out, err := saltyaml.Dump(doc.Value, opts)
		if err != nil {
			t.Fatal(err)
		}
		again, err := saltyaml.Parse("again", []byte(out), saltyaml.Options{MaxDepth: 60})
		if err != nil {
			t.Fatalf("%q dumps as %q: %v", in, out, err)
		}
		if a, b := py.Repr(doc.Value), py.Repr(again.Value); a != b {
			t.Fatalf("%s dumps as %q, which reads as %s", a, out, b)
		}
	})
}
