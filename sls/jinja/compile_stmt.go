package jinja

import (
	"corpus-git/internal/py"
)

func (c *compiler) stmt(n node, s *scope) stmt {
	switch x := n.(type) {
	case *outputNode:
		return c.output(x, s)
	case *ifNode:
		return c.ifStmt(x, s)
	case *forNode:
		return c.forStmt(x, s)
	case *assignNode:
		return c.assign(x, s)
	case *assignBlockNode:
		return c.assignBlock(x, s)
	case *exprStmtNode:
		line := c.mark(x)
		e := c.expr(x.expr, s)
		return func(f *frame) error {
			f.line = line
			if err := f.step(); err != nil {
				return err
			}
			_, err := e(f)
			return err
		}
	case *macroNode:
		return c.macroStmt(x, s)
	case *callBlockNode:
		return c.callBlock(x, s)
	case *filterBlockNode:
		return c.filterBlock(x, s)
	case *withNode:
		return c.with(x, s)
	case *scopeNode:
		return c.scopeStmt(x, s)
	case *blockNode:
		return c.blockStmt(x, s)
	case *extendsNode:
		return c.extendsStmt(x, s)
	case *includeNode:
		return c.include(x, s)
	case *importNode:
		return c.importStmt(x, s)
	case *fromNode:
		return c.fromStmt(x, s)
	case *breakNode:
		return c.loopJump(x, s, errBreak)
	case *continueNode:
		return c.loopJump(x, s, errContinue)
	}
	c.fail(n.pos(), "internal error: unknown statement")
	return nil
}

func (c *compiler) loopJump(n node, s *scope, sig *loopSignal) stmt {
	line := c.mark(n)
	if !s.inLoop {
		panic(parseError{&raised{class: ClassSyntax, msg: sig.Error(), line: line}})
	}
	return func(f *frame) error { return sig }
}

// output compiles text and {{ }}.
func (c *compiler) output(x *outputNode, s *scope) stmt {
	if s.outputCheck && c.knownExtends {
		return nil
	}
	type item struct {
		text   string
		pieces []piece // that text is made of
		e      expr
		line   int
	}
	var items []item
	text := func(t string, line int, own bool) {
		if n := len(items); n == 0 || items[n-1].e != nil {
			items = append(items, item{})
		}
		last := &items[len(items)-1]
		last.text += t
		last.pieces = append(last.pieces, piece{t, line, own})
	}
	for _, n := range x.nodes {
		switch k := n.(type) {
		case *dataNode:
			text(k.text, k.pos(), true)
			continue
		case *constNode:
			if c.escape != escapeAll {
				text(py.Str(k.val), k.pos(), false)
				continue
			}
		}
		line := c.mark(n)
		items = append(items, item{e: c.expr(n, s), line: line})
	}
	check, esc := s.outputCheck, c.escape
	if len(items) == 1 && items[0].e == nil && !check {
		it := items[0]
		return func(f *frame) error { return f.writeText(it.text, it.pieces) }
	}
	return func(f *frame) error {
		if check && f.extend != nil {
			return nil
		}
		if err := f.step(); err != nil {
			return err
		}
		for i := range items {
			it := &items[i]
			if it.e == nil {
				if err := f.writeText(it.text, it.pieces); err != nil {
					return err
				}
				continue
			}
			f.line = it.line
			before := f.rt.captures()
			v, err := it.e(f)
			if err != nil {
				return err
			}
			if esc.on(f.rt) {
				if v, err = escape(f.rt.ops, v); err != nil {
					return err
				}
			}
			str, ok := v.(string)
			if !ok {
				if str, err = f.rt.print(v); err != nil {
					return err
				}
			}
			if err := f.writeValue(str, before); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *compiler) ifStmt(x *ifNode, s *scope) stmt {
	soft := s.softened()
	type branch struct {
		line int
		test expr
		body stmt
	}
	var branches []branch
	for _, n := range append([]*ifNode{x}, x.elifs...) {
		b := branch{line: c.mark(n)}
		b.test = c.expr(n.test, soft)
		b.body = c.body(n.body, soft)
		branches = append(branches, b)
	}
	other := c.body(x.other, soft)
	return func(f *frame) error {
		if err := f.step(); err != nil {
			return err
		}
		for i := range branches {
			b := &branches[i]
			f.line = b.line
			v, err := b.test(f)
			if err != nil {
				return err
			}
			t, ok := v.(bool)
			if !ok {
				if t, err = py.TruthOf(v); err != nil {
					return err
				}
			}
			if t {
				return b.body(f)
			}
		}
		return other(f)
	}
}

func (c *compiler) with(x *withNode, s *scope) stmt {
	in := s.inner()
	in.sym.analyze(x, branchBody)
	enter := c.enterScope(in)
	leave := c.leaveScope(in)
	line := c.line
	var targets []store
	var values []expr
	for i, t := range x.targets {
		targets = append(targets, c.store(t, in))
		values = append(values, c.expr(x.values[i], s))
	}
	body := c.body(x.body, in)
	return func(f *frame) error {
		f.line = line
		if err := f.step(); err != nil {
			return err
		}
		if err := enter(f); err != nil {
			return err
		}
		for i, e := range values {
			v, err := e(f)
			if err != nil {
				return err
			}
			if err := targets[i](f, v); err != nil {
				return err
			}
		}
		err := body(f)
		leave(f)
		return err
	}
}

// scopeStmt compiles {% autoescape %}: a scope that escapes what it prints, or does not.
func (c *compiler) scopeStmt(x *scopeNode, s *scope) stmt {
	in := s.inner()
	in.sym.analyze(x, branchBody)
	enter, leave := c.enterScope(in), c.leaveScope(in)
	line := c.line
	option, outer := c.expr(x.option, in), c.escape
	c.escape = escapeAsks
	if k, ok := x.option.(*constNode); ok {
		c.escape = escapeNot
		if py.Truth(k.val) {
			c.escape = escapeAll
		}
	}
	body := c.body(x.body, in)
	c.escape = outer
	return func(f *frame) error {
		f.line = line
		if err := enter(f); err != nil {
			return err
		}
		v, err := option(f)
		if err != nil {
			return err
		}
		on, err := py.TruthOf(v)
		if err != nil {
			return err
		}
		was := f.rt.autoescape
		f.rt.autoescape = on
		err = body(f)
		f.rt.autoescape = was
		leave(f)
		return err
	}
}

func (c *compiler) filterBlock(x *filterBlockNode, s *scope) stmt {
	in := s.inner()
	in.sym.analyze(x, branchBody)
	enter, leave := c.enterScope(in), c.leaveScope(in)
	body := c.body(x.body, in)
	line := c.mark(x)
	filter, esc := c.filterChain(x.filter, in), c.escape
	return func(f *frame) error {
		if err := f.step(); err != nil {
			return err
		}
		if err := enter(f); err != nil {
			return err
		}
		before := f.rt.captures()
		text, err := f.capture(func() error { return body(f) })
		if err != nil {
			return err
		}
		f.line = line
		v, err := filter(f, esc.safe(f.rt, text))
		if err != nil {
			return err
		}
		str, err := f.rt.ops.Str(v)
		if err != nil {
			return err
		}
		leave(f)
		return f.writeValue(str, before)
	}
}
