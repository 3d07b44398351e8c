package jinja

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/py"
)

// getter reads something off an item.
type getter func(v any) (any, error)

// attrParts splits an attribute path; digits are list indexes.
func attrParts(attr any) []any {
	switch x := attr.(type) {
	case nil:
		return nil
	case string:
		var out []any
		for _, p := range strings.Split(x, ".") {
			if n, err := strconv.ParseInt(p, 10, 62); err == nil && p[0] != '+' && p[0] != '-' {
				out = append(out, n)
			} else {
				out = append(out, p)
			}
		}
		return out
	}
	return []any{attr}
}

// attrGetter reads an attribute path off an item. dflt, where not nil, replaces what is undefined; fold ignores case.
func attrGetter(c *Context, attr, dflt any, fold bool) (getter, error) {
	parts := attrParts(plain(attr))
	s, isStr := plain(attr).(string)
	literal := isStr && c.inSource(s)
	return func(v any) (any, error) {
		for _, p := range parts {
			var err error
			if v, err = c.rt.getItem(v, p, literal); err != nil {
				return nil, err
			}
			if dflt != nil && isUndefined(v) {
				v = dflt
			}
		}
		if fold {
			if err := c.rt.ops.Read(v); err != nil {
				return nil, err
			}
			return foldCase(v), nil
		}
		return v, nil
	}, nil
}

func foldCase(v any) any {
	switch x := v.(type) {
	case string:
		return py.Lower(x)
	case Markup:
		return py.Lower(string(x))
	}
	return v
}

// multiGetter is attrGetter for several paths, separated by commas: it gives a list.
func multiGetter(c *Context, attr any, fold bool) (getter, error) {
	attrs := []any{attr}
	if s, ok := plain(attr).(string); ok {
		attrs = attrs[:0]
		for _, a := range strings.Split(s, ",") {
			attrs = append(attrs, a)
		}
	}
	gets := make([]getter, len(attrs))
	for i, a := range attrs {
		var err error
		if gets[i], err = attrGetter(c, a, nil, fold); err != nil {
			return nil, err
		}
	}
	return func(v any) (any, error) {
		out := make([]any, len(gets))
		for i, g := range gets {
			var err error
			if out[i], err = g(v); err != nil {
				return nil, err
			}
		}
		return py.ListOf(out), nil
	}, nil
}

func truthArg(v any, dflt bool) (bool, error) { return py.TruthOf(or(v, dflt)) }

// generator wraps a function that makes values when they are first asked for, as Python's generators do.
func generator(next func() (any, bool, error)) any { return py.IterFunc(next) }

// Generator returns a generator for filters of other packages; held are the values that next works on.
func Generator(next func() (any, bool, error), held ...any) any { return generator(next) }

// lazy returns a generator over a slice that is computed at the first Next.
func lazy(compute func() ([]any, error)) any {
	var it py.Iterator
	return generator(func() (any, bool, error) {
		if it == nil {
			s, err := compute()
			if err != nil {
				return nil, false, err
			}
			it = py.NewIter(s)
		}
		return it.Next()
	})
}

func sequenceFilters(m map[string]FilterFunc) {
	length := func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("len", args, kw, 0); err != nil {
			return nil, err
		}
		n, err := c.rt.ops.Len(v)
		return int64(n), err
	}
	m["length"], m["count"] = length, length
	m["list"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("list", args, kw, 0); err != nil {
			return nil, err
		}
		return c.rt.ops.List(v)
	}
	m["first"] = filterFirst
	m["last"] = filterLast
	m["random"] = filterRandom
	m["reverse"] = filterReverse
	m["sort"] = filterSort
	m["dictsort"] = filterDictsort
	m["unique"] = filterUnique
	m["min"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) { return minMax(c, v, args, kw, "<") }
	m["max"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) { return minMax(c, v, args, kw, ">") }
	m["groupby"] = filterGroupby
	m["batch"] = filterBatch
	m["slice"] = filterSlice
	m["items"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("items", args, kw, 0); err != nil {
			return nil, err
		}
		return lazy(func() ([]any, error) {
			if isUndefined(v) {
				return nil, nil
			}
			if !isMapping(v) {
				return nil, py.Errorf(py.TypeError, "Can only get item pairs from a mapping.")
			}
			return pairs(c, v)
		}), nil
	}
}

// pairs returns the items of a mapping, as tuples.
func pairs(c *Context, v any) ([]any, error) {
	if u, ok := v.(*undefined); ok {
		return nil, u.Fail()
	}
	if !isMapping(v) {
		return nil, py.Errorf(py.AttributeError, "'%s' object has no attribute 'items'", py.TypeName(v))
	}
	d, err := c.rt.ops.AsDict(v)
	if err != nil {
		return nil, err
	}
	if err := c.rt.ops.Alloc(96 * d.Len()); err != nil {
		return nil, err
	}
	out := make([]any, 0, d.Len())
	d.Range(func(k, val any) bool {
		out = append(out, py.Tuple{k, val})
		return true
	})
	return out, c.rt.ops.Step(d.Len())
}

func filterFirst(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	if _, err := params("first", args, kw, 0); err != nil {
		return nil, err
	}
	it, err := c.rt.ops.Iter(v)
	if err != nil {
		return nil, err
	}
	e, ok, err := it.Next()
	if err != nil {
		return nil, err
	}
	if !ok {
		return c.rt.env.undefinedHint("No first item, sequence was empty."), nil
	}
	return e, nil
}

