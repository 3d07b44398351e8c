package jinja

import (
	"math/big"

	"corpus-git/internal/py"
)

// builtinTests fills in the tests of Jinja2: one table, of which each entry is a line or two.
func builtinTests(m map[string]TestFunc) {
	plain := func(fn func(v any) bool) TestFunc {
		return func(_ *Context, v any, args []any, kw *py.Dict) (bool, error) {
			_, err := py.Bind("test", args, kw, 0)
			return fn(v), err
		}
	}
	remainder := func(c *Context, v, by any, want int64) (bool, error) {
		r, err := c.rt.ops.Mod(v, by)
		if err != nil {
			return false, err
		}
		return c.rt.ops.Equal(r, want)
	}
	m["odd"] = alone(func(c *Context, v any) (bool, error) { return remainder(c, v, int64(2), 1) })
	m["even"] = alone(func(c *Context, v any) (bool, error) { return remainder(c, v, int64(2), 0) })
	m["divisibleby"] = func(c *Context, v any, args []any, kw *py.Dict) (bool, error) {
		a, err := py.Bind("divisibleby", args, kw, 1, "num")
		if err != nil {
			return false, err
		}
		return remainder(c, v, a[0], 0)
	}
	m["defined"] = plain(func(v any) bool { return !isUndefined(v) })
	m["undefined"] = plain(isUndefined)
	m["none"] = plain(func(v any) bool { return v == nil })
	m["boolean"] = plain(func(v any) bool { _, ok := v.(bool); return ok })
	m["true"] = plain(func(v any) bool { return v == true })
	m["false"] = plain(func(v any) bool { return v == false })
	m["integer"] = plain(func(v any) bool {
		switch v.(type) {
		case int64, *big.Int:
			return true
		}
		return false
	})
	m["float"] = plain(func(v any) bool { _, ok := v.(float64); return ok })
	m["number"] = plain(py.IsNumber)
	m["string"] = plain(isString)
	m["mapping"] = plain(isMapping)
	m["callable"] = plain(func(v any) bool {
		switch v.(type) {
		case py.Callable, *undefined: // Undefined has a __call__, which fails
			return true
		}
		return false
	})
	m["escaped"] = plain(func(v any) bool { _, ok := v.(Markup); return ok })
	m["filter"] = nameTest(func(e *Environment, n string) bool { return e.filters[n] != nil })
	m["test"] = nameTest(func(e *Environment, n string) bool { return e.tests[n] != nil })
	m["lower"] = caseTest(py.IsLower)
	m["upper"] = caseTest(py.IsUpper)
	m["sequence"] = alone(func(c *Context, v any) (bool, error) { return isSequence(c, v), nil })
	m["iterable"] = alone(func(c *Context, v any) (bool, error) {
		_, err := c.rt.ops.Iter(v)
		if py.IsErr(err, py.TypeError) {
			return false, nil
		}
		return err == nil, err
	})
	m["sameas"] = one(func(_ *Context, v, arg any) (bool, error) { return py.Same(v, arg), nil })
	m["in"] = one(func(c *Context, v, arg any) (bool, error) { return c.rt.ops.Contains(arg, v) })
	comparisonTests(m)
}

// comparisonTests fills in the operators and their names.
func comparisonTests(m map[string]TestFunc) {
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"}, ">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		fn := one(func(c *Context, v, arg any) (bool, error) {
			r, err := compareOp(c.rt.ops, op, v, arg)
			return r == true, err
		})
		for _, n := range names {
			m[n] = fn
		}
	}
}

// one returns a test with one argument.
func one(fn func(c *Context, v, arg any) (bool, error)) TestFunc {
	return func(c *Context, v any, args []any, kw *py.Dict) (bool, error) {
		a, err := py.Bind("test", args, kw, 1, "other")
		if err != nil {
			return false, err
		}
		return fn(c, v, a[0])
	}
}

// alone returns a test without arguments.
func alone(fn func(c *Context, v any) (bool, error)) TestFunc {
	return func(c *Context, v any, args []any, kw *py.Dict) (bool, error) {
		if _, err := py.Bind("test", args, kw, 0); err != nil {
			return false, err
		}
		return fn(c, v)
	}
}

func nameTest(has func(e *Environment, name string) bool) TestFunc {
	return alone(func(c *Context, v any) (bool, error) {
		if err := py.Hashable(v); err != nil {
			return false, err
		}
		s, ok := v.(string)
		return ok && has(c.rt.env, s), nil
	})
}

func caseTest(is func(string) bool) TestFunc {
	return alone(func(c *Context, v any) (bool, error) {
		s, err := c.rt.ops.Str(v)
		return err == nil && is(s), err
	})
}

func isString(v any) bool {
	switch v.(type) {
	case string, Markup:
		return true
	}
	return false
}

func isMapping(v any) bool {
	switch v.(type) {
	case *py.Dict, py.Mapping:
		return true
	}
	return false
}

// isSequence reports whether v has a length and can be subscripted.
func isSequence(c *Context, v any) bool {
	switch x := v.(type) {
	case string, Markup, *py.Dict, *py.List, py.Tuple, *py.Range, py.Mapping:
		return true
	case *undefined:
		return !x.strict
	}
	if _, ok := v.(py.Indexer); !ok {
		return false
	}
	_, err := c.rt.ops.Len(v)
	return err == nil
}
