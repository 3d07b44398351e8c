package py

import (
	"math"
	"math/big"
)

// Div returns a / b.
func (o *Ops) Div(a, b any) (any, error) {
	ok, float := numbers(a, b)
	if !ok {
		if v, ok, err := o.own("/", a, b); ok || err != nil {
			return v, err
		}
		return nil, badOperands("/", a, b)
	}
	if float {
		x, y, err := floats(a, b)
		if err != nil {
			return nil, err
		}
		if y == 0 {
			return nil, Errorf(ZeroDivisionError, "float division by zero")
		}
		return x / y, nil
	}
	x, y := toBig(a), toBig(b)
	if y.Sign() == 0 {
		return nil, Errorf(ZeroDivisionError, "division by zero")
	}
	if x.BitLen() <= 53 && y.BitLen() <= 53 {
		return float64(x.Int64()) / float64(y.Int64()), nil
	}
	f, _ := new(big.Rat).SetFrac(x, y).Float64()
	if math.IsInf(f, 0) {
		return nil, Errorf(OverflowError, "integer division result too large for a float")
	}
	return f, nil
}

// floorMod is Python's divmod of floats: the remainder has the sign of the divisor.
func floorMod(x, y float64) (q, m float64) {
	m = math.Mod(x, y)
	q = (x - m) / y
	if m != 0 {
		if (y < 0) != (m < 0) {
			m += y
			q--
		}
	} else {
		m = math.Copysign(0, y)
	}
	if q != 0 {
		f := math.Floor(q)
		if q-f > 0.5 {
			f++
		}
		q = f
	} else {
		q = math.Copysign(0, x/y)
	}
	return q, m
}

// FloorDiv returns a // b.
func (o *Ops) FloorDiv(a, b any) (any, error) {
	ok, float := numbers(a, b)
	if !ok {
		if v, ok, err := o.own("//", a, b); ok || err != nil {
			return v, err
		}
		return nil, badOperands("//", a, b)
	}
	if float {
		x, y, err := floats(a, b)
		if err != nil {
			return nil, err
		}
		if y == 0 {
			return nil, Errorf(ZeroDivisionError, "float floor division by zero")
		}
		q, _ := floorMod(x, y)
		return q, nil
	}
	q, _, err := intDivmod(a, b)
	if err != nil {
		return nil, err
	}
	return o.checkBig(q)
}

func intDivmod(a, b any) (q, m *big.Int, err error) {
	x, y := toBig(a), toBig(b)
	if y.Sign() == 0 {
		return nil, nil, Errorf(ZeroDivisionError, "integer division or modulo by zero")
	}
	q, m = new(big.Int).QuoRem(x, y, new(big.Int))
	if m.Sign() != 0 && m.Sign() != y.Sign() {
		q.Sub(q, big.NewInt(1))
		m.Add(m, y)
	}
	return q, m, nil
}

// Mod returns a % b: formatting if a is a string.
func (o *Ops) Mod(a, b any) (any, error) {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok && y > 0 {
			m := x % y
			if m < 0 {
				m += y
			}
			return m, nil
		}
	}
	if s, ok := a.(string); ok {
		return o.Percent(s, b)
	}
	ok, float := numbers(a, b)
	if !ok {
		if v, ok, err := o.own("%", a, b); ok || err != nil {
			return v, err
		}
		return nil, badOperands("%", a, b)
	}
	if float {
		x, y, err := floats(a, b)
		if err != nil {
			return nil, err
		}
		if y == 0 {
			return nil, Errorf(ZeroDivisionError, "float modulo")
		}
		_, m := floorMod(x, y)
		return m, nil
	}
	_, m, err := intDivmod(a, b)
	if err != nil {
		return nil, err
	}
	return o.checkBig(m)
}

