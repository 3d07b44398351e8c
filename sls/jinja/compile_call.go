package jinja

import (
	"corpus-git/internal/py"
)

// argList is compiled call arguments.
type argList struct {
	args   []expr
	keys   []string
	vals   []expr
	dyn    expr
	dynKw  expr
	simple bool // positional only
}

func (c *compiler) args(a *callArgs, s *scope) *argList {
	l := &argList{args: c.exprs(a.args, s)}
	for _, k := range a.kwargs {
		l.keys = append(l.keys, k.key)
		l.vals = append(l.vals, c.expr(k.val, s))
	}
	if a.dynArgs != nil {
		l.dyn = c.expr(a.dynArgs, s)
	}
	if a.dynKwarg != nil {
		l.dynKw = c.expr(a.dynKwarg, s)
	}
	l.simple = len(l.keys) == 0 && l.dyn == nil && l.dynKw == nil
	return l
}

// eval evaluates the arguments; kw is nil if there are none.
func (l *argList) eval(f *frame) (args []any, kw *py.Dict, err error) {
	if len(l.args) > 0 {
		args = make([]any, len(l.args))
		for i, e := range l.args {
			if args[i], err = e(f); err != nil {
				return nil, nil, err
			}
		}
	}
	if l.simple {
		return args, nil, nil
	}
	if l.dyn != nil {
		v, err := l.dyn(f)
		if err != nil {
			return nil, nil, err
		}
		more, err := f.rt.ops.Slice(v)
		if err != nil {
			if py.IsErr(err, py.TypeError) {
				err = py.Errorf(py.TypeError, "argument after * must be an iterable, not %s", py.TypeName(v))
			}
			return nil, nil, err
		}
		args = append(args, more...)
	}
	kw = py.NewDict()
	for i, e := range l.vals {
		v, err := e(f)
		if err != nil {
			return nil, nil, err
		}
		kw.SetStr(l.keys[i], v)
	}
	if l.dynKw != nil {
		v, err := l.dynKw(f)
		if err != nil {
			return nil, nil, err
		}
		if u, ok := v.(*undefined); ok {
			return nil, nil, u.Fail()
		}
		d, err := f.rt.ops.AsDict(v)
		if err != nil {
			return nil, nil, py.Errorf(py.TypeError, "argument after ** must be a mapping, not %s", py.TypeName(v))
		}
		for _, it := range d.Items() {
			k, ok := it.Key.(string)
			if !ok {
				return nil, nil, py.Errorf(py.TypeError, "keywords must be strings")
			}
			if kw.Has(k) {
				return nil, nil, py.Errorf(py.TypeError, "got multiple values for keyword argument")
			}
			kw.SetStr(k, it.Value)
		}
	}
	return args, kw, nil
}

// call compiles a call. The compiled call takes the caller of a call block, nil elsewhere.
func (c *compiler) call(x *callNode, s *scope, forward bool) func(f *frame, caller *macro) (any, error) {
	if a, ok := x.expr.(*attrNode); ok && !forward {
		return c.methodCall(a, x, s)
	}
	fn := c.expr(x.expr, s)
	args := c.args(&x.callArgs, s)
	return func(f *frame, caller *macro) (any, error) {
		v, err := fn(f)
		if err != nil {
			return nil, err
		}
		a, kw, err := args.eval(f)
		if err != nil {
			return nil, err
		}
		if caller != nil {
			if kw == nil {
				kw = py.NewDict()
			}
			kw.SetStr("caller", caller)
		}
		return f.call(v, a, kw)
	}
}

