package py

import (
	"math"
	"math/big"
	"strings"
)

// Equal returns a == b without limits; a comparison that fails counts as unequal.
func Equal(a, b any) bool {
	eq, err := (*Ops)(nil).Equal(a, b)
	return err == nil && eq
}

// compared is the number of bytes of two texts that a comparison reads in the time of a step.
const compared = 1024

// Equal returns a == b.
func (o *Ops) Equal(a, b any) (bool, error) { return o.equal(a, b, 0) }

func (o *Ops) equal(a, b any, depth int) (bool, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			if len(x) == len(y) && len(x) >= compared {
				return x == y, o.Step(len(x) / compared)
			}
			return x == y, nil
		}
	case nil:
		if b == nil {
			return true, nil
		}
	case *List:
		if y, ok := b.(*List); ok {
			return o.equalSeq(x.items, y.items, depth)
		}
	case Tuple:
		if y, ok := b.(Tuple); ok {
			return o.equalSeq(x, y, depth)
		}
	case *Dict:
		if y, ok := b.(*Dict); ok {
			return o.equalDict(x, y, depth)
		}
	case bool, int64, *big.Int, float64:
		if c, ok := numCompare(a, b); ok {
			return c == 0, nil
		}
	case Equaler:
		return x.Equal(b)
	}
	if y, ok := b.(Equaler); ok {
		return y.Equal(a)
	}
	return Same(a, b), nil
}

func (o *Ops) enter(depth int) error {
	if depth > maxDepth {
		return Errorf(RecursionError, "maximum recursion depth exceeded in comparison")
	}
	return o.Step(1)
}

func (o *Ops) equalSeq(a, b []any, depth int) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if i >= len(b) {
			return false, nil
		}
		if err := o.enter(depth); err != nil {
			return false, err
		}
		if x, ok := a[i].(string); ok && len(x) >= compared {
			if err := o.Step(len(x) / compared); err != nil {
				return false, err
			}
		}
		if Same(a[i], b[i]) {
			continue
		}
		if eq, err := o.equal(a[i], b[i], depth+1); err != nil || !eq {
			return false, err
		}
	}
	return true, nil
}

func (o *Ops) equalDict(a, b *Dict, depth int) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	for _, e := range a.all() {
		if e.norm == nil {
			continue
		}
		if err := o.enter(depth); err != nil {
			return false, err
		}
		i := b.find(e.norm)
		if i < 0 {
			return false, nil
		}
		if Same(e.val, b.entries[i].val) {
			continue
		}
		if eq, err := o.equal(e.val, b.entries[i].val, depth+1); err != nil || !eq {
			return false, err
		}
	}
	return true, nil
}