// Pow returns a ** b.
func (o *Ops) Pow(a, b any) (any, error) {
	ok, float := numbers(a, b)
	if !ok {
		if v, ok, err := o.own("**", a, b); ok || err != nil {
			return v, err
		}
		return nil, badOperands("** or pow()", a, b)
	}
	if !float && toBig(b).Sign() >= 0 {
		x, y := toBig(a), toBig(b)
		if x.BitLen() <= 1 {
			// 0, 1 and -1 stay small whatever the exponent is.
			switch {
			case y.Sign() == 0:
				return int64(1), nil
			case x.Sign() < 0 && y.Bit(0) == 0:
				return int64(1), nil
			}
			return Norm(x), nil
		}
		if !y.IsInt64() || y.Int64() > maxBits || int64(x.BitLen()-1)*y.Int64() > maxBits {
			return nil, Errorf(OverflowError, "integer is too large")
		}
		if err := o.Step(1 + int(int64(x.BitLen())*y.Int64()/64)); err != nil {
			return nil, err
		}
		return o.checkBig(new(big.Int).Exp(x, y, nil))
	}
	x, y, err := floats(a, b)
	if err != nil {
		return nil, err
	}
	if x == 0 && y < 0 {
		return nil, Errorf(ZeroDivisionError, "0.0 cannot be raised to a negative power")
	}
	if x < 0 && y != math.Trunc(y) && !math.IsInf(y, 0) {
		return nil, Errorf(ValueError, "complex numbers are not supported")
	}
	r := math.Pow(x, y)
	if math.IsInf(r, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, Errorf(OverflowError, "(34, 'Numerical result out of range')")
	}
	return r, nil
}

// Neg returns -v.
func (o *Ops) Neg(v any) (any, error) {
	switch x := v.(type) {
	case float64:
		return -x, nil
	case int64, bool, *big.Int:
		return Norm(new(big.Int).Neg(toBig(x))), nil
	}
	if err := failing(v); err != nil {
		return nil, err
	}
	return nil, Errorf(TypeError, "bad operand type for unary -: '%s'", TypeName(v))
}

// Pos returns +v.
func (o *Ops) Pos(v any) (any, error) {
	switch x := v.(type) {
	case float64:
		return x, nil
	case int64, bool, *big.Int:
		return Norm(toBig(x)), nil
	}
	if err := failing(v); err != nil {
		return nil, err
	}
	return nil, Errorf(TypeError, "bad operand type for unary +: '%s'", TypeName(v))
}

// Round returns round(v, digits): half to even, on the exact value of the float. digits is nil for round(v), an int.
func (o *Ops) Round(v any, digits *int) (any, error) {
	if IsInt(v) {
		b := toBig(v)
		if digits == nil || *digits >= 0 {
			return Norm(b), nil
		}
		if -*digits > maxStrDigits {
			return int64(0), nil
		}
		p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-*digits)), nil)
		q, m := new(big.Int).DivMod(b, p, new(big.Int))
		twice := new(big.Int).Lsh(m, 1).Cmp(p)
		if twice > 0 || twice == 0 && q.Bit(0) == 1 {
			q.Add(q, big.NewInt(1))
		}
		return Norm(q.Mul(q, p)), nil
	}
	f, ok := v.(float64)
	if !ok {
		if err := failing(v); err != nil {
			return nil, err
		}
		return nil, Errorf(TypeError, "type %s doesn't define __round__ method", TypeName(v))
	}
	if digits == nil {
		return FloatToInt(math.RoundToEven(f))
	}
	return roundFloat(f, *digits), nil
}

// FloatToInt returns int(f).
func FloatToInt(f float64) (any, error) {
	if math.IsNaN(f) {
		return nil, Errorf(ValueError, "cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		return nil, Errorf(OverflowError, "cannot convert float infinity to integer")
	}
	b, _ := big.NewFloat(f).Int(nil)
	return Norm(b), nil
}

// roundFloat rounds to n decimal digits, half to even on the exact binary value.
func roundFloat(f float64, n int) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 || n > 323 {
		return f
	}
	if n < -308 {
		return math.Copysign(0, f)
	}
	r := new(big.Rat).SetFloat64(math.Abs(f))
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil)
	scale := new(big.Rat).SetInt(p)
	if n < 0 {
		scale.Inv(scale)
	}
	r.Mul(r, scale)
	q, m := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	twice := new(big.Int).Lsh(m, 1).Cmp(r.Denom())
	if twice > 0 || twice == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	out := new(big.Rat).SetInt(q)
	out.Quo(out, scale)
	res, _ := out.Float64()
	return math.Copysign(res, f)
}