// methodCall compiles obj.name(…), without making a bound method where obj is one of Python's own types.
func (c *compiler) methodCall(a *attrNode, x *callNode, s *scope) func(f *frame, caller *macro) (any, error) {
	obj := c.expr(a.expr, s)
	args := c.args(&x.callArgs, s)
	name := a.attr
	return func(f *frame, _ *macro) (any, error) {
		o, err := obj(f)
		if err != nil {
			return nil, err
		}
		if py.HasMethod(o, name) {
			av, kw, err := args.eval(f)
			if err != nil {
				return nil, err
			}
			if err := f.rt.ops.Step(1); err != nil {
				return nil, err
			}
			return f.rt.ops.CallMethod(o, name, av, kw)
		}
		v, err := f.rt.getAttr(o, name, true)
		if err != nil {
			return nil, err
		}
		av, kw, err := args.eval(f)
		if err != nil {
			return nil, err
		}
		return f.call(v, av, kw)
	}
}

// call is v(*args, **kw).
func (f *frame) call(v any, args []any, kw *py.Dict) (any, error) {
	rt := f.rt
	if err := rt.ops.Step(1); err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case *contextFunc:
		return x.fn(f.ctx, args, kw)
	case *undefined:
		return nil, x.Fail()
	case *macro, *blockRef, *loopContext, py.Method:
		return x.(py.Callable).Call(rt.ctx, args, kw)
	case py.Callable:
		return rt.ops.Wait(func() (any, error) { return x.Call(rt.ctx, args, kw) })
	}
	return nil, py.Errorf(py.TypeError, "'%s' object is not callable", py.TypeName(v))
}

func (c *compiler) filter(x *filterNode, s *scope) expr {
	in := c.expr(x.expr, s)
	apply := c.applyFilter(x, s)
	return func(f *frame) (any, error) {
		v, err := in(f)
		if err != nil {
			return nil, err
		}
		return apply(f, v)
	}
}

// filterChain compiles the filters of a block, whose input is the text of the block.
func (c *compiler) filterChain(n node, s *scope) func(f *frame, v any) (any, error) {
	x := n.(*filterNode)
	apply := c.applyFilter(x, s)
	if isNil(x.expr) {
		return apply
	}
	first := c.filterChain(x.expr, s)
	return func(f *frame, v any) (any, error) {
		v, err := first(f, v)
		if err != nil {
			return nil, err
		}
		return apply(f, v)
	}
}

func (c *compiler) applyFilter(x *filterNode, s *scope) func(f *frame, v any) (any, error) {
	fn := c.env.filters[x.name]
	if fn == nil {
		if err := c.env.lack("filter", x.name, x.pos(), nil); err != nil {
			panic(parseError{err})
		}
		if !s.soft {
			c.fail(x.pos(), "No filter named %s.", quote(x.name))
		}
		return func(*frame, any) (any, error) {
			return nil, raise(ClassRuntime, "No filter named %s found.", quote(x.name))
		}
	}
	args := c.args(&x.callArgs, s)
	return func(f *frame, v any) (any, error) {
		a, kw, err := args.eval(f)
		if err != nil {
			return nil, err
		}
		if err := f.rt.ops.Called(v, a); err != nil {
			return nil, err
		}
		return fn(f.ctx, v, a, kw)
	}
}

func (c *compiler) test(x *testNode, s *scope) expr {
	fn := c.env.tests[x.name]
	if fn == nil {
		if err := c.env.lack("test", x.name, x.pos(), nil); err != nil {
			panic(parseError{err})
		}
		if !s.soft {
			c.fail(x.pos(), "No test named %s.", quote(x.name))
		}
		return func(*frame) (any, error) {
			return nil, raise(ClassRuntime, "No test named %s found.", quote(x.name))
		}
	}
	in := c.expr(x.expr, s)
	args := c.args(&x.callArgs, s)
	return func(f *frame) (any, error) {
		v, err := in(f)
		if err != nil {
			return nil, err
		}
		a, kw, err := args.eval(f)
		if err != nil {
			return nil, err
		}
		if err := f.rt.ops.Called(v, a); err != nil {
			return nil, err
		}
		return fn(f.ctx, v, a, kw)
	}
}
