package render

import (
	"slices"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

func seqFilters() map[string]filter {
	pair := func(fn func(c call) (any, error)) filter {
		return filter{required: 2, params: []string{"lst1", "lst2"}, fn: fn}
	}
	return map[string]filter{
		"unique": {decidesItself, 1, []string{"values"}, func(c call) (any, error) { return unique(c, c.a[0]) }},
		"min":    {decidesItself, 1, []string{"obj"}, func(c call) (any, error) { return extreme(c, "<") }},
		"max":    {decidesItself, 1, []string{"obj"}, func(c call) (any, error) { return extreme(c, ">") }},
		"avg":    simple(average),
		"union": pair(func(c call) (any, error) {
			if s, ok, err := sets(c, func(a, b *py.Set) []any { return append(a.Items(), b.Items()...) }); ok {
				return s, err
			}
			both, err := c.Ops().Add(c.a[0], c.a[1])
			if err != nil {
				return nil, err
			}
			return unique(c, both)
		}),
		"intersect":            pair(func(c call) (any, error) { return keep(c, true) }),
		"difference":           pair(func(c call) (any, error) { return keep(c, false) }),
		"symmetric_difference": pair(symmetric),
		"exactly_n_true":       {fn: exactly, required: 1, params: []string{"iterable", "amount"}},
		"exactly_one_true":     {fn: exactly, required: 1, params: []string{"iterable"}},
		"substring_in_list": {fn: func(c call) (any, error) {
			items, err := c.Ops().Slice(c.a[1])
			if err != nil {
				return nil, err
			}
			for _, x := range items {
				if in, err := c.Ops().Contains(x, c.a[0]); in || err != nil {
					return in, err
				}
			}
			return false, nil
		}, required: 2, params: []string{"string_to_search_for", "list_to_search"}},
		"sequence": {decidesItself, 1, []string{"data"}, func(c call) (any, error) {
			switch c.a[0].(type) {
			case *py.List, py.Tuple, *py.Dict, *py.Set:
				return c.a[0], nil
			}
			return py.NewList(c.a[0]), nil
		}},
		"is_list": {decidesItself, 1, []string{"value"}, func(c call) (any, error) { _, ok := c.a[0].(*py.List); return ok, nil }},
		"is_iter": {fn: func(c call) (any, error) {
			if py.Given(c.a[1]) {
				return nil, notSupported("the argument ignore of is_iter")
			}
			return isIter(c, c.a[0]), nil
		}, required: 1, params: []string{"thing", "ignore"}},
		"flatten": {decidesItself, 1, []string{"data", "levels", "preserve_nulls"}, flatten},
		"sorted_ignorecase": simple(func(c call) (any, error) {
			items, err := c.Ops().Slice(c.a[0])
			if err != nil {
				return nil, err
			}
			out, err := c.Ops().Sorted(items, func(v any) (any, error) {
				s, err := text(v)
				if err != nil {
					return nil, py.Errorf(py.AttributeError, "'%s' object has no attribute 'lower'", py.TypeName(v))
				}
				return py.Lower(s), nil
			}, false)
			return py.ListOf(out), err
		}),
		"compare_lists": {fn: compareLists, required: 1, params: []string{"old", "new"}},
	}
}

func isIter(c call, v any) bool {
	if _, err := text(v); err == nil {
		return false
	}
	_, err := c.Ops().Iter(v)
	return err == nil
}

// unique returns a set if the items can be in a set, otherwise a list.
func unique(c call, v any) (any, error) {
	items, err := c.Ops().Slice(v)
	if err != nil {
		return nil, err
	}
	if err := c.Ops().Alloc(64 * len(items)); err != nil {
		return nil, err
	}
	if py.IsHashable(v) {
		return py.NewSet(items)
	}
	out := py.NewList()
	seen := py.NewDict() // of those that have a hash: the others are compared one by one
	var rest []any
	for _, x := range items {
		if py.Hashable(x) == nil {
			if seen.Has(x) {
				continue
			}
			if err := seen.Set(x, nil); err != nil {
				return nil, err
			}
		}
		had, err := c.Ops().Contains(py.ListOf(rest), x)
		if err != nil {
			return nil, err
		}
		if had {
			continue
		}
		if py.Hashable(x) != nil {
			rest = append(rest, x)
		}
		out.Append(x)
	}
	return out, nil
}

// extreme is Python's min and max.
func extreme(c call, op string) (any, error) {
	items, err := c.Ops().Slice(c.a[0])
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, py.Errorf(py.ValueError, "min() and max() need at least one item")
	}
	best := items[0]
	want := -1
	if op == ">" {
		want = 1
	}
	if err := c.Ops().Step(len(items)); err != nil {
		return nil, err
	}
	for _, x := range items[1:] {
		order, err := c.Ops().Compare(x, best, op)
		if err != nil {
			return nil, err
		}
		if order == want {
			best = x
		}
	}
	return best, nil
}

