package jinja

import (
	"corpus-git/internal/py"
)

// macroBody compiles a macro or the body of a call block. call blocks have no name.
func (c *compiler) macroBody(n node, name string, args []*nameNode, defaults, body []node, s *scope) *macroCode {
	in := s.innerFunc()
	in.outputCheck = false
	in.sym.analyze(n, branchBody)
	code := &macroCode{name: name, anonymous: name == "", line: n.pos()}
	explicitAt := -1
	special := map[string]bool{}
	for i, a := range args {
		if a.name == "caller" {
			explicitAt = i
		}
		special[a.name] = true
		code.args = append(code.args, a.name)
		code.argSlots = append(code.argSlots, in.sym.find(a.name).slot)
	}
	und := undeclared(body, "caller", "kwargs", "varargs")
	if und["caller"] {
		if explicitAt >= 0 {
			if explicitAt < len(args)-len(defaults) {
				c.fail(n.pos(), "When defining macros or call blocks the special \"caller\" argument must be omitted "+
					"or be given a default.")
			}
		} else {
			code.callerAt = in.sym.param("caller").slot
		}
		code.caller = true
	}
	code.explicit = explicitAt >= 0
	if und["kwargs"] && !special["kwargs"] {
		code.kwargsAt = in.sym.param("kwargs").slot
		code.kwargs = true
	}
	if und["varargs"] && !special["varargs"] {
		code.varargsAt = in.sym.param("varargs").slot
		code.varargs = true
	}
	in.sym.analyze(n, branchBody)
	line := c.mark(n)
	enter := c.enterScope(in)
	dflt := make([]expr, len(args))
	for i := range args {
		if j := i - (len(args) - len(defaults)); j >= 0 {
			dflt[i] = c.expr(defaults[j], in)
		}
	}
	run := c.body(body, in)
	argSlots := code.argSlots
	code.body = func(f *frame) error {
		f.line = line
		if err := enter(f); err != nil {
			return err
		}
		for i, slot := range argSlots {
			if f.vars[slot] != missing {
				continue
			}
			if dflt[i] == nil {
				f.vars[slot] = &undefined{hint: "parameter " + quote(args[i].name) + " was not provided",
					name: args[i].name, strict: f.rt.env.strict}
				continue
			}
			v, err := dflt[i](f)
			if err != nil {
				return err
			}
			f.vars[slot] = v
		}
		return run(f)
	}
	code.slots = len(in.sym.fn.vars)
	return code
}

func (c *compiler) macroStmt(x *macroNode, s *scope) stmt {
	code := c.macroBody(x, x.name, x.args, x.defaults, x.body, s)
	r := c.ref(s, x.name)
	top, name := s.toplevel, x.name
	return func(f *frame) error {
		m := &macro{code: code, def: f}
		f.set(r, m)
		if top {
			f.ctx.vars[name] = m
			if isPublic(name) {
				f.ctx.exported[name] = true
			}
		}
		return f.rt.ops.Alloc(64)
	}
}

func (c *compiler) callBlock(x *callBlockNode, s *scope) stmt {
	code := c.macroBody(x, "", x.args, x.defaults, x.body, s)
	line := c.mark(x)
	call := c.call(x.call, s, true)
	return func(f *frame) error {
		f.line = line
		if err := f.step(); err != nil {
			return err
		}
		before := f.rt.captures()
		v, err := call(f, &macro{code: code, def: f})
		if err != nil {
			return err
		}
		str, err := f.rt.ops.Str(v)
		if err != nil {
			return err
		}
		return f.writeValue(str, before)
	}
}

func (c *compiler) locals(s *scope) []localVar {
	vis := s.sym.visible()
	out := make([]localVar, 0, len(vis))
	for name, v := range vis {
		out = append(out, localVar{name, c.refOf(s, v, name)})
	}
	return out
}

func (c *compiler) blockStmt(x *blockNode, s *scope) stmt {
	check := false
	if s.toplevel {
		if c.knownExtends {
			return nil
		}
		check = c.extends > 0
	}
	line := c.mark(x)
	var locals []localVar
	if x.scoped {
		locals = c.locals(s)
	}
	return func(f *frame) error {
		if check && f.extend != nil {
			return nil
		}
		f.line = line
		if err := f.step(); err != nil {
			return err
		}
		ctx := f.ctx
		stack := ctx.blocks[x.name]
		if x.required && len(stack) <= 1 {
			return raise(ClassRuntime, "Required block %s not found", quote(x.name))
		}
		if x.scoped {
			ctx = ctx.derived(ctx.with(f, locals))
		}
		return stack[0].run(ctx, f.out)
	}
}

