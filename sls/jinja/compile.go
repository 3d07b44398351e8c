package jinja

import (
	"strings"

	"corpus-git/internal/py"
)

// stmt and expr are compiled nodes.
type (
	stmt func(f *frame) error
	expr func(f *frame) (any, error)
)

// loopSignal is how break and continue travel to their loop.
type loopSignal struct{ name string }

func (s *loopSignal) Error() string { return "'" + s.name + "' outside loop" }

var (
	errBreak    = &loopSignal{"break"}
	errContinue = &loopSignal{"continue"}
)

// templateCode is a compiled template.
type templateCode struct {
	root   stmt
	slots  int
	blocks map[string]*blockCode
}

// scope is what Jinja2's compiler calls a frame: the names of a place in the template and what may be done there.
type scope struct {
	sym         *symbols
	toplevel    bool
	rootlevel   bool
	soft        bool
	inLoop      bool // break and continue have a loop to go to
	outputCheck bool
}

func (s *scope) inner() *scope {
	return &scope{sym: newSymbols(s.sym, s.sym.fn), outputCheck: s.outputCheck, inLoop: s.inLoop}
}

// innerFunc is inner, in a function of its own.
func (s *scope) innerFunc() *scope {
	return &scope{sym: newSymbols(s.sym, newFunction(s.sym.fn)), outputCheck: s.outputCheck}
}

func (s *scope) softened() *scope {
	c := *s
	c.sym = s.sym.copy()
	c.rootlevel = false
	c.soft = true
	return &c
}

// compiler turns nodes into closures. line is the line that Jinja2 would report for code generated now.
type compiler struct {
	t            *Template
	env          *Environment
	line         int
	blocks       []*blockNode
	codes        map[string]*blockCode
	knownExtends bool
	extends      int
	done         bool
}

func (c *compiler) fail(line int, format string, args ...any) {
	err := raise(ClassAssertion, format, args...).(*raised)
	err.line = line
	panic(parseError{err})
}

func compileTemplate(t *Template) (code *templateCode, err error) {
	c := &compiler{t: t, env: t.env, line: 1, codes: map[string]*blockCode{}}
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			code, err = nil, pe.err
		}
	}()
	haveExtends := false
	walk(t.ast, func(n node) bool {
		switch x := n.(type) {
		case *extendsNode:
			haveExtends = true
		case *blockNode:
			if c.codes[x.name] != nil {
				c.fail(x.pos(), "block %s defined twice", quote(x.name))
			}
			c.blocks = append(c.blocks, x)
			c.codes[x.name] = &blockCode{name: x.name, tmpl: t}
		}
		return true
	})
	fn := newFunction(nil)
	root := &scope{sym: newSymbols(nil, fn), toplevel: true, rootlevel: true, outputCheck: haveExtends}
	var pre []stmt
	if undeclared(t.ast.body, "self")["self"] {
		slot := root.sym.param("self").slot
		pre = append(pre, func(f *frame) error {
			f.vars[slot] = &templateRef{f.ctx}
			return nil
		})
	}
	root.sym.analyze(t.ast, branchBody)
	pre = append(pre, c.enterScope(root))
	body := c.body(t.ast.body, root)
	code = &templateCode{blocks: c.codes}
	code.root = func(f *frame) error {
		for _, s := range pre {
			if err := s(f); err != nil {
				return err
			}
		}
		return body(f)
	}
	code.slots = len(fn.vars)
	for _, b := range c.blocks {
		c.block(b)
	}
	return code, nil
}

// block compiles the body of a block, which is a function of its own and sees only the context.
func (c *compiler) block(b *blockNode) {
	code := c.codes[b.name]
	fn := newFunction(nil)
	s := &scope{sym: newSymbols(nil, fn)}
	und := undeclared(b.body, "self", "super")
	selfAt, superAt := -1, -1
	if und["self"] {
		selfAt = s.sym.param("self").slot
	}
	if und["super"] {
		superAt = s.sym.param("super").slot
	}
	s.sym.analyze(b, branchBody)
	c.line = b.pos()
	line := b.pos()
	enter := c.enterScope(s)
	body := c.body(b.body, s)
	code.body = func(f *frame) error {
		f.line = line
		if selfAt >= 0 {
			f.vars[selfAt] = &templateRef{f.ctx}
		}
		if superAt >= 0 {
			f.vars[superAt] = f.ctx.super(b.name, code)
		}
		if err := enter(f); err != nil {
			return err
		}
		return body(f)
	}
	code.slots = len(fn.vars)
}

