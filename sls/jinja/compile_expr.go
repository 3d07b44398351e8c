package jinja

import (
	"slices"

	"corpus-git/internal/py"
)

func constant(v any) expr { return func(*frame) (any, error) { return v, nil } }

func (c *compiler) expr(n node, s *scope) expr {
	switch x := n.(type) {
	case *constNode:
		return constant(x.val)
	case *dataNode:
		return constant(x.text)
	case *nameNode:
		return c.name(x, s)
	case *attrNode:
		return c.attr(x, s)
	case *itemNode:
		return c.item(x, s)
	case *callNode:
		call := c.call(x, s, false)
		return func(f *frame) (any, error) { return call(f, nil) }
	case *filterNode:
		return c.filter(x, s)
	case *testNode:
		return c.test(x, s)
	case *tupleNode:
		items := c.exprs(x.items, s)
		return func(f *frame) (any, error) {
			out, err := evalAll(f, items)
			return py.Tuple(out), err
		}
	case *listNode:
		items := c.exprs(x.items, s)
		return func(f *frame) (any, error) {
			out, err := evalAll(f, items)
			return py.ListOf(out), err
		}
	case *dictNode:
		return c.dict(x, s)
	case *condNode:
		return c.cond(x, s)
	case *logicNode:
		return c.logic(x, s)
	case *notNode:
		e := c.expr(x.expr, s)
		return func(f *frame) (any, error) {
			v, err := e(f)
			if err != nil {
				return nil, err
			}
			t, err := py.TruthOf(v)
			return !t, err
		}
	case *unaryNode:
		e := c.expr(x.expr, s)
		return func(f *frame) (any, error) {
			v, err := e(f)
			if err != nil {
				return nil, err
			}
			if x.neg {
				return f.rt.ops.Neg(v)
			}
			return f.rt.ops.Pos(v)
		}
	case *binNode:
		return c.binary(x, s)
	case *concatNode:
		return c.concat(x, s)
	case *compareNode:
		return c.compare(x, s)
	}
	c.fail(n.pos(), "internal error: unknown expression")
	return nil
}

func (c *compiler) exprs(nodes []node, s *scope) []expr {
	out := make([]expr, len(nodes))
	for i, n := range nodes {
		out[i] = c.expr(n, s)
	}
	return out
}