func (c *compiler) extendsStmt(x *extendsNode, s *scope) stmt {
	if !s.toplevel {
		c.fail(x.pos(), "cannot use extend from a non top-level scope")
	}
	twiceLine := c.line
	again := c.extends > 0
	if again && c.knownExtends {
		c.done = true
		return func(f *frame) error {
			f.line = twiceLine
			return raise(ClassRuntime, "extended multiple times")
		}
	}
	line := c.mark(x)
	name := c.expr(x.template, s)
	if s.rootlevel {
		c.knownExtends = true
	}
	c.extends++
	return func(f *frame) error {
		if again && f.extend != nil {
			f.line = twiceLine
			return raise(ClassRuntime, "extended multiple times")
		}
		f.line = line
		v, err := name(f)
		if err != nil {
			return err
		}
		parent, err := f.template(v)
		if err != nil {
			return err
		}
		for n, b := range parent.code.blocks {
			f.ctx.blocks[n] = append(f.ctx.blocks[n], b)
		}
		f.extend = parent
		return nil
	}
}

// template loads the template that a value names.
func (f *frame) template(v any) (*Template, error) {
	switch x := v.(type) {
	case string:
		return f.rt.load(x)
	case *undefined:
		return nil, x.Fail()
	}
	return nil, py.Errorf(py.TypeError, "the name of a template must be a string, not %s", py.TypeName(v))
}

// selectTemplate loads the first template of a name or of a list of names.
func (f *frame) selectTemplate(v any) (*Template, error) {
	switch v.(type) {
	case string, *undefined:
		return f.template(v)
	}
	names, err := f.rt.ops.Slice(v)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &Error{Class: ClassNotFounds, Msg: "Tried to select from an empty list of templates."}
	}
	msg := "none of the templates given were found: "
	for i, n := range names {
		t, err := f.template(n)
		if err == nil {
			return t, nil
		}
		if u, ok := n.(*undefined); ok {
			n = u.message()
		} else if !isNotFound(err) {
			return nil, err
		}
		if i > 0 {
			msg += ", "
		}
		s, _ := n.(string)
		msg += trimName(s)
	}
	return nil, &Error{Class: ClassNotFounds, Msg: msg}
}

func isNotFound(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Template == "" && (e.Class == ClassNotFound || e.Class == ClassNotFounds)
}

func (c *compiler) include(x *includeNode, s *scope) stmt {
	line := c.mark(x)
	name := c.expr(x.template, s)
	var locals []localVar
	if x.withContext {
		locals = c.locals(s)
	}
	return func(f *frame) error {
		f.line = line
		if err := f.step(); err != nil {
			return err
		}
		v, err := name(f)
		if err != nil {
			return err
		}
		t, err := f.selectTemplate(v)
		if err != nil {
			if x.ignoreMissing && isNotFound(err) {
				return nil
			}
			return err
		}
		if x.withContext {
			return t.run(f.rt, newContext(f.rt, t, f.ctx.with(f, locals)), f.out)
		}
		m, err := f.rt.defaultModule(t)
		if err != nil {
			return err
		}
		return f.writeLines(m.body, m.line)
	}
}

// importModule compiles the loading of the template of an import.
func (c *compiler) importModule(template node, withContext bool, s *scope) func(f *frame) (*module, error) {
	name := c.expr(template, s)
	var locals []localVar
	if withContext {
		locals = c.locals(s)
	}
	return func(f *frame) (*module, error) {
		if err := f.step(); err != nil {
			return nil, err
		}
		v, err := name(f)
		if err != nil {
			return nil, err
		}
		t, err := f.template(v)
		if err != nil {
			return nil, err
		}
		if withContext {
			return f.rt.module(t, f.ctx.with(f, locals))
		}
		return f.rt.defaultModule(t)
	}
}

func (c *compiler) importStmt(x *importNode, s *scope) stmt {
	line := c.mark(x)
	r := c.ref(s, x.target)
	load := c.importModule(x.template, x.withContext, s)
	return func(f *frame) error {
		f.line = line
		m, err := load(f)
		if err != nil {
			return err
		}
		f.set(r, m)
		if s.toplevel {
			f.ctx.vars[x.target] = m
			delete(f.ctx.exported, x.target)
		}
		return nil
	}
}

func (c *compiler) fromStmt(x *fromNode, s *scope) stmt {
	line := c.mark(x)
	load := c.importModule(x.template, x.withContext, s)
	refs := make([]varRef, len(x.names))
	for i, n := range x.names {
		refs[i] = c.ref(s, n.alias)
	}
	where := "line " + py.Str(int64(x.pos())) + " in " + quote(c.t.name)
	return func(f *frame) error {
		f.line = line
		m, err := load(f)
		if err != nil {
			return err
		}
		for i, n := range x.names {
			v, ok := m.vars[n.name]
			if !ok {
				v = &undefined{hint: "the template " + quote(m.name) + " (imported on " + where +
					") does not export the requested name " + quote(n.name), name: n.name, strict: f.rt.env.strict}
			}
			f.set(refs[i], v)
			if s.toplevel {
				f.ctx.vars[n.alias] = v
				delete(f.ctx.exported, n.alias)
			}
		}
		return nil
	}
}