// numCompare compares two numbers exactly; ok is false if one is not a number, or is NaN.
// A NaN compares as c=2, ok=true against any number: neither equal nor ordered.
func numCompare(a, b any) (c int, ok bool) {
	if x, isInt := a.(int64); isInt {
		if y, isInt := b.(int64); isInt {
			switch {
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	}
	fa, isFa := a.(float64)
	fb, isFb := b.(float64)
	if (isFa && math.IsNaN(fa) && IsNumber(b)) || (isFb && math.IsNaN(fb) && IsNumber(a)) {
		return 2, true
	}
	if isFa && isFb {
		switch {
		case fa < fb:
			return -1, true
		case fa > fb:
			return 1, true
		}
		return 0, true
	}
	if isFa && math.IsInf(fa, 0) && IsNumber(b) {
		return int(math.Copysign(1, fa)), true
	}
	if isFb && math.IsInf(fb, 0) && IsNumber(a) {
		return -int(math.Copysign(1, fb)), true
	}
	ra, oka := exact(a)
	rb, okb := exact(b)
	if !oka || !okb {
		return 0, false
	}
	return ra.Cmp(rb), true
}

// exact returns a finite number as a big.Float without loss.
func exact(v any) (*big.Float, bool) {
	if f, ok := v.(float64); ok {
		return new(big.Float).SetFloat64(f), true
	}
	b := toBig(v)
	if b == nil {
		return nil, false
	}
	prec := uint(b.BitLen())
	if prec < 64 {
		prec = 64
	}
	return new(big.Float).SetPrec(prec).SetInt(b), true
}

// Compare orders a and b as Python's < does for numbers, strings, lists and tuples (-1, 0, 1), within limits; other pairs are a
// TypeError worded for op ("<", "<=", ">", ">="). A NaN yields 2: no order holds.
func (o *Ops) Compare(a, b any, op string) (int, error) { return o.compare(a, b, op, 0) }

func (o *Ops) compare(a, b any, op string, depth int) (int, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			if n := min(len(x), len(y)); n >= compared {
				return strings.Compare(x, y), o.Step(n / compared)
			}
			return strings.Compare(x, y), nil
		}
	case *List:
		if y, ok := b.(*List); ok {
			return o.compareSeq(x.items, y.items, op, depth)
		}
	case Tuple:
		if y, ok := b.(Tuple); ok {
			return o.compareSeq(x, y, op, depth)
		}
	case bool, int64, *big.Int, float64:
		if c, ok := numCompare(a, b); ok {
			return c, nil
		}
	case Orderer:
		return x.Order(b, op)
	}
	if y, ok := b.(Orderer); ok {
		c, err := y.Order(a, mirror(op))
		return -c, err
	}
	if err := failing(a, b); err != nil {
		return 0, err
	}
	return 0, Errorf(TypeError, "'%s' not supported between instances of '%s' and '%s'", op, TypeName(a), TypeName(b))
}

// Orderer is an object with its own order.
type Orderer interface {
	Order(other any, op string) (int, error)
}

func mirror(op string) string {
	switch op {
	case "<":
		return ">"
	case ">":
		return "<"
	case "<=":
		return ">="
	}
	return "<="
}

func (o *Ops) compareSeq(a, b []any, op string, depth int) (int, error) {
	for i := 0; i < len(a) && i < len(b); i++ {
		if err := o.enter(depth); err != nil {
			return 0, err
		}
		if Same(a[i], b[i]) {
			continue
		}
		eq, err := o.equal(a[i], b[i], depth+1)
		if err != nil {
			return 0, err
		}
		if !eq {
			return o.compare(a[i], b[i], op, depth+1)
		}
	}
	switch {
	case len(a) < len(b):
		return -1, nil
	case len(a) > len(b):
		return 1, nil
	}
	return 0, nil
}

// Contains is `v in c`.
func (o *Ops) Contains(c, v any) (bool, error) {
	switch x := c.(type) {
	case string:
		s, err := needStr(v)
		if err != nil {
			if IsErr(err, TypeError) {
				err = Errorf(TypeError, "'in <string>' requires string as left operand, not %s", TypeName(v))
			}
			return false, err
		}
		return strings.Contains(x, s), o.Touch(len(x))
	case *Dict:
		_, ok, err := x.Lookup(v)
		return ok, err
	case *List:
		return o.seqContains(x.items, v)
	case Tuple:
		return o.seqContains(x, v)
	case dictView:
		if x.kind == "keys" {
			_, ok, err := x.d.Lookup(v)
			return ok, err
		}
		return o.seqContains(x.values(), v)
	case Container:
		return x.Contains(v)
	}
	it, err := o.Iter(c)
	if err != nil {
		return false, Errorf(TypeError, "argument of type '%s' is not iterable", TypeName(c))
	}
	for {
		e, ok, err := it.Next()
		if err != nil || !ok {
			return false, err
		}
		if err := o.Step(1); err != nil {
			return false, err
		}
		if eq, err := o.Equal(e, v); err != nil || eq {
			return eq, err
		}
	}
}

func (o *Ops) seqContains(items []any, v any) (bool, error) {
	if err := o.Step(len(items) >> 1); err != nil {
		return false, err
	}
	long, _ := v.(string)
	for _, e := range items {
		if len(long) >= compared {
			if err := o.Step(len(long) / compared); err != nil {
				return false, err
			}
		}
		if Same(e, v) {
			return true, nil
		}
		if eq, err := o.Equal(e, v); err != nil || eq {
			return eq, err
		}
	}
	return false, nil
}
