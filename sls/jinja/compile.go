package jinja

import (
	"strings"
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
	escape       escaping
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

// enterScope returns the variables of a scope their first values.
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

// isPublic reports whether a variable of the top level is seen through an import.
func isPublic(name string) bool { return !strings.HasPrefix(name, "_") }
