package jinja

import (
	"strings"

	"corpus-git/internal/py"
)

func selectFilters(m map[string]FilterFunc) {
	m["map"] = filterMap
	for name, keep := range map[string]bool{"select": true, "reject": false} {
		m[name] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
			return selectItems(c, v, args, kw, keep, false)
		}
		m[name+"attr"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
			return selectItems(c, v, args, kw, keep, true)
		}
	}
}

// inSource reports whether a text is in a template of this render as a literal, so that showing it gives nothing away.
func (c *Context) inSource(s string) bool {
	has := func(t *Template) bool {
		return t != nil && (strings.Contains(t.src, "'"+s+"'") || strings.Contains(t.src, `"`+s+`"`))
	}
	if has(c.tmpl) {
		return true
	}
	for t := range c.rt.modules {
		if has(t) {
			return true
		}
	}
	return false
}

// missingCallable is the error of a filter or test that map or select was given the name of.
func missingCallable(c *Context, what string, name any) error {
	switch x := name.(type) {
	case *undefined:
		return raise(ClassRuntime, "No %s named Undefined. (%s; did you forget to quote the callable name?)", what, x.message())
	case string:
		if err := c.rt.env.lack(what, x, 0, nil); err != nil {
			return err
		}
		if c.inSource(x) {
			return raise(ClassRuntime, "No %s named %s.", what, quote(x))
		}
	}
	return raise(ClassRuntime, "No %s of the given name.", what)
}

// itemsOf goes through v, one item at each call. At the first call, where v holds anything, prepare runs before: as in
// Jinja2 a wrong name is an error only when the filter's output is used.
func itemsOf(c *Context, v any, prepare func() error) func() (e any, ok bool, err error) {
	var it py.Iterator
	return func() (any, bool, error) {
		if it == nil {
			some, err := py.TruthOf(v)
			if err != nil {
				return nil, false, err
			}
			if !some {
				it = py.NewIter(nil)
				return nil, false, nil
			}
			if err := prepare(); err != nil {
				return nil, false, err
			}
			if it, err = c.rt.ops.Iter(v); err != nil {
				return nil, false, err
			}
		}
		e, ok, err := it.Next()
		if err != nil || !ok {
			return nil, false, err
		}
		return e, true, c.rt.ops.Step(1)
	}
}

func filterMap(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	var apply getter
	prepare := func() error {
		attr, hasAttr := kw.GetStr("attribute")
		if len(args) == 0 && hasAttr {
			dflt, _ := kw.GetStr("default")
			for _, k := range kw.Keys() {
				if k != "attribute" && k != "default" {
					return raise(ClassFilterArg, "Unexpected keyword argument")
				}
			}
			var err error
			apply, err = attrGetter(c, attr, dflt, false)
			return err
		}
		if len(args) == 0 {
			return raise(ClassFilterArg, "map requires a filter argument")
		}
		name, _ := plain(args[0]).(string)
		fn := c.rt.env.filters[name]
		if fn == nil {
			return missingCallable(c, "filter", args[0])
		}
		apply = func(e any) (any, error) {
			if err := c.rt.ops.Called(e, args[1:]); err != nil {
				return nil, err
			}
			return fn(c, e, args[1:], kw)
		}
		return nil
	}
	next := itemsOf(c, v, prepare)
	return generator(func() (any, bool, error) {
		e, ok, err := next()
		if err != nil || !ok {
			return nil, false, err
		}
		r, err := apply(e)
		return r, err == nil, err
	}), nil
}

func selectItems(c *Context, v any, args []any, kw *py.Dict, keep, byAttr bool) (any, error) {
	get := getter(func(v any) (any, error) { return v, nil })
	is := func(v any) (bool, error) { return py.TruthOf(v) }
	prepare := func() error {
		rest := args
		if byAttr {
			if len(rest) == 0 {
				return raise(ClassFilterArg, "Missing parameter for attribute name")
			}
			var err error
			if get, err = attrGetter(c, rest[0], nil, false); err != nil {
				return err
			}
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return nil
		}
		name, _ := plain(rest[0]).(string)
		fn := c.rt.env.tests[name]
		if fn == nil {
			return missingCallable(c, "test", rest[0])
		}
		is = func(v any) (bool, error) {
			if err := c.rt.ops.Called(v, rest[1:]); err != nil {
				return false, err
			}
			return fn(c, v, rest[1:], kw)
		}
		return nil
	}
	next := itemsOf(c, v, prepare)
	return generator(func() (any, bool, error) {
		for {
			e, ok, err := next()
			if err != nil || !ok {
				return nil, false, err
			}
			x, err := get(e)
			if err != nil {
				return nil, false, err
			}
			yes, err := is(x)
			if err != nil {
				return nil, false, err
			}
			if yes == keep {
				return e, true, nil
			}
		}
	}), nil
}
