package py

import "math/big"

// Iter is iter(v).
func (o *Ops) Iter(v any) (Iterator, error) {
	switch x := v.(type) {
	case *List:
		return &listIter{l: x}, nil
	case Tuple:
		return &sliceIter{items: x}, nil
	case string:
		return &strIter{s: x}, nil
	case *Dict:
		return &dictIter{v: dictView{x, "keys"}, size: x.Len()}, nil
	case Iterable:
		return x.Iter()
	case Iterator:
		return x, nil
	case Mapping:
		d, err := x.AsDict()
		if err != nil {
			return nil, err
		}
		return o.Iter(d)
	}
	return nil, Errorf(TypeError, "'%s' object is not iterable", TypeName(v))
}

// Slice returns the items of list(v), in a slice that the caller may keep but not write to.
func (o *Ops) Slice(v any) ([]any, error) {
	switch x := v.(type) {
	case *List:
		return x.items, o.Step(1)
	case Tuple:
		return x, o.Step(1)
	case *Dict:
		return x.Keys(), o.allocItems(x.Len())
	case dictView:
		return x.values(), o.allocItems(2 * x.d.Len())
	}
	it, err := o.Iter(v)
	if err != nil {
		return nil, err
	}
	var out []any
	for {
		e, ok, err := it.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		if err := o.allocItems(1); err != nil {
			return nil, err
		}
		if _, made := e.(string); made { // a new value for each character
			if err := o.Step(2); err != nil {
				return nil, err
			}
		}
		out = append(out, e)
	}
}

// List is list(v): always a new list.
func (o *Ops) List(v any) (*List, error) {
	s, err := o.Slice(v)
	if err != nil {
		return nil, err
	}
	switch v.(type) {
	case *List, Tuple:
		if err := o.allocItems(len(s)); err != nil {
			return nil, err
		}
		return ListOf(append([]any(nil), s...)), nil
	}
	return ListOf(s), nil
}

type listIter struct {
	l   *List
	pos int
}

// Next implements Iterator; items appended meanwhile are seen, as in Python.
func (it *listIter) Next() (any, bool, error) {
	if it.pos >= len(it.l.items) {
		return nil, false, nil
	}
	it.pos++
	return it.l.items[it.pos-1], true, nil
}

type sliceIter struct {
	items []any
	pos   int
}

// Next implements Iterator.
func (it *sliceIter) Next() (any, bool, error) {
	if it.pos >= len(it.items) {
		return nil, false, nil
	}
	it.pos++
	return it.items[it.pos-1], true, nil
}

// NewIter returns an iterator over a slice.
func NewIter(items []any) Iterator { return &sliceIter{items: items} }

// IterFunc returns an iterator from a function with Next's contract.
func IterFunc(next func() (any, bool, error)) Iterator { return funcIter(next) }

type funcIter func() (any, bool, error)

// Next implements Iterator.
func (f funcIter) Next() (any, bool, error) { return f() }

// HashError implements Unhashable: a func value cannot be a key of a Go map.
func (f funcIter) HashError() error { return Errorf(TypeError, "unhashable type: 'generator'") }

type strIter struct{ s string }

// Next implements Iterator: one character as a string.
func (it *strIter) Next() (any, bool, error) {
	if it.s == "" {
		return nil, false, nil
	}
	n := runeLen(it.s)
	c := it.s[:n]
	it.s = it.s[n:]
	return c, true, nil
}

// Range is Python's range object.
type Range struct{ Start, Stop, Step int64 }

// NewRange is range(*args).
func NewRange(args []any) (*Range, error) {
	n := make([]int64, len(args))
	for i, a := range args {
		v, err := Index(a)
		if err != nil {
			return nil, err
		}
		n[i] = v
	}
	switch len(n) {
	case 0:
		return nil, Errorf(TypeError, "range expected at least 1 argument, got 0")
	case 1:
		return &Range{0, n[0], 1}, nil
	case 2:
		return &Range{n[0], n[1], 1}, nil
	case 3:
		if n[2] == 0 {
			return nil, Errorf(ValueError, "range() arg 3 must not be zero")
		}
		return &Range{n[0], n[1], n[2]}, nil
	}
	return nil, Errorf(TypeError, "range expected at most 3 arguments, got %d", len(n))
}

// Index is operator.index(v) as a 64-bit number.
func Index(v any) (int64, error) {
	switch x := v.(type) {
	case int64:
		return x, nil
	case bool:
		if x {
			return 1, nil
		}
		return 0, nil
	case *big.Int:
		return 0, Errorf(OverflowError, "Python int too large to convert to C ssize_t")
	}
	return 0, Errorf(TypeError, "'%s' object cannot be interpreted as an integer", TypeName(v))
}

// TypeName implements Typed.
func (r *Range) TypeName() string { return "range" }

// Len implements Sizer.
func (r *Range) Len() (int, error) { return r.len(), nil }

func (r *Range) len() int {
	lo, hi, step := r.Start, r.Stop, r.Step
	if step < 0 {
		lo, hi, step = hi, lo, -step
	}
	if lo >= hi {
		return 0
	}
	n := (uint64(hi)-uint64(lo)-1)/uint64(step) + 1
	if n > 1<<62 {
		return 1 << 62
	}
	return int(n)
}

// Repr implements Reprer.
func (r *Range) Repr() (string, error) {
	if r.Step != 1 {
		return "range(" + Str(r.Start) + ", " + Str(r.Stop) + ", " + Str(r.Step) + ")", nil
	}
	return "range(" + Str(r.Start) + ", " + Str(r.Stop) + ")", nil
}

// Iter implements Iterable.
func (r *Range) Iter() (Iterator, error) {
	i, n := 0, r.len()
	return funcIter(func() (any, bool, error) {
		if i >= n {
			return nil, false, nil
		}
		i++
		return r.Start + int64(i-1)*r.Step, true, nil
	}), nil
}

// Contains implements Container.
func (r *Range) Contains(v any) (bool, error) {
	f, isFloat := v.(float64)
	if isFloat && f == float64(int64(f)) {
		v = int64(f)
	}
	n, err := Index(v)
	if err != nil {
		return false, nil
	}
	if r.Step > 0 {
		return n >= r.Start && n < r.Stop && (n-r.Start)%r.Step == 0, nil
	}
	return n <= r.Start && n > r.Stop && (r.Start-n)%-r.Step == 0, nil
}

// Equal implements Equaler: ranges are equal if their items are.
func (r *Range) Equal(other any) (bool, error) {
	q, ok := other.(*Range)
	if !ok || r.len() != q.len() {
		return false, nil
	}
	n := r.len()
	return n == 0 || r.Start == q.Start && (n == 1 || r.Step == q.Step), nil
}

// runeLen returns the number of bytes of the first character of s, which is not empty.
func runeLen(s string) int {
	for n := 1; n < len(s) && n < 4; n++ {
		if s[n]&0xC0 != 0x80 || s[0] < 0xC0 {
			return n
		}
	}
	if len(s) < 4 {
		return len(s)
	}
	return 4
}