// ref says where the variable that a name means in a scope lives.
func (c *compiler) ref(s *scope, name string) varRef {
	return c.refOf(s, s.sym.find(name), name)
}

func (c *compiler) refOf(s *scope, v *variable, name string) varRef {
	if v == nil {
		c.fail(c.line, "internal error: unknown name %s", quote(name))
	}
	r := varRef{slot: v.slot}
	for fn := s.sym.fn; fn != v.fn; fn = fn.parent {
		if fn == nil {
			c.fail(c.line, "internal error: name %s is out of reach", quote(name))
		}
		r.up++
	}
	return r
}

// enterScope gives the variables of a scope their first values.
func (c *compiler) enterScope(s *scope) stmt {
	type op struct {
		slot  int
		kind  loadKind
		name  string
		alias varRef
	}
	var ops []op
	for _, v := range s.sym.order {
		l := s.sym.loads[v]
		switch l.kind {
		case loadParam:
		case loadAlias:
			ops = append(ops, op{v.slot, loadAlias, "", c.refOf(s, l.alias, v.name)})
		case loadResolve:
			ops = append(ops, op{slot: v.slot, kind: loadResolve, name: v.name})
		case loadUndefined:
			ops = append(ops, op{slot: v.slot, kind: loadUndefined})
		}
	}
	return func(f *frame) error {
		for i := range ops {
			switch o := &ops[i]; o.kind {
			case loadAlias:
				f.vars[o.slot] = f.get(o.alias)
			case loadResolve:
				f.vars[o.slot] = f.ctx.lookup(o.name)
			default:
				f.vars[o.slot] = missing
			}
		}
		return nil
	}
}

// leaveScope forgets the variables of a scope.
func (c *compiler) leaveScope(s *scope) func(f *frame) {
	slots := make([]int, len(s.sym.order))
	for i, v := range s.sym.order {
		slots[i] = v.slot
	}
	return func(f *frame) {
		for _, i := range slots {
			f.vars[i] = missing
		}
	}
}

// body compiles statements in order.
func (c *compiler) body(nodes []node, s *scope) stmt {
	var list []stmt
	for _, n := range nodes {
		if c.done {
			break
		}
		if st := c.stmt(n, s); st != nil {
			list = append(list, st)
		}
	}
	switch len(list) {
	case 0:
		return func(*frame) error { return nil }
	case 1:
		return list[0]
	}
	return func(f *frame) error {
		for _, st := range list {
			if err := st(f); err != nil {
				return err
			}
		}
		return nil
	}
}

// mark notes that code for a line follows.
func (c *compiler) mark(n node) int {
	c.line = n.pos()
	return c.line
}

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
			text(py.Str(k.val), k.pos(), false)
			continue
		}
		line := c.mark(n)
		items = append(items, item{e: c.expr(n, s), line: line})
	}
	check := s.outputCheck
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
			str, ok := v.(string)
			if !ok {
				if str, err = f.rt.ops.Str(v); err != nil {
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

// scopeStmt compiles {% autoescape %}: a scope; what it asks for is evaluated and changes nothing.
func (c *compiler) scopeStmt(x *scopeNode, s *scope) stmt {
	in := s.inner()
	in.sym.analyze(x, branchBody)
	enter, leave := c.enterScope(in), c.leaveScope(in)
	line := c.line
	var opts []expr
	for _, o := range x.options {
		opts = append(opts, c.expr(o, in))
	}
	body := c.body(x.body, in)
	return func(f *frame) error {
		f.line = line
		if err := enter(f); err != nil {
			return err
		}
		for _, o := range opts {
			if _, err := o(f); err != nil {
				return err
			}
		}
		err := body(f)
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
	filter := c.filterChain(x.filter, in)
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
		v, err := filter(f, text)
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

// isPublic tells whether a variable of the top level is seen through an import.
func isPublic(name string) bool { return !strings.HasPrefix(name, "_") }
