package py

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDictKeepsOrderAndUnifiesNumbers(t *testing.T) {
	d := NewDict("b", int64(1), "a", int64(2))
	require.NoError(t, d.Set(int64(1), "one"))
	require.NoError(t, d.Set(true, "true"))
	require.NoError(t, d.Set(1.0, "float"))
	require.NoError(t, d.Set(nil, "none"))
	require.NoError(t, d.Set(Tuple{int64(1), "x"}, "tuple"))
	require.Error(t, d.Set(NewList(), 1))
	require.Equal(t, "{'b': 1, 'a': 2, 1: 'float', None: 'none', (1, 'x'): 'tuple'}", Repr(d))
	v, ok := d.Get(Tuple{1.0, "x"})
	require.True(t, ok)
	require.Equal(t, "tuple", v)
	require.True(t, d.Delete("b"))
	require.False(t, d.Delete("b"))
	d.SetStr("b", "again")
	require.Equal(t, []any{"a", int64(1), nil, Tuple{int64(1), "x"}, "b"}, d.Keys())
}

func TestDictGrowsAndShrinks(t *testing.T) {
	d := NewDict()
	for i := range 1000 {
		require.NoError(t, d.Set(i, i))
	}
	for i := range 1000 {
		if i%10 != 3 {
			require.True(t, d.Delete(int64(i)))
		}
	}
	require.Equal(t, 100, d.Len())
	for i, k := range d.Keys() {
		require.Equal(t, int64(i*10+3), k)
		require.True(t, d.Has(k))
	}
	for _, k := range d.Keys() {
		require.True(t, d.Delete(k))
	}
	require.Equal(t, 0, d.Len())
	require.NoError(t, d.Set("x", 1))
	require.Equal(t, []any{"x"}, d.Keys())
}

func TestRepr(t *testing.T) {
	cyc := NewList(int64(1))
	cyc.Append(cyc)
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	for want, v := range map[string]any{
		"None": nil, "True": true, "-3": int64(-3), "1.0": 1.0, "1e+16": 1e16, "1e-05": 1e-5, "0.0001": 1e-4,
		"123456789012345.0": 123456789012345.0, "inf": math.Inf(1), "1.5e+300": 1.5e300, "-0.0": math.Copysign(0, -1),
		"'a'": "a", `"it's"`: "it's", `'a\'"'`: `a'"`, `'\n\t\\\x00\x7f'`: "\n\t\\\x00\x7f", `'é\xa0\u2028'`: "é\u00a0\u2028",
		"(1,)": Tuple{int64(1)}, "()": Tuple{}, "[1, 'a', None]": NewList(int64(1), "a", nil),
		"[1, [...]]": cyc, "{'a': {1: []}}": NewDict("a", NewDict(1, NewList())),
		"123456789012345678901234567890": huge, "range(0, 3)": &Range{0, 3, 1},
	} {
		require.Equal(t, want, Repr(v))
	}
	require.Equal(t, "a", Str("a"))
	require.Equal(t, "['a']", Str(NewList("a")))
}

func TestEqualAndCompare(t *testing.T) {
	require.True(t, Equal(int64(1), true))
	require.True(t, Equal(1.0, int64(1)))
	require.False(t, Equal("1", int64(1)))
	require.False(t, Equal(math.NaN(), math.NaN()))
	require.True(t, Equal(NewDict("a", 1.0, "b", nil), NewDict("b", nil, "a", int64(1))))
	require.False(t, Equal(NewList(int64(1)), Tuple{int64(1)}))
	require.False(t, Equal(int64(1<<53+1), float64(1<<53)))
	c, err := (*Ops)(nil).Compare(Tuple{int64(1), "b"}, Tuple{int64(1), "a"}, "<")
	require.NoError(t, err)
	require.Equal(t, 1, c)
	_, err = (*Ops)(nil).Compare(int64(1), "a", "<")
	require.EqualError(t, err, "TypeError: '<' not supported between instances of 'int' and 'str'")
}

