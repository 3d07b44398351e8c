package jinja

import (
	"fmt"
	"math"

	"corpus-git/internal/py"
)

func numberFilters(m map[string]FilterFunc) {
	m["abs"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("abs", args, kw, 0); err != nil {
			return nil, err
		}
		if u, ok := v.(*undefined); ok {
			return nil, py.Errorf(py.TypeError, "bad operand type for abs(): '%s'", u.TypeName())
		}
		if !py.IsNumber(v) {
			return nil, py.Errorf(py.TypeError, "bad operand type for abs(): '%s'", py.TypeName(v))
		}
		if f, ok := v.(float64); ok {
			return math.Abs(f), nil
		}
		if neg, err := c.rt.ops.Compare(v, int64(0), "<"); err != nil || neg >= 0 {
			r, _ := c.rt.ops.Pos(v)
			return r, err
		}
		return c.rt.ops.Neg(v)
	}
	m["int"] = filterInt
	m["float"] = filterFloat
	m["round"] = filterRound
	m["sum"] = filterSum
	m["filesizeformat"] = filterFilesize
}

// softFail tells the errors that the int and float filters answer with their default.
func softFail(err error) bool {
	return py.IsErr(err, py.TypeError) || py.IsErr(err, py.ValueError)
}

func filterInt(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("int", args, kw, 0, "default", "base")
	if err != nil {
		return nil, err
	}
	base, err := py.Index(or(a[1], int64(10)))
	if err != nil && isString(v) {
		base = -1
	}
	v = plain(v)
	if err := numberWork(c, v); err != nil {
		return nil, err
	}
	n, err := py.ToInt(v, int(base))
	if err == nil || !softFail(err) {
		return n, err
	}
	f, err := py.ToFloat(v)
	if err == nil {
		if n, err = py.FloatToInt(f); err == nil {
			return n, nil
		}
	}
	if softFail(err) || py.IsErr(err, py.OverflowError) {
		return or(a[0], int64(0)), nil
	}
	return nil, err
}

// numberWork charges reading a text as a number, which goes over it several times.
func numberWork(c *Context, v any) error {
	s, _ := v.(string)
	return c.rt.ops.Work(60 * len(s))
}

func filterFloat(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("float", args, kw, 0, "default")
	if err != nil {
		return nil, err
	}
	if err := numberWork(c, plain(v)); err != nil {
		return nil, err
	}
	f, err := py.ToFloat(plain(v))
	if err == nil {
		return f, nil
	}
	if softFail(err) {
		return or(a[0], 0.0), nil
	}
	return nil, err
}

func filterRound(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("round", args, kw, 0, "precision", "method")
	if err != nil {
		return nil, err
	}
	method := plain(or(a[1], "common"))
	if method != "common" && method != "ceil" && method != "floor" {
		return nil, raise(ClassFilterArg, "method must be common, ceil or floor")
	}
	ops := c.rt.ops
	if method == "common" {
		p := or(a[0], int64(0))
		if p == nil {
			return ops.Round(v, nil)
		}
		n, err := py.Index(p)
		if err != nil {
			return nil, err
		}
		digits := int(max(min(n, 1<<20), -1<<20))
		return ops.Round(v, &digits)
	}
	scale, err := ops.Pow(int64(10), or(a[0], int64(0)))
	if err != nil {
		return nil, err
	}
	scaled, err := ops.Mul(v, scale)
	if err != nil {
		return nil, err
	}
	if f, ok := scaled.(float64); ok {
		if method == "ceil" {
			f = math.Ceil(f)
		} else {
			f = math.Floor(f)
		}
		if scaled, err = py.FloatToInt(f); err != nil {
			return nil, err
		}
	} else if !py.IsInt(scaled) {
		return nil, py.Errorf(py.TypeError, "must be real number, not %s", py.TypeName(scaled))
	}
	return ops.Div(scaled, scale)
}

func filterSum(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("sum", args, kw, 0, "attribute", "start")
	if err != nil {
		return nil, err
	}
	total := or(a[1], int64(0))
	if isString(total) {
		return nil, py.Errorf(py.TypeError, "sum() can't sum strings [use ''.join(seq) instead]")
	}
	get, err := attrGetter(c, or(a[0], nil), nil, false)
	if err != nil {
		return nil, err
	}
	items, err := iterate(c, v)
	if err != nil {
		return nil, err
	}
	for _, e := range items {
		if e, err = get(e); err != nil {
			return nil, err
		}
		if total, err = c.rt.ops.Add(total, e); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func filterFilesize(_ *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("filesizeformat", args, kw, 0, "binary")
	if err != nil {
		return nil, err
	}
	binary, err := truthArg(a[0], false)
	if err != nil {
		return nil, err
	}
	size, err := py.ToFloat(plain(v))
	if err != nil {
		return nil, err
	}
	base, suffix := 1000.0, "B"
	if binary {
		base, suffix = 1024, "iB"
	}
	if size == 1 {
		return "1 Byte", nil
	}
	if size < base {
		n, err := py.FloatToInt(size)
		if err != nil {
			return nil, err
		}
		return py.Str(n) + " Bytes", nil
	}
	unit := base
	prefixes := "kMGTPEZY"
	if binary {
		prefixes = "KMGTPEZY"
	}
	for i, p := range prefixes {
		unit *= base
		if size < unit || i == len(prefixes)-1 {
			return fmt.Sprintf("%.1f %c%s", base*size/unit, p, suffix), nil
		}
	}
	return nil, nil
}
