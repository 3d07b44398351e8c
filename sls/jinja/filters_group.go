package jinja

import "corpus-git/internal/py"

// groupTuple is a pair of groupby: a tuple that also has names.
type groupTuple struct{ py.Tuple }

func filterGroupby(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("groupby", args, kw, 1, "attribute", "default", "case_sensitive")
	if err != nil {
		return nil, err
	}
	cased, err := truthArg(a[2], false)
	if err != nil {
		return nil, err
	}
	dflt := or(a[1], nil)
	key, err := attrGetter(c, a[0], dflt, !cased)
	if err != nil {
		return nil, err
	}
	show, err := attrGetter(c, a[0], dflt, false)
	if err != nil {
		return nil, err
	}
	items, err := iterate(c, v)
	if err != nil {
		return nil, err
	}
	sorted, err := c.rt.ops.Sorted(items, key, false)
	if err != nil {
		return nil, err
	}
	out := py.NewList()
	var group *py.List
	var last any
	for _, e := range sorted {
		k, err := key(e)
		if err != nil {
			return nil, err
		}
		same := false
		if group != nil {
			if same, err = c.rt.ops.Equal(last, k); err != nil {
				return nil, err
			}
		}
		if !same {
			name, err := show(e)
			if err != nil {
				return nil, err
			}
			group, last = py.NewList(), k
			out.Append(&groupTuple{py.Tuple{name, group}})
			if err := c.rt.ops.Alloc(128); err != nil {
				return nil, err
			}
		}
		group.Append(e)
	}
	return out, nil
}

// TypeName implements py.Typed.
func (g *groupTuple) TypeName() string { return "_GroupTuple" }

// Wrapped implements py.Wrapper.
func (g *groupTuple) Wrapped() (prefix string, inner any, suffix string) { return "", g.Tuple, "" }

// Len implements py.Sizer.
func (g *groupTuple) Len() (int, error) { return 2, nil }

// Iter implements py.Iterable.
func (g *groupTuple) Iter() (py.Iterator, error) { return py.NewIter(g.Tuple), nil }

// Item implements py.Indexer.
func (g *groupTuple) Item(key any) (any, bool, error) { return (*py.Ops)(nil).Item(g.Tuple, key) }

// Equal implements py.Equaler.
func (g *groupTuple) Equal(other any) (bool, error) {
	if o, ok := other.(*groupTuple); ok {
		other = o.Tuple
	}
	return py.Equal(g.Tuple, other), nil
}

// Attr implements py.Attributer.
func (g *groupTuple) Attr(name string) (any, bool, error) {
	switch name {
	case "grouper":
		return g.Tuple[0], true, nil
	case "list":
		return g.Tuple[1], true, nil
	}
	return (*py.Ops)(nil).Attr(g.Tuple, name)
}

func filterBatch(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("batch", args, kw, 1, "linecount", "fill_with")
	if err != nil {
		return nil, err
	}
	fill := or(a[1], nil)
	return lazy(func() ([]any, error) {
		items, err := iterate(c, v)
		if err != nil {
			return nil, err
		}
		var out []any
		var row []any
		for _, e := range items {
			full, err := c.rt.ops.Equal(int64(len(row)), a[0])
			if err != nil {
				return nil, err
			}
			if full {
				out = append(out, py.ListOf(row))
				row = nil
			}
			if err := c.rt.ops.Alloc(48); err != nil {
				return nil, err
			}
			row = append(row, e)
		}
		if len(row) == 0 {
			return out, nil
		}
		if fill != nil {
			n, err := py.Index(a[0])
			if err != nil {
				return nil, err
			}
			if short := n - int64(len(row)); short > 0 {
				more, err := c.rt.ops.Mul(py.NewList(fill), short)
				if err != nil {
					return nil, err
				}
				row = append(row, more.(*py.List).Items()...)
			}
		}
		return append(out, py.ListOf(row)), nil
	}), nil
}

func filterSlice(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("slice", args, kw, 1, "slices", "fill_with")
	if err != nil {
		return nil, err
	}
	fill := or(a[1], nil)
	return lazy(func() ([]any, error) {
		items, err := iterate(c, v)
		if err != nil {
			return nil, err
		}
		n, err := py.Index(a[0])
		if err != nil {
			if u, ok := a[0].(*undefined); ok {
				return nil, u.Fail()
			}
			return nil, err
		}
		if n == 0 {
			return nil, py.Errorf(py.ZeroDivisionError, "integer division or modulo by zero")
		}
		if n < 0 {
			return nil, nil
		}
		if n > 1<<24 {
			return nil, py.Errorf(py.LimitError, "too much memory for values")
		}
		if err := c.rt.ops.Alloc(64*int(n) + 32*len(items)); err != nil {
			return nil, err
		}
		per, extra := int64(len(items))/n, int64(len(items))%n
		out := make([]any, 0, n)
		offset := int64(0)
		for i := range n {
			start := offset + i*per
			if i < extra {
				offset++
			}
			row := append([]any(nil), items[start:offset+(i+1)*per]...)
			if fill != nil && i >= extra {
				row = append(row, fill)
			}
			out = append(out, py.ListOf(row))
		}
		return out, nil
	}), nil
}
