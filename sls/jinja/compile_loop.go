package jinja

import (
	"corpus-git/internal/py"
)

// loopCode is what a compiled loop runs.
type loopCode struct {
	line      int
	extended  bool
	loopSlot  int
	enter     stmt
	leave     func(*frame)
	target    store
	body      stmt
	elseEnter stmt
	elseLeave func(*frame)
	other     stmt // nil without {% else %}
	filter    func(f *frame, it py.Iterator) py.Iterator
}

func (c *compiler) forStmt(x *forNode, s *scope) stmt {
	extended := x.recursive || undeclared(x.body, "loop")["loop"]
	walk(x, func(n node) bool {
		if b, ok := n.(*blockNode); ok && b.scoped {
			extended = true
		}
		return true
	})
	inner := s.inner
	if x.recursive {
		inner = s.innerFunc
	}
	loop := inner()
	loop.inLoop = true
	other := &scope{sym: newSymbols(loop.sym.parent, loop.sym.fn), outputCheck: s.outputCheck, inLoop: s.inLoop && !x.recursive}
	code := &loopCode{extended: extended}
	if extended {
		code.loopSlot = loop.sym.param("loop").slot
	}
	loop.sym.analyze(x, branchBody)
	if x.other != nil {
		other.sym.analyze(x, branchElse)
	}
	if !isNil(x.test) {
		code.filter = c.loopFilter(x, loop)
	}
	code.line = c.mark(x)
	walk(x, func(n node) bool {
		if nm, ok := n.(*nameNode); ok && nm.ctx == ctxStore && nm.name == "loop" {
			c.fail(nm.pos(), "Can't assign to special loop variable in for-loop target")
		}
		return true
	})
	code.target = c.store(x.target, loop)
	iter := c.expr(x.iter, s)
	code.enter, code.leave = c.enterScope(loop), c.leaveScope(loop)
	code.body = c.body(x.body, loop)
	if x.other != nil {
		code.elseEnter, code.elseLeave = c.enterScope(other), c.leaveScope(other)
		code.other = c.body(x.other, other)
	}
	if !x.recursive {
		return func(f *frame) error {
			f.line = code.line
			v, err := iter(f)
			if err != nil {
				return err
			}
			return code.run(f, v, nil, 0)
		}
	}
	c.line = x.pos()
	return c.recursiveLoop(code, iter, loop.sym.fn)
}

// recursiveLoop compiles a loop that can be called: each call is a frame of its own, and gives text.
func (c *compiler) recursiveLoop(code *loopCode, iter expr, fn *function) stmt {
	t := c.t
	return func(f *frame) error {
		def := f
		var recurse func(iterable any, depth int) (any, error)
		recurse = func(iterable any, depth int) (any, error) {
			rt := def.rt
			if err := rt.enter(); err != nil {
				return nil, err
			}
			defer rt.leave()
			g := &frame{rt: rt, tmpl: t, ctx: def.ctx, parent: def, vars: make([]any, len(fn.vars)), line: code.line}
			for i := range g.vars {
				g.vars[i] = missing
			}
			out := rt.newBuffer()
			g.out = out
			if err := code.run(g, iterable, recurse, depth); err != nil {
				return nil, locate(err, t.display, g.line)
			}
			return escapeAsks.safe(rt, rt.captured(out)), nil
		}
		f.line = code.line
		v, err := iter(f)
		if err != nil {
			return err
		}
		before := f.rt.captures()
		text, err := recurse(v, 0)
		if err != nil {
			return err
		}
		return f.writeValue(plain(text).(string), before)
	}
}

// run executes the loop over a value.
func (l *loopCode) run(f *frame, iterable any, recurse func(any, int) (any, error), depth int) error {
	if err := f.step(); err != nil {
		return err
	}
	if l.filter == nil && !l.extended {
		switch x := iterable.(type) {
		case py.Tuple:
			return l.runSlice(f, x)
		case *py.List: // items may be appended on the way
			return l.runList(f, x)
		}
	}
	it, err := f.rt.ops.Iter(iterable)
	if err != nil {
		return err
	}
	sized := iterable
	if l.filter != nil {
		it = l.filter(f, it)
		sized = it
	}
	var loop *loopContext
	if l.extended {
		loop = newLoop(f.rt, sized, it)
		loop.recurse, loop.depth0 = recurse, depth
	}
	empty := true
	for {
		f.line = l.line
		var v any
		var ok bool
		if loop != nil {
			v, ok, err = loop.next()
		} else {
			v, ok, err = it.Next()
		}
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if loop != nil {
			f.vars[l.loopSlot] = loop
		}
		done, began, err := l.iteration(f, v)
		if err != nil {
			return err
		}
		if began {
			empty = false
		}
		if done {
			break
		}
	}
	return l.finish(f, empty)
}