func average(c call) (any, error) {
	v := c.a[0]
	if py.IsHashable(v) {
		if s, err := text(v); err == nil {
			v = s
		}
		return py.ToFloat(v)
	}
	items, err := c.Ops().Slice(v)
	if err != nil {
		return nil, err
	}
	var sum any = int64(0)
	for _, x := range items {
		if sum, err = c.Ops().Add(sum, x); err != nil {
			return nil, err
		}
	}
	out, err := c.Ops().Div(sum, int64(len(items)))
	if err != nil {
		return nil, err
	}
	return py.ToFloat(out)
}

// sets performs a set operation if both arguments are hashable; ok is false if one has none.
func sets(c call, op func(a, b *py.Set) []any) (v any, ok bool, err error) {
	if !py.IsHashable(c.a[0]) || !py.IsHashable(c.a[1]) {
		return nil, false, nil
	}
	var two [2]*py.Set
	for i := range two {
		items, err := c.Ops().Slice(c.a[i])
		if err != nil {
			return nil, true, err
		}
		if two[i], err = py.NewSet(items); err != nil {
			return nil, true, err
		}
		if err := c.Ops().Alloc(256 * len(items)); err != nil {
			return nil, true, err
		}
	}
	v, err = py.NewSet(op(two[0], two[1]))
	return v, true, err
}

// keep returns the items of the first list that the second one has, or does not have.
func keep(c call, in bool) (any, error) {
	if s, ok, err := sets(c, func(a, b *py.Set) []any {
		return slices.DeleteFunc(a.Items(), func(v any) bool { has, _ := b.Contains(v); return has != in })
	}); ok {
		return s, err
	}
	kept, err := kept(c, c.a[0], c.a[1], in)
	if err != nil {
		return nil, err
	}
	return unique(c, kept)
}

func kept(c call, list, other any, in bool) (*py.List, error) {
	items, err := c.Ops().Slice(list)
	if err != nil {
		return nil, err
	}
	out := py.NewList()
	for _, x := range items {
		has, err := c.Ops().Contains(other, x)
		if err != nil {
			return nil, err
		}
		if has == in {
			out.Append(x)
		}
	}
	return out, nil
}

func symmetric(c call) (any, error) {
	if s, ok, err := sets(c, func(a, b *py.Set) []any {
		only := func(a, b *py.Set) []any {
			return slices.DeleteFunc(a.Items(), func(v any) bool { has, _ := b.Contains(v); return has })
		}
		return append(only(a, b), only(b, a)...)
	}); ok {
		return s, err
	}
	both, err := c.Ops().Add(c.a[0], c.a[1])
	if err != nil {
		return nil, err
	}
	common, err := keep(c, true)
	if err != nil {
		return nil, err
	}
	all, err := unique(c, both)
	if err != nil {
		return nil, err
	}
	out, err := kept(c, all, common, false)
	if err != nil {
		return nil, err
	}
	return unique(c, out)
}

