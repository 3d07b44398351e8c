package py

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// failing returns the error of the first operand that refuses every operation.
func failing(vals ...any) error {
	for _, v := range vals {
		if f, ok := v.(Failer); ok {
			return f.Fail()
		}
	}
	return nil
}

func badOperands(op string, a, b any) error {
	if err := failing(a, b); err != nil {
		return err
	}
	return Errorf(TypeError, "unsupported operand type(s) for %s: '%s' and '%s'", op, TypeName(a), TypeName(b))
}

// BinaryOp is an object with its own arithmetic; ok is false if it does not know the other operand.
type BinaryOp interface {
	Binary(o *Ops, op string, other any, reflected bool) (v any, ok bool, err error)
}

func (o *Ops) own(op string, a, b any) (v any, ok bool, err error) {
	if x, is := a.(BinaryOp); is {
		if v, ok, err = x.Binary(o, op, b, false); ok || err != nil {
			return v, ok, err
		}
	}
	if y, is := b.(BinaryOp); is {
		return y.Binary(o, op, a, true)
	}
	return nil, false, nil
}

// checkBig refuses integers that are too large to work with, and charges the others.
func (o *Ops) checkBig(b *big.Int) (any, error) {
	if b.BitLen() > maxBits {
		return nil, Errorf(OverflowError, "integer is too large")
	}
	if b.IsInt64() {
		return b.Int64(), nil
	}
	return b, o.Alloc(b.BitLen() / 8)
}

// numbers reports whether both are numbers, and whether one is a float.
func numbers(a, b any) (ok, float bool) {
	_, fa := a.(float64)
	_, fb := b.(float64)
	return IsNumber(a) && IsNumber(b), fa || fb
}

func floats(a, b any) (x, y float64, err error) {
	if x, err = toFloat(a); err != nil {
		return
	}
	y, err = toFloat(b)
	return
}

// Add returns a + b.
func (o *Ops) Add(a, b any) (any, error) {
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			if s := x + y; (s > x) == (y > 0) {
				return s, nil
			}
		}
	case string:
		if y, ok := b.(string); ok {
			s, err := o.Concat(x, y)
			if err != nil {
				return nil, err
			}
			return s, nil
		}
	case *List:
		if y, ok := b.(*List); ok {
			s, err := o.concat(x.items, y.items)
			return ListOf(s), err
		}
	case Tuple:
		if y, ok := b.(Tuple); ok {
			s, err := o.concat(x, y)
			return Tuple(s), err
		}
	}
	if ok, float := numbers(a, b); ok {
		if float {
			x, y, err := floats(a, b)
			return x + y, err
		}
		return o.checkBig(new(big.Int).Add(toBig(a), toBig(b)))
	}
	if v, ok, err := o.own("+", a, b); ok || err != nil {
		return v, err
	}
	if err := failing(a, b); err != nil {
		return nil, err
	}
	switch a.(type) {
	case string:
		return nil, Errorf(TypeError, `can only concatenate str (not "%s") to str`, TypeName(b))
	case *List:
		return nil, Errorf(TypeError, `can only concatenate list (not "%s") to list`, TypeName(b))
	case Tuple:
		return nil, Errorf(TypeError, `can only concatenate tuple (not "%s") to tuple`, TypeName(b))
	}
	return nil, badOperands("+", a, b)
}

func (o *Ops) concat(a, b []any) ([]any, error) {
	if err := o.allocItems(len(a) + len(b)); err != nil {
		return nil, err
	}
	out := make([]any, 0, len(a)+len(b))
	return append(append(out, a...), b...), nil
}

// Sub returns a - b.
func (o *Ops) Sub(a, b any) (any, error) {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			if s := x - y; (s < x) == (y > 0) {
				return s, nil
			}
		}
	}
	if ok, float := numbers(a, b); ok {
		if float {
			x, y, err := floats(a, b)
			return x - y, err
		}
		return o.checkBig(new(big.Int).Sub(toBig(a), toBig(b)))
	}
	if v, ok, err := o.own("-", a, b); ok || err != nil {
		return v, err
	}
	return nil, badOperands("-", a, b)
}

// Mul returns a * b.
func (o *Ops) Mul(a, b any) (any, error) {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			hi, lo := bits.Mul64(uint64(abs64(x)), uint64(abs64(y)))
			if hi == 0 && lo < 1<<63 && x != math.MinInt64 && y != math.MinInt64 {
				return x * y, nil
			}
		}
	}
	if ok, float := numbers(a, b); ok {
		if float {
			x, y, err := floats(a, b)
			return x * y, err
		}
		return o.checkBig(new(big.Int).Mul(toBig(a), toBig(b)))
	}
	if v, ok, err := o.repeat(a, b); ok || err != nil {
		return v, err
	}
	if v, ok, err := o.repeat(b, a); ok || err != nil {
		return v, err
	}
	if v, ok, err := o.own("*", a, b); ok || err != nil {
		return v, err
	}
	if err := failing(a, b); err != nil {
		return nil, err
	}
	for _, p := range [][2]any{{a, b}, {b, a}} {
		switch p[0].(type) {
		case string, *List, Tuple:
			return nil, Errorf(TypeError, "can't multiply sequence by non-int of type '%s'", TypeName(p[1]))
		}
	}
	return nil, badOperands("*", a, b)
}

// repeat returns seq * n.
func (o *Ops) repeat(seq, n any) (any, bool, error) {
	if !IsInt(n) {
		return nil, false, nil
	}
	size := 0
	switch x := seq.(type) {
	case string:
		size = len(x)
	case *List:
		size = len(x.items)
	case Tuple:
		size = len(x)
	default:
		return nil, false, nil
	}
	times, fits := toInt64(n)
	if !fits && toBig(n).Sign() > 0 {
		return nil, true, Errorf(OverflowError, "cannot fit 'int' into an index-sized integer")
	}
	if times < 0 || !fits {
		times = 0
	}
	if size > 0 && times > math.MaxInt32*64/int64(size) {
		return nil, true, o.tooMuch()
	}
	total := size * int(times)
	if s, ok := seq.(string); ok {
		if err := o.Alloc(total); err != nil {
			return nil, true, err
		}
		return strings.Repeat(s, int(times)), true, nil
	}
	if err := o.allocItems(total); err != nil {
		return nil, true, err
	}
	out := make([]any, 0, total)
	items, isTuple := seq.(Tuple)
	if !isTuple {
		items = seq.(*List).items
	}
	if size > 0 {
		for range times {
			out = append(out, items...)
		}
	}
	if isTuple {
		return Tuple(out), true, nil
	}
	return ListOf(out), true, nil
}

// tooMuch returns the error of requesting more memory than any budget has.
func (o *Ops) tooMuch() error {
	return Errorf(LimitError, "too much memory for values")
}

func abs64(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}