func TestJSON(t *testing.T) {
	v := NewDict("b", NewList(int64(1), 1.5, nil, true), "a", "é\"\n😀", int64(3), NewDict(), "e", NewList())
	s, err := ToJSON(v, JSONOptions{})
	require.NoError(t, err)
	require.Equal(t, `{"b": [1, 1.5, null, true], "a": "\u00e9\"\n\ud83d\ude00", "3": {}, "e": []}`, s)
	s, err = ToJSON(NewDict("b", NewList(int64(1), int64(2)), "a", "é"), JSONOptions{Pretty: true, Indent: "  ", SortKeys: true, Unicode: true})
	require.NoError(t, err)
	require.Equal(t, "{\n  \"a\": \"é\",\n  \"b\": [\n    1,\n    2\n  ]\n}", s)
	_, err = ToJSON(NewDict(Tuple{}, 1), JSONOptions{})
	require.EqualError(t, err, "TypeError: keys must be str, int, float, bool or None, not tuple")
	cyc := NewList()
	cyc.Append(cyc)
	_, err = ToJSON(cyc, JSONOptions{})
	require.EqualError(t, err, "ValueError: Circular reference detected")

	back, err := FromJSON(`{"z": [1, 2.0, 1e3, 12345678901234567890], "a": {"b": null}, "z2": "x"}`)
	require.NoError(t, err)
	require.Equal(t, "{'z': [1, 2.0, 1000.0, 12345678901234567890], 'a': {'b': None}, 'z2': 'x'}", Repr(back))
	for _, bad := range []string{"", "{", "[1,]", "1 2", `{"a" 1}`} {
		_, err = FromJSON(bad)
		require.Error(t, err, bad)
	}
}

func TestDeepCopy(t *testing.T) {
	l := NewList(int64(1))
	l.Append(l, NewDict("l", l))
	c := DeepCopy(l).(*List)
	c.SetAt(0, int64(2))
	require.Equal(t, "[1, [...], {'l': [...]}]", Repr(l))
	require.Equal(t, "[2, [...], {'l': [...]}]", Repr(c))
}

// A copy of a dict of any size, also of one from which keys were removed, is equal and independent.
func TestDeepCopyOfDicts(t *testing.T) {
	for n := range 40 {
		d := NewDict()
		for i := range int64(n) {
			d.SetStr(fmt.Sprint("k", i), NewList(i))
		}
		for i := 0; i < n; i += 3 {
			if n%2 == 1 {
				require.True(t, d.Delete(fmt.Sprint("k", i)))
			}
		}
		d.SetStr("self", d)
		before, c := Repr(d), DeepCopy(d).(*Dict)
		require.Equal(t, before, Repr(c))
		self, ok := c.GetStr("self")
		require.True(t, ok)
		require.Same(t, c, self)
		for i := range n {
			v, ok := c.GetStr(fmt.Sprint("k", i))
			was, has := d.GetStr(fmt.Sprint("k", i))
			require.Equal(t, has, ok)
			if ok {
				require.Equal(t, Repr(was), Repr(v))
				v.(*List).Append("changed")
			}
			c.SetStr(fmt.Sprint("new", i), true)
			require.Equal(t, i%2 == 0 && has, i%2 == 0 && c.Delete(fmt.Sprint("k", i)))
		}
		require.Equal(t, before, Repr(d))
	}
}

func TestBudgetStopsExponentialValues(t *testing.T) {
	v := NewList("x")
	w := NewList("x")
	for range 60 {
		v = NewList(v, v)
		w = NewList(w, w)
	}
	o := NewOps(t.Context(), 1e6, 1<<20)
	_, err := o.Repr(v)
	require.True(t, IsErr(err, LimitError), err)
	o = NewOps(t.Context(), 1e6, 1<<20)
	_, err = o.Equal(v, w)
	require.True(t, IsErr(err, LimitError), err)
	o = NewOps(t.Context(), 1e6, 1<<20)
	_, err = o.ToJSON(v, JSONOptions{})
	require.True(t, IsErr(err, LimitError), err)
}

func TestMemoryIsChargedInTwoParts(t *testing.T) {
	const limit = 1 << 20
	o := NewOps(t.Context(), 1e9, limit)
	require.NoError(t, o.Alloc(limit/unmeasured))
	require.Zero(t, o.base, "the program's memory was looked at for little")
	require.NoError(t, o.Alloc(limit-limit/unmeasured))
	require.Zero(t, o.bytes+o.rest)
	require.NoError(t, NewOps(t.Context(), 1e9, limit).Alloc(limit))
	require.True(t, IsErr(NewOps(t.Context(), 1e9, limit).Alloc(limit+1), LimitError))
	require.True(t, IsErr(NewOps(t.Context(), 1e9, limit).Alloc(-1), LimitError))
}
