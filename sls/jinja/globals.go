package jinja

import (
	"context"

	"corpus-git/internal/py"
)

func builtinGlobals(e *Environment) {
	limit := e.limits.Range
	see := func(name string, fn ContextFunc) { e.globals[name] = &contextFunc{name, fn} }
	e.globals["range"] = py.NewFunc("range", func(_ context.Context, args []any, kw *py.Dict) (any, error) {
		if kw.Len() > 0 {
			return nil, py.Errorf(py.TypeError, "range() takes no keyword arguments")
		}
		for _, a := range args {
			if u, ok := a.(*undefined); ok {
				return nil, py.Errorf(py.TypeError, "'%s' object cannot be interpreted as an integer", u.TypeName())
			}
		}
		r, err := py.NewRange(args)
		if err != nil {
			return nil, err
		}
		if n, _ := r.Len(); n > limit {
			return nil, py.Errorf(py.OverflowError, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", limit)
		}
		return r, nil
	})
	see("dict", MakeDict)
	see("namespace", func(c *Context, args []any, kw *py.Dict) (any, error) {
		d, err := makeDict(c, "namespace", args, kw)
		if err != nil {
			return nil, err
		}
		return &namespace{d}, nil
	})
	see("lipsum", func(*Context, []any, *py.Dict) (any, error) {
		return nil, Lack("the function lipsum")
	})
	e.globals["cycler"] = py.NewFunc("cycler", func(_ context.Context, args []any, kw *py.Dict) (any, error) {
		if kw.Len() > 0 {
			return nil, py.Errorf(py.TypeError, "cycler() takes no keyword arguments")
		}
		if len(args) == 0 {
			return nil, py.Errorf(py.RuntimeError, "at least one item has to be provided")
		}
		return &cycler{items: args}, nil
	})
	see("joiner", func(c *Context, args []any, kw *py.Dict) (any, error) {
		a, err := py.Bind("joiner", args, kw, 0, "sep")
		if err != nil {
			return nil, err
		}
		if !py.Given(a[0]) {
			a[0] = ", "
		}
		return &joiner{sep: a[0]}, nil
	})
}

// MakeDict returns the global dict: a dict of a mapping or pairs, and of keywords.
func MakeDict(c *Context, args []any, kw *py.Dict) (any, error) { return makeDict(c, "dict", args, kw) }

func makeDict(c *Context, fn string, args []any, kw *py.Dict) (*py.Dict, error) {
	if len(args) > 1 {
		return nil, py.Errorf(py.TypeError, "%s expected at most 1 argument, got %d", fn, len(args))
	}
	d := py.NewDict()
	if len(args) == 1 {
		if u, ok := args[0].(*undefined); ok && u.strict {
			return nil, u.Fail()
		}
		src, err := c.rt.ops.AsDict(args[0])
		if err != nil {
			return nil, err
		}
		d.Update(src)
	}
	d.Update(kw)
	return d, c.rt.ops.Alloc(128 * (1 + d.Len()))
}

// namespace holds variables that inner scopes can set.
type namespace struct{ vars *py.Dict }

// TypeName implements py.Typed.
func (n *namespace) TypeName() string { return "Namespace" }

// Attr implements py.Attributer.
func (n *namespace) Attr(name string) (any, bool, error) {
	v, ok := n.vars.GetStr(name)
	return v, ok, nil
}

// SetAttr implements py.AttrSetter.
func (n *namespace) SetAttr(name string, v any) error {
	n.vars.SetStr(name, v)
	return nil
}

// Wrapped implements py.Wrapper.
func (n *namespace) Wrapped() (prefix string, inner any, suffix string) {
	return "<Namespace ", n.vars, ">"
}

// cycler gives one item after the other, for ever.
type cycler struct {
	items []any
	at    int
}

// TypeName implements py.Typed.
func (c *cycler) TypeName() string { return "Cycler" }

// Attr implements py.Attributer.
func (c *cycler) Attr(name string) (any, bool, error) {
	switch name {
	case "current":
		return c.items[c.at], true, nil
	case "items":
		return py.Tuple(c.items), true, nil
	case "pos":
		return int64(c.at), true, nil
	case "next":
		return py.NewFunc("next", func(context.Context, []any, *py.Dict) (any, error) {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v, nil
		}), true, nil
	case "reset":
		return py.NewFunc("reset", func(context.Context, []any, *py.Dict) (any, error) {
			c.at = 0
			return nil, nil
		}), true, nil
	}
	return nil, false, nil
}

// joiner gives nothing the first time it is called, then its separator.
type joiner struct {
	sep  any
	used bool
}

// TypeName implements py.Typed.
func (j *joiner) TypeName() string { return "Joiner" }

// Attr implements py.Attributer.
func (j *joiner) Attr(name string) (any, bool, error) {
	switch name {
	case "sep":
		return j.sep, true, nil
	case "used":
		return j.used, true, nil
	}
	return nil, false, nil
}

// Call implements py.Callable.
func (j *joiner) Call(context.Context, []any, *py.Dict) (any, error) {
	if !j.used {
		j.used = true
		return "", nil
	}
	return j.sep, nil
}