// reversed is reversed(v), which needs a sequence.
func reversed(c *Context, v any) ([]any, error) {
	switch x := v.(type) {
	case *undefined:
		if err := x.refuse(); err != nil {
			return nil, err
		}
		return nil, nil
	case py.Iterator:
		if _, ok := v.(py.Sizer); !ok {
			return nil, py.Errorf(py.TypeError, "'%s' object is not reversible", py.TypeName(v))
		}
	}
	s, err := c.rt.ops.List(v)
	if err != nil {
		return nil, err
	}
	items := s.Items()
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return items, nil
}

func filterLast(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	if _, err := params("last", args, kw, 0); err != nil {
		return nil, err
	}
	if l, ok := v.(*py.List); ok && l.Len() > 0 {
		return l.At(l.Len() - 1), nil
	}
	if s, ok := v.(string); ok && s != "" {
		_, n := utf8.DecodeLastRuneInString(s)
		return s[len(s)-n:], nil
	}
	s, err := reversed(c, v)
	if err != nil {
		return nil, err
	}
	if len(s) == 0 {
		return c.rt.env.undefinedHint("No last item, sequence was empty."), nil
	}
	return s[0], nil
}

func filterRandom(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	if _, err := params("random", args, kw, 0); err != nil {
		return nil, err
	}
	n, err := c.rt.ops.Len(v)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return c.rt.env.undefinedHint("No random item, sequence was empty."), nil
	}
	e, ok, err := c.rt.ops.Item(v, int64(rand.IntN(n)))
	if err == nil && !ok {
		err = py.Errorf(py.KeyError, "no such key")
	}
	return e, err
}

func filterReverse(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	if _, err := params("reverse", args, kw, 0); err != nil {
		return nil, err
	}
	if isString(v) {
		s, err := c.rt.ops.SliceOf(plain(v), nil, nil, int64(-1))
		if err != nil {
			return nil, err
		}
		return like(v, s.(string)), nil
	}
	if _, isIter := v.(py.Iterator); isIter {
		l, err := c.rt.ops.List(v)
		if err != nil {
			return nil, err
		}
		s, err := reversed(c, l)
		return py.ListOf(s), err
	}
	s, err := reversed(c, v)
	if py.IsErr(err, py.TypeError) {
		return nil, raise(ClassFilterArg, "argument must be iterable")
	}
	return py.NewIter(s), err
}

func filterSort(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("sort", args, kw, 0, "reverse", "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	reverse, err := truthArg(a[0], false)
	if err != nil {
		return nil, err
	}
	cased, err := truthArg(a[1], false)
	if err != nil {
		return nil, err
	}
	key, err := multiGetter(c, or(a[2], nil), !cased)
	if err != nil {
		return nil, err
	}
	items, err := iterate(c, v)
	if err != nil {
		return nil, err
	}
	out, err := c.rt.ops.Sorted(items, key, reverse)
	return py.ListOf(out), err
}

func filterDictsort(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("dictsort", args, kw, 0, "case_sensitive", "by", "reverse")
	if err != nil {
		return nil, err
	}
	pos := 0
	switch plain(or(a[1], "key")) {
	case "key":
	case "value":
		pos = 1
	default:
		return nil, raise(ClassFilterArg, `You can only sort by either "key" or "value"`)
	}
	cased, err := truthArg(a[0], false)
	if err != nil {
		return nil, err
	}
	reverse, err := truthArg(a[2], false)
	if err != nil {
		return nil, err
	}
	items, err := pairs(c, v)
	if err != nil {
		return nil, err
	}
	out, err := c.rt.ops.Sorted(items, func(it any) (any, error) {
		k := it.(py.Tuple)[pos]
		if !cased {
			k = foldCase(k)
		}
		return k, nil
	}, reverse)
	return py.ListOf(out), err
}

func filterUnique(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("unique", args, kw, 0, "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	cased, err := truthArg(a[0], false)
	if err != nil {
		return nil, err
	}
	get, err := attrGetter(c, or(a[1], nil), nil, !cased)
	if err != nil {
		return nil, err
	}
	var it py.Iterator
	seen := py.NewDict()
	return generator(func() (any, bool, error) {
		if it == nil {
			var err error
			if it, err = c.rt.ops.Iter(v); err != nil {
				return nil, false, err
			}
		}
		for {
			e, ok, err := it.Next()
			if err != nil || !ok {
				return nil, false, err
			}
			k, err := get(e)
			if err != nil {
				return nil, false, err
			}
			if _, had, err := seen.Lookup(k); err != nil {
				return nil, false, err
			} else if had {
				continue
			}
			if err := c.rt.ops.Alloc(128); err != nil {
				return nil, false, err
			}
			if err := seen.Set(k, nil); err != nil {
				return nil, false, err
			}
			return e, true, nil
		}
	}), nil
}

func minMax(c *Context, v any, args []any, kw *py.Dict, op string) (any, error) {
	a, err := params("min or max", args, kw, 0, "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	cased, err := truthArg(a[0], false)
	if err != nil {
		return nil, err
	}
	get, err := attrGetter(c, or(a[1], nil), nil, !cased)
	if err != nil {
		return nil, err
	}
	items, err := iterate(c, v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return c.rt.env.undefinedHint("No aggregated item, sequence was empty."), nil
	}
	best := items[0]
	bestKey, err := get(best)
	if err != nil {
		return nil, err
	}
	for _, e := range items[1:] {
		k, err := get(e)
		if err != nil {
			return nil, err
		}
		better, err := compareOp(c.rt.ops, op, k, bestKey)
		if err != nil {
			return nil, err
		}
		if better == true {
			best, bestKey = e, k
		}
	}
	return best, nil
}