func exactly(c call) (any, error) {
	amount := int64(1)
	if len(c.a) > 1 && py.Given(c.a[1]) {
		n, err := py.Index(c.a[1])
		if err != nil {
			return nil, err
		}
		amount = n
	}
	items, err := c.Ops().Slice(c.a[0])
	if err != nil {
		return nil, err
	}
	n := int64(0)
	for _, x := range items {
		yes, err := py.TruthOf(x)
		if err != nil {
			return nil, err
		}
		if yes {
			n++
		}
	}
	return n == max(amount, 0), nil
}

// flatten flattens the lists in a list; Salt refuses a list that it encounters twice.
func flatten(c call) (any, error) {
	nulls, err := c.truth(2, false)
	if err != nil {
		return nil, err
	}
	out := py.NewList()
	seen := map[any]bool{}
	var walk func(v, levels any, depth int) error
	walk = func(v, levels any, depth int) error {
		if depth > 200 {
			return py.Errorf(py.RecursionError, "maximum recursion depth exceeded")
		}
		switch v.(type) {
		case *py.List, *py.Dict:
			if seen[v] {
				return py.Errorf(py.RecursionError, "Reference cycle detected. Check input list.")
			}
			seen[v] = true
		}
		items, err := c.Ops().Slice(v)
		if err != nil {
			return err
		}
		if err := c.Ops().Alloc(32 * len(items)); err != nil {
			return err
		}
		for _, x := range items {
			if f, ok := x.(py.Failer); ok {
				return f.Fail()
			}
			if s, err := text(x); !nulls && (x == nil || err == nil && (s == "None" || s == "null")) {
				continue
			}
			if isIter(c, x) {
				deeper, rest, err := below(c, levels)
				if err != nil {
					return err
				}
				if deeper {
					if err := walk(x, rest, depth+1); err != nil {
						return err
					}
					continue
				}
			}
			out.Append(x)
		}
		return nil
	}
	return out, walk(c.a[0], c.given(1, nil), 0)
}

// below reports whether flatten goes down another level, and how many levels are then left; None
// means all.
func below(c call, levels any) (deeper bool, rest any, err error) {
	if levels == nil {
		return true, nil, nil
	}
	order, err := c.Ops().Compare(levels, int64(1), ">=")
	if err != nil || order < 0 || order > 1 {
		return false, nil, err
	}
	n, err := py.ToInt(levels, 10)
	if err != nil {
		return false, nil, err
	}
	rest, err = c.Ops().Sub(n, int64(1))
	return true, rest, err
}

func compareLists(c call) (any, error) {
	out := py.NewDict()
	for _, side := range []struct {
		name     string
		of, from int
	}{{"new", 1, 0}, {"old", 0, 1}} {
		l, err := kept(c, c.given(side.of, nil), c.given(side.from, nil), false)
		if err != nil {
			return nil, err
		}
		if l.Len() > 0 {
			out.SetStr(side.name, l)
		}
	}
	return out, nil
}

func methodCall(c *jinja.Context, v any, args []any, kw *py.Dict) (any, error) {
	if u, ok := v.(py.Failer); ok {
		return nil, u.Fail()
	}
	if len(args) == 0 {
		return nil, py.Errorf(py.TypeError, "method_call() missing 1 required positional argument: 'f_name'")
	}
	name, err := text(args[0])
	if err != nil {
		return nil, err
	}
	if py.HasMethod(v, name) {
		return c.Ops().CallMethod(v, name, args[1:], kw)
	}
	fn, ok, err := c.Ops().Attr(v, name)
	if err != nil || !ok {
		return nil, err
	}
	call, ok := fn.(py.Callable)
	if !ok {
		return nil, py.Errorf(py.TypeError, "'%s' object is not callable", py.TypeName(fn))
	}
	return call.Call(c.Ops().Context(), args[1:], kw)
}
