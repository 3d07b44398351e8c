package jinja

import (
	"corpus-git/internal/py"
)

// store puts a value where an assignment says.
type store func(f *frame, v any) error

func (c *compiler) store(target node, s *scope) store {
	switch x := target.(type) {
	case *nameNode:
		r := c.ref(s, x.name)
		if r.up == 0 {
			slot := r.slot
			return func(f *frame, v any) error {
				f.vars[slot] = v
				return nil
			}
		}
		return func(f *frame, v any) error {
			f.set(r, v)
			return nil
		}
	case *nsRefNode:
		r := c.ref(s, x.name)
		attr := x.attr
		return func(f *frame, v any) error {
			ns, ok := f.get(r).(*namespace)
			if !ok {
				return raise(ClassRuntime, "cannot assign attribute on non-namespace object")
			}
			ns.vars.SetStr(attr, v)
			return f.rt.ops.Alloc(64)
		}
	case *tupleNode:
		stores := make([]store, len(x.items))
		for i, n := range x.items {
			stores[i] = c.store(n, s)
		}
		return func(f *frame, v any) error {
			items, err := unpack(f.rt.ops, v, len(stores))
			if err != nil {
				return err
			}
			for i, st := range stores {
				if err := st(f, items[i]); err != nil {
					return err
				}
			}
			return nil
		}
	}
	c.fail(target.pos(), "can't assign to %s", quote(nodeClass(target)))
	return nil
}

// unpack returns exactly n values of v.
func unpack(ops *py.Ops, v any, n int) ([]any, error) {
	switch x := v.(type) {
	case py.Tuple:
		if len(x) == n {
			return x, nil
		}
	case *py.List:
		if x.Len() == n {
			return append([]any(nil), x.Items()...), nil
		}
	}
	it, err := ops.Iter(v)
	if err != nil {
		if py.IsErr(err, py.TypeError) {
			return nil, py.Errorf(py.TypeError, "cannot unpack non-iterable %s object", py.TypeName(v))
		}
		return nil, err
	}
	var out []any
	for {
		e, ok, err := it.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if len(out) == n {
			return nil, py.Errorf(py.ValueError, "too many values to unpack (expected %d)", n)
		}
		out = append(out, e)
	}
	if len(out) < n {
		return nil, py.Errorf(py.ValueError, "not enough values to unpack (expected %d, got %d)", n, len(out))
	}
	return out, nil
}

// export returns the variables of the context that an assignment at the top level sets.
func (c *compiler) export(target node, s *scope) func(f *frame) {
	if !s.toplevel {
		return func(*frame) {}
	}
	var locals []localVar
	walk(target, func(n node) bool {
		if x, ok := n.(*nameNode); ok {
			locals = append(locals, localVar{x.name, c.ref(s, x.name)})
		}
		return true
	})
	return func(f *frame) {
		for _, l := range locals {
			f.ctx.vars[l.name] = f.get(l.ref)
			if isPublic(l.name) {
				f.ctx.exported[l.name] = true
			}
		}
	}
}

// checkNamespaces compiles the check that the ns of ns.attr targets are namespaces, which comes before the value is
// looked at.
func (c *compiler) checkNamespaces(target node, s *scope) []varRef {
	var refs []varRef
	walk(target, func(n node) bool {
		if x, ok := n.(*nsRefNode); ok {
			refs = append(refs, c.ref(s, x.name))
		}
		return true
	})
	return refs
}

func (c *compiler) assign(x *assignNode, s *scope) stmt {
	nsRefs := c.checkNamespaces(x.target, s)
	nsLine := c.line
	line := c.mark(x)
	st := c.store(x.target, s)
	value := c.expr(x.expr, s)
	export := c.export(x.target, s)
	return func(f *frame) error {
		if err := f.step(); err != nil {
			return err
		}
		for _, r := range nsRefs {
			if _, ok := f.get(r).(*namespace); !ok {
				f.line = nsLine
				return raise(ClassRuntime, "cannot assign attribute on non-namespace object")
			}
		}
		f.line = line
		v, err := value(f)
		if err != nil {
			return err
		}
		if err := st(f, v); err != nil {
			return err
		}
		export(f)
		return nil
	}
}

func (c *compiler) assignBlock(x *assignBlockNode, s *scope) stmt {
	in := s.inner()
	in.outputCheck = false
	in.sym.analyze(x, branchBody)
	enter, leave := c.enterScope(in), c.leaveScope(in)
	body := c.body(x.body, in)
	line := c.mark(x)
	st := c.store(x.target, s)
	var filter func(*frame, any) (any, error)
	if !isNil(x.filter) {
		filter = c.filterChain(x.filter, in)
	}
	export, escape := c.export(x.target, s), c.escape
	return func(f *frame) error {
		if err := f.step(); err != nil {
			return err
		}
		if err := enter(f); err != nil {
			return err
		}
		text, err := f.capture(func() error { return body(f) })
		if err != nil {
			return err
		}
		f.line = line
		v := escape.safe(f.rt, text)
		if filter != nil {
			if v, err = filter(f, v); err != nil {
				return err
			}
		}
		if err := st(f, v); err != nil {
			return err
		}
		export(f)
		leave(f)
		return nil
	}
}