// evalAll evaluates expressions into a new slice, which it charges.
func evalAll(f *frame, list []expr) ([]any, error) {
	if err := f.rt.ops.Alloc(32 + 32*len(list)); err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, e := range list {
		v, err := e(f)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (c *compiler) name(x *nameNode, s *scope) expr {
	r := c.ref(s, x.name)
	env, name := c.env, x.name
	if r.up == 0 {
		slot := r.slot
		return func(f *frame) (any, error) {
			v := f.vars[slot]
			if v == missing {
				return env.undefinedName(name), nil
			}
			return v, nil
		}
	}
	return func(f *frame) (any, error) {
		v := f.get(r)
		if v == missing {
			return env.undefinedName(name), nil
		}
		return v, nil
	}
}

func (c *compiler) dict(x *dictNode, s *scope) expr {
	keys := make([]expr, len(x.pairs))
	vals := make([]expr, len(x.pairs))
	for i, p := range x.pairs {
		keys[i], vals[i] = c.expr(p.key, s), c.expr(p.val, s)
	}
	return func(f *frame) (any, error) {
		if err := f.rt.ops.Alloc(64 + 128*len(keys)); err != nil {
			return nil, err
		}
		d := py.NewDict()
		for i := range keys {
			k, err := keys[i](f)
			if err != nil {
				return nil, err
			}
			v, err := vals[i](f)
			if err != nil {
				return nil, err
			}
			if err := d.Set(k, v); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
}

func (c *compiler) cond(x *condNode, s *scope) expr {
	soft := s.softened()
	then := c.expr(x.then, soft)
	test := c.expr(x.test, soft)
	var other expr
	if x.other != nil {
		other = c.expr(x.other, soft)
	} else {
		u := &undefined{hint: "the inline if-expression on line " + py.Str(int64(x.pos())) + " in " + quote(c.t.name) +
			" evaluated to false and no else section was defined."}
		other = constant(u)
	}
	return func(f *frame) (any, error) {
		v, err := test(f)
		if err != nil {
			return nil, err
		}
		t, err := py.TruthOf(v)
		if err != nil {
			return nil, err
		}
		if t {
			return then(f)
		}
		return other(f)
	}
}

func (c *compiler) logic(x *logicNode, s *scope) expr {
	left, right := c.expr(x.left, s), c.expr(x.right, s)
	or := x.or
	return func(f *frame) (any, error) {
		v, err := left(f)
		if err != nil {
			return nil, err
		}
		t, err := py.TruthOf(v)
		if err != nil {
			return nil, err
		}
		if t == or {
			return v, nil
		}
		return right(f)
	}
}

func (c *compiler) binary(x *binNode, s *scope) expr {
	left, right := c.expr(x.left, s), c.expr(x.right, s)
	var op func(o *py.Ops, a, b any) (any, error)
	switch x.op {
	case tAdd:
		op = (*py.Ops).Add
	case tSub:
		op = (*py.Ops).Sub
	case tMul:
		op = (*py.Ops).Mul
	case tDiv:
		op = (*py.Ops).Div
	case tFloorDiv:
		op = (*py.Ops).FloorDiv
	case tMod:
		op = (*py.Ops).Mod
	default:
		op = (*py.Ops).Pow
	}
	return func(f *frame) (any, error) {
		a, err := left(f)
		if err != nil {
			return nil, err
		}
		b, err := right(f)
		if err != nil {
			return nil, err
		}
		return op(f.rt.ops, a, b)
	}
}

func (c *compiler) concat(x *concatNode, s *scope) expr {
	items, esc := c.exprs(x.items, s), c.escape
	return func(f *frame) (any, error) {
		// Python evaluates all operands before the first str().
		vals := make([]any, len(items))
		for i, e := range items {
			v, err := e(f)
			if err != nil {
				return nil, err
			}
			vals[i] = v
		}
		parts := make([]string, len(vals))
		marked := esc.on(f.rt) && slices.ContainsFunc(vals, func(v any) bool { _, ok := v.(Markup); return ok })
		for i, v := range vals {
			if marked {
				safe, err := escape(f.rt.ops, v)
				if err != nil {
					return nil, err
				}
				v = safe
			}
			str, err := f.rt.ops.Str(v)
			if err != nil {
				return nil, err
			}
			parts[i] = str
		}
		text, err := f.rt.ops.Concat(parts...)
		if err != nil {
			return nil, err
		}
		if marked {
			return Markup(text), nil
		}
		return text, nil
	}
}

// compareOp is one comparison of Python.
func compareOp(o *py.Ops, op string, a, b any) (any, error) {
	switch op {
	case "==":
		return o.Equal(a, b)
	case "!=":
		eq, err := o.Equal(a, b)
		return !eq, err
	case "in":
		return o.Contains(b, a)
	case "not in":
		in, err := o.Contains(b, a)
		return !in, err
	}
	r, err := o.Compare(a, b, op)
	if err != nil {
		return nil, err
	}
	switch op {
	case "<":
		return r == -1, nil
	case "<=":
		return r == -1 || r == 0, nil
	case ">":
		return r == 1, nil
	}
	return r == 1 || r == 0, nil
}

func (c *compiler) compare(x *compareNode, s *scope) expr {
	first := c.expr(x.expr, s)
	ops := make([]string, len(x.ops))
	rest := make([]expr, len(x.ops))
	for i, o := range x.ops {
		ops[i], rest[i] = o.op, c.expr(o.expr, s)
	}
	return func(f *frame) (any, error) {
		a, err := first(f)
		if err != nil {
			return nil, err
		}
		var r any
		for i, e := range rest {
			b, err := e(f)
			if err != nil {
				return nil, err
			}
			if r, err = compareOp(f.rt.ops, ops[i], a, b); err != nil {
				return nil, err
			}
			if r != true {
				return r, nil
			}
			a = b
		}
		return r, nil
	}
}

func (c *compiler) attr(x *attrNode, s *scope) expr {
	obj := c.expr(x.expr, s)
	name := x.attr
	return func(f *frame) (any, error) {
		o, err := obj(f)
		if err != nil {
			return nil, err
		}
		return f.rt.getAttr(o, name, true)
	}
}

// getAttr is obj.name: the attribute, else the item.
func (rt *render) getAttr(obj any, name string, literal bool) (any, error) {
	if d, ok := obj.(*py.Dict); ok && !py.HasMethod(d, name) {
		if v, ok := d.GetStr(name); ok {
			return v, nil
		}
		return rt.noAttr(obj, name, literal)
	}
	if m, ok := obj.(Markup); ok {
		if v, ok := markupMethod(rt.ops, m, name); ok {
			return v, nil
		}
	}
	v, ok, err := rt.ops.Attr(obj, name)
	if ok || err != nil {
		return v, err
	}
	if v, ok, err = rt.ops.Item(obj, name); err != nil {
		if !isLookup(err) {
			return nil, err
		}
	} else if ok {
		return v, nil
	}
	return rt.noAttr(obj, name, literal)
}

func (rt *render) noAttr(obj any, name string, literal bool) (any, error) {
	if dunder(name) {
		return &undefined{hint: "access to attribute " + quote(name) + " of " + quote(py.TypeName(obj)) + " object is unsafe.",
			strict: rt.env.strict, class: ClassSecurity}, nil
	}
	return rt.env.undefinedItem(obj, name, literal), nil
}

// dunder tells the attributes that every Python object has and the sandbox keeps back.
func dunder(name string) bool {
	switch name {
	case "__class__", "__init__", "__dict__", "__doc__", "__module__", "__getattribute__", "__subclasshook__", "__new__",
		"__reduce__", "__reduce_ex__", "__setattr__", "__delattr__", "__dir__", "__eq__", "__hash__", "__repr__", "__str__",
		"__sizeof__", "__format__", "__init_subclass__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__":
		return true
	}
	return false
}

// isLookup tells the errors that mean "no such item".
func isLookup(err error) bool {
	return py.IsErr(err, py.TypeError) || py.IsErr(err, py.KeyError) || py.IsErr(err, py.IndexError) || py.IsErr(err, py.AttributeError)
}

// getItem is obj[key]: the item, else the attribute.
func (rt *render) getItem(obj, key any, literal bool) (any, error) {
	v, ok, err := rt.ops.Item(obj, key)
	if err != nil {
		if !isLookup(err) {
			return nil, err
		}
	} else if ok {
		return v, nil
	}
	if s, isStr := key.(string); isStr {
		if v, ok, err := rt.ops.Attr(obj, s); ok || err != nil {
			return v, err
		}
		return rt.noAttr(obj, s, literal)
	}
	return rt.env.undefinedItem(obj, key, literal), nil
}

func (c *compiler) item(x *itemNode, s *scope) expr {
	obj := c.expr(x.expr, s)
	if sl, ok := x.arg.(*sliceNode); ok {
		return c.slice(obj, sl, s)
	}
	key := c.expr(x.arg, s)
	if t, ok := x.arg.(*tupleNode); ok {
		for _, i := range t.items {
			if _, ok := i.(*sliceNode); ok {
				return func(*frame) (any, error) {
					return nil, py.Errorf(py.TypeError, "indices must be integers or slices, not tuple")
				}
			}
		}
	}
	_, literal := x.arg.(*constNode)
	return func(f *frame) (any, error) {
		o, err := obj(f)
		if err != nil {
			return nil, err
		}
		k, err := key(f)
		if err != nil {
			return nil, err
		}
		return f.rt.getItem(o, k, literal)
	}
}

func (c *compiler) slice(obj expr, x *sliceNode, s *scope) expr {
	var parts [3]expr
	for i, n := range []node{x.start, x.stop, x.step} {
		parts[i] = constant(nil)
		if !isNil(n) {
			parts[i] = c.expr(n, s)
		}
	}
	return func(f *frame) (any, error) {
		o, err := obj(f)
		if err != nil {
			return nil, err
		}
		var b [3]any
		for i, e := range parts {
			if b[i], err = e(f); err != nil {
				return nil, err
			}
		}
		return f.rt.ops.SliceOf(o, b[0], b[1], b[2])
	}
}
