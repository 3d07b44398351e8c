package py

import "reflect"

// dictView is the result of d.keys(), d.values() and d.items(): a live view of the dict.
type dictView struct {
	d    *Dict
	kind string // "keys", "values" or "items"
}

// TypeName implements Typed.
func (v dictView) TypeName() string { return "dict_" + v.kind }

// Len implements Sizer.
func (v dictView) Len() (int, error) { return v.d.Len(), nil }

// HashError implements Unhashable.
func (v dictView) HashError() error {
	return Errorf(TypeError, "unhashable type: '%s'", v.TypeName())
}

func (v dictView) values() []any {
	switch v.kind {
	case "keys":
		return v.d.Keys()
	case "values":
		return v.d.Values()
	}
	out := make([]any, 0, v.d.Len())
	v.d.Range(func(k, val any) bool {
		out = append(out, Tuple{k, val})
		return true
	})
	return out
}

// Iter implements Iterable: as in Python, it fails if the dict changes size meanwhile.
func (v dictView) Iter() (Iterator, error) { return &dictIter{v: v, size: v.d.Len()}, nil }

type dictIter struct {
	v    dictView
	pos  int
	size int
}

// Next implements Iterator.
func (it *dictIter) Next() (any, bool, error) {
	if it.v.d.Len() != it.size {
		return nil, false, Errorf(RuntimeError, "dictionary changed size during iteration")
	}
	for all := it.v.d.all(); it.pos < len(all); {
		e := all[it.pos]
		it.pos++
		if e.norm == nil {
			continue
		}
		switch it.v.kind {
		case "keys":
			return e.key, true, nil
		case "values":
			return e.val, true, nil
		}
		return Tuple{e.key, e.val}, true, nil
	}
	return nil, false, nil
}

// Equal implements Equaler: views of keys and items compare as sets, values by identity.
func (v dictView) Equal(other any) (bool, error) {
	w, ok := other.(dictView)
	if !ok || v.kind != w.kind || v.d.Len() != w.d.Len() {
		return false, nil
	}
	switch v.kind {
	case "values":
		return false, nil
	case "items":
		return Equal(v.d, w.d), nil
	}
	for _, k := range v.d.Keys() {
		if !w.d.Has(k) {
			return false, nil
		}
	}
	return true, nil
}

// Same is Python's `is`: the same object, or the same small immutable value.
func Same(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case int64:
		y, ok := b.(int64)
		return ok && x == y
	case *List:
		y, ok := b.(*List)
		return ok && x == y
	case *Dict:
		y, ok := b.(*Dict)
		return ok && x == y
	}
	if b == nil {
		return false
	}
	ta := reflect.TypeOf(a)
	if ta != reflect.TypeOf(b) {
		return false
	}
	if ta.Comparable() {
		return a == b
	}
	if x, ok := a.(Tuple); ok {
		y := b.(Tuple)
		return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	return false
}
