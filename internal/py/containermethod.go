package py

import (
	"math"
	"math/big"
	"sort"

	"strings"
)

func listMethod(name string) method {
	switch name {
	case "append":
		return func(o *Ops, self any, a args) (any, error) {
			p, err := a.positional(1, 1)
			if err != nil {
				return nil, err
			}
			if err := o.allocItems(1); err != nil {
				return nil, err
			}
			self.(*List).Append(p[0])
			return nil, nil
		}
	case "extend":
		return listExtend
	case "insert":
		return listInsert
	case "pop":
		return listPop
	case "remove":
		return listRemove
	case "index":
		return seqIndexOf
	case "count":
		return seqCount
	case "reverse":
		return func(_ *Ops, self any, a args) (any, error) {
			_, err := a.positional(0, 0)
			s := self.(*List).items
			for i, j := 0, len(s)-1; i < j && err == nil; i, j = i+1, j-1 {
				s[i], s[j] = s[j], s[i]
			}
			return nil, err
		}
	case "sort":
		return listSort
	case "copy":
		return func(o *Ops, self any, a args) (any, error) {
			if _, err := a.positional(0, 0); err != nil {
				return nil, err
			}
			l := self.(*List)
			return l.Copy(), o.allocItems(l.Len())
		}
	case "clear":
		return func(_ *Ops, self any, a args) (any, error) {
			_, err := a.positional(0, 0)
			if err == nil {
				self.(*List).items = nil
			}
			return nil, err
		}
	}
	return nil
}

func listExtend(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	more, err := o.Slice(p[0])
	if err != nil {
		return nil, err
	}
	if err := o.allocItems(len(more)); err != nil {
		return nil, err
	}
	l := self.(*List)
	l.items = append(l.items, more...)
	return nil, nil
}

func listInsert(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(2, 2)
	if err != nil {
		return nil, err
	}
	i, err := Index(p[0])
	if err != nil {
		return nil, err
	}
	l := self.(*List)
	if err := o.Step(len(l.items) >> 4); err != nil {
		return nil, err
	}
	if err := o.allocItems(1); err != nil {
		return nil, err
	}
	n := int64(len(l.items))
	if i < 0 {
		i = max(i+n, 0)
	}
	i = min(i, n)
	l.items = append(l.items, nil)
	copy(l.items[i+1:], l.items[i:])
	l.items[i] = p[1]
	return nil, nil
}

func listPop(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(0, 1)
	if err != nil {
		return nil, err
	}
	l := self.(*List)
	i := int64(-1)
	if p[0] != Unset {
		if i, err = Index(p[0]); err != nil {
			return nil, err
		}
	}
	n := int64(len(l.items))
	if n == 0 {
		return nil, Errorf(IndexError, "pop from empty list")
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, Errorf(IndexError, "pop index out of range")
	}
	v := l.items[i]
	copy(l.items[i:], l.items[i+1:])
	l.items[n-1] = nil
	l.items = l.items[:n-1]
	return v, o.Step(int(n-i) >> 6)
}

func listRemove(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	l := self.(*List)
	if err := o.Step(len(l.items) >> 3); err != nil {
		return nil, err
	}
	for i, e := range l.items {
		eq := Same(e, p[0])
		if !eq {
			if eq, err = o.Equal(e, p[0]); err != nil {
				return nil, err
			}
		}
		if eq {
			l.items = append(l.items[:i], l.items[i+1:]...)
			return nil, o.Step(i)
		}
	}
	return nil, Errorf(ValueError, "list.remove(x): x not in list")
}

func seqOf(v any) []any {
	if l, ok := v.(*List); ok {
		return l.items
	}
	return v.(Tuple)
}