func (l *loopCode) runSlice(f *frame, items []any) error {
	empty := true
	for _, v := range items {
		done, began, err := l.iteration(f, v)
		if err != nil {
			return err
		}
		empty = empty && !began
		if done {
			break
		}
	}
	return l.finish(f, empty)
}

func (l *loopCode) runList(f *frame, list *py.List) error {
	empty := true
	for i := 0; i < list.Len(); i++ {
		done, began, err := l.iteration(f, list.At(i))
		if err != nil {
			return err
		}
		empty = empty && !began
		if done {
			break
		}
	}
	return l.finish(f, empty)
}

// iteration runs the body for one item. began is false if the body did not come to its end: Jinja2 takes a loop
// whose only pass was broken off for an empty one.
func (l *loopCode) iteration(f *frame, v any) (done, began bool, err error) {
	f.line = l.line
	if err := f.step(); err != nil {
		return false, false, err
	}
	if err := l.target(f, v); err != nil {
		return false, false, err
	}
	if err := l.enter(f); err != nil {
		return false, false, err
	}
	switch err := l.body(f); err {
	case nil:
		return false, true, nil
	case error(errBreak):
		return true, false, nil
	case error(errContinue):
		return false, false, nil
	default:
		return false, false, err
	}
}

func (l *loopCode) finish(f *frame, empty bool) error {
	l.leave(f)
	if l.other == nil || !empty {
		return nil
	}
	if err := l.elseEnter(f); err != nil {
		return err
	}
	err := l.other(f)
	l.elseLeave(f)
	return err
}

// loopFilter compiles the condition of {% for … if … %}: a function of its own, asked when the loop wants an item.
func (c *compiler) loopFilter(x *forNode, loop *scope) func(f *frame, it py.Iterator) py.Iterator {
	test := &scope{sym: newSymbols(loop.sym.parent, newFunction(loop.sym.fn))}
	test.sym.analyze(x, branchTest)
	line := c.mark(x.test)
	enter := c.enterScope(test)
	target := c.store(x.target, test)
	cond := c.expr(x.test, test)
	again := c.retuple(x.target, test)
	fn, t := test.sym.fn, c.t
	return func(f *frame, it py.Iterator) py.Iterator {
		g := &frame{rt: f.rt, tmpl: t, ctx: f.ctx, parent: f, vars: make([]any, len(fn.vars)), line: line, out: f.out}
		for i := range g.vars {
			g.vars[i] = missing
		}
		entered := false
		next := func() (any, bool, error) {
			for {
				v, ok, err := it.Next()
				if err != nil || !ok {
					return nil, false, err
				}
				if err := g.step(); err != nil {
					return nil, false, err
				}
				if !entered {
					if err := enter(g); err != nil {
						return nil, false, err
					}
					entered = true
				}
				if err := target(g, v); err != nil {
					return nil, false, err
				}
				r, err := cond(g)
				if err != nil {
					return nil, false, err
				}
				keep, err := py.TruthOf(r)
				if err != nil {
					return nil, false, err
				}
				if keep {
					return again(g, v), true, nil
				}
			}
		}
		return py.IterFunc(func() (any, bool, error) {
			v, ok, err := next()
			if err != nil {
				err = locate(err, t.display, g.line)
			}
			return v, ok, err
		})
	}
}

// retuple returns the value that a loop's condition passes on: Jinja2 unpacks an item into the targets and makes tuples
// of them again.
func (c *compiler) retuple(target node, s *scope) func(f *frame, v any) any {
	t, ok := target.(*tupleNode)
	if !ok {
		return func(_ *frame, v any) any { return v }
	}
	items := make([]func(*frame, any) any, len(t.items))
	for i, n := range t.items {
		if nm, ok := n.(*nameNode); ok {
			r := c.ref(s, nm.name)
			items[i] = func(f *frame, _ any) any { return f.get(r) }
			continue
		}
		items[i] = c.retuple(n, s)
	}
	return func(f *frame, _ any) any {
		out := make(py.Tuple, len(items))
		for i, it := range items {
			out[i] = it(f, nil)
		}
		return out
	}
}