func seqIndexOf(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 3)
	if err != nil {
		return nil, err
	}
	s := seqOf(self)
	lo, hi := 0, len(s)
	bound := func(v any, dflt int) (int, error) {
		if v == Unset {
			return dflt, nil
		}
		i, err := Index(v)
		if i < 0 {
			i = max(i+int64(len(s)), 0)
		}
		return int(min(i, int64(len(s)))), err
	}
	if lo, err = bound(p[1], lo); err != nil {
		return nil, err
	}
	if hi, err = bound(p[2], hi); err != nil {
		return nil, err
	}
	if err := o.Step((hi - lo) >> 1); err != nil {
		return nil, err
	}
	for i := lo; i < hi; i++ {
		if Same(s[i], p[0]) {
			return int64(i), nil
		}
		if eq, err := o.Equal(s[i], p[0]); err != nil {
			return nil, err
		} else if eq {
			return int64(i), nil
		}
	}
	return nil, Errorf(ValueError, "value is not in %s", TypeName(self))
}

func seqCount(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	s := seqOf(self)
	if err := o.Step(len(s) >> 1); err != nil {
		return nil, err
	}
	for _, e := range s {
		eq := Same(e, p[0])
		if !eq {
			if eq, err = o.Equal(e, p[0]); err != nil {
				return nil, err
			}
		}
		if eq {
			n++
		}
	}
	return n, nil
}

func listSort(o *Ops, self any, a args) (any, error) {
	if len(a.pos) > 0 {
		return nil, Errorf(TypeError, "sort() takes no positional arguments")
	}
	p, err := a.bind(0, "key", "reverse")
	if err != nil {
		return nil, err
	}
	var key func(any) (any, error)
	if fn, ok := p[0].(Callable); ok {
		key = func(v any) (any, error) { return fn.Call(o.Context(), []any{v}, nil) }
	}
	l := self.(*List)
	sorted, err := o.Sorted(l.items, key, Given(p[1]) && Truth(p[1]))
	if err != nil {
		return nil, err
	}
	l.items = sorted
	return nil, nil
}

// Sorted is sorted(items, key=key, reverse=reverse): stable, in a new slice. key may be nil.
func (o *Ops) Sorted(items []any, key func(any) (any, error), reverse bool) ([]any, error) {
	if err := o.allocItems(2 * len(items)); err != nil {
		return nil, err
	}
	type pair struct{ key, val any }
	all := make([]pair, len(items))
	for i, v := range items {
		k := v
		if key != nil {
			var err error
			if k, err = key(v); err != nil {
				return nil, err
			}
		}
		all[i] = pair{k, v}
	}
	var err error
	less := func(i, j int) bool {
		if err != nil {
			return false
		}
		if err = o.Step(2); err != nil { // swaps are charged with the comparisons
			return false
		}
		var c int
		c, err = o.Compare(all[i].key, all[j].key, "<")
		if reverse {
			return c == 1
		}
		return c == -1
	}
	sort.SliceStable(all, less)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(all))
	for i := range all {
		out[i] = all[i].val
	}
	return out, nil
}

func tupleMethod(name string) method {
	switch name {
	case "index":
		return seqIndexOf
	case "count":
		return seqCount
	}
	return nil
}

func intMethod(name string) method {
	switch name {
	case "bit_length":
		return func(_ *Ops, self any, a args) (any, error) {
			_, err := a.positional(0, 0)
			return int64(toBig(self).BitLen()), err
		}
	case "bit_count":
		return func(_ *Ops, self any, a args) (any, error) {
			_, err := a.positional(0, 0)
			return int64(strings.Count(new(big.Int).Abs(toBig(self)).Text(2), "1")), err
		}
	case "conjugate", "__int__", "__index__":
		return func(_ *Ops, self any, a args) (any, error) {
			_, err := a.positional(0, 0)
			return Norm(toBig(self)), err
		}
	case "is_integer":
		return nil // Python 3.12
	}
	return nil
}

func floatMethod(name string) method {
	switch name {
	case "is_integer":
		return func(_ *Ops, self any, a args) (any, error) {
			_, err := a.positional(0, 0)
			f := self.(float64)
			return f == math.Trunc(f) && !math.IsInf(f, 0), err
		}
	case "conjugate":
		return func(_ *Ops, self any, a args) (any, error) {
			_, err := a.positional(0, 0)
			return self, err
		}
	}
	return nil
}
