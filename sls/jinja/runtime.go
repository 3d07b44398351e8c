package jinja

import (
	"context"
	"maps"
	"strings"

	"corpus-git/internal/printable"
	"corpus-git/internal/py"
)

// missingType marks a variable that has no value.
type missingType struct{}

var missing any = missingType{}

// buffer collects output.
type buffer struct {
	b      strings.Builder
	charge bool   // captured text is a value, and is charged as one
	lines  *Lines // nil where nobody asks for them
}

// render is the state of one render.
type render struct {
	env     *Environment
	ctx     context.Context
	ops     *py.Ops
	globals *names
	modules map[*Template]*module
	loaded  map[string]bool
	sets    map[string]any // by Options.Find
	// autoescape is what the innermost {% autoescape %} says that is being rendered.
	autoescape bool
	depth      int
	out        buffer
	texts      *captures // nil where nobody asks for lines
}

// newBuffer returns the output of something that gives text as a value.
func (rt *render) newBuffer() *buffer {
	b := &buffer{charge: true}
	if rt.texts != nil {
		b.lines = &Lines{}
	}
	return b
}

// captured returns the text of such a buffer.
func (rt *render) captured(b *buffer) string {
	s := b.b.String()
	if rt.texts != nil {
		rt.texts.add(s, b.lines)
	}
	return s
}

// frame is one running function of a template.
type frame struct {
	rt     *render
	tmpl   *Template
	ctx    *Context
	parent *frame
	vars   []any
	out    *buffer
	line   int
	extend *Template // the parent template, once {% extends %} ran
}

// step charges one statement.
func (f *frame) step() error { return f.rt.ops.Step(1) }

// write appends the value of a tag to the frame's output.
func (f *frame) write(s string) error {
	if err := f.append(s); err != nil {
		return err
	}
	if f.out.lines != nil {
		f.out.lines.write(s, f.tmpl, f.line, false)
	}
	return nil
}

// writeText appends text of the template.
func (f *frame) writeText(s string, pieces []piece) error {
	if err := f.append(s); err != nil {
		return err
	}
	if f.out.lines != nil {
		for _, p := range pieces {
			f.out.lines.write(p.text, f.tmpl, p.line, p.own)
		}
	}
	return nil
}

// writeValue appends what a tag evaluated to; before is the number of captures when it began to.
func (f *frame) writeValue(s string, before int) error {
	if f.out.lines != nil {
		if lines := f.rt.texts.find(s, before); lines != nil {
			return f.writeLines(s, lines)
		}
	}
	return f.write(s)
}

// writeLines appends a text whose lines are known; they may be nil.
func (f *frame) writeLines(s string, lines *Lines) error {
	if lines == nil {
		return f.write(s)
	}
	if err := f.append(s); err != nil {
		return err
	}
	if f.out.lines != nil {
		f.out.lines.splice(lines)
	}
	return nil
}

func (f *frame) append(s string) error {
	o := f.out
	if o.b.Len()+len(s) > f.rt.env.limits.Output {
		return raise(ClassLimit, "the template's output is too large")
	}
	if o.charge {
		if err := f.rt.ops.Alloc(len(s)); err != nil {
			return err
		}
	}
	o.b.WriteString(s)
	return nil
}

// captures returns the number of texts captured so far.
func (rt *render) captures() int {
	if rt.texts == nil {
		return 0
	}
	return rt.texts.n
}

// capture runs fn with an output of its own and gives what it wrote.
func (f *frame) capture(fn func() error) (string, error) {
	old := f.out
	f.out = f.rt.newBuffer()
	err := fn()
	s := f.rt.captured(f.out)
	f.out = old
	return s, err
}

// enter counts one level of calls between templates and macros.
func (rt *render) enter() error {
	rt.depth++
	if rt.depth > rt.env.limits.Depth {
		rt.depth--
		return py.Errorf(py.RecursionError, "maximum recursion depth exceeded")
	}
	return rt.ops.Step(10)
}

func (rt *render) leave() { rt.depth-- }

// Context holds the variables of one template in one render: those it was given, and those its top level set.
type Context struct {
	rt       *render
	tmpl     *Template
	name     string
	parent   *names
	vars     map[string]any
	exported map[string]bool
	blocks   map[string][]*blockCode
}

func newContext(rt *render, t *Template, parent *names) *Context {
	c := &Context{rt: rt, tmpl: t, name: t.name, parent: parent, vars: map[string]any{}, exported: map[string]bool{}}
	c.blocks = make(map[string][]*blockCode, len(t.code.blocks))
	for n, b := range t.code.blocks {
		c.blocks[n] = []*blockCode{b}
	}
	return c
}

// lookup finds a variable by name; missing if there is none.
func (c *Context) lookup(name string) any {
	if v, ok := c.vars[name]; ok {
		return v
	}
	return c.parent.lookup(name)
}

// names are variables by name, in layers that are not written to: first own, then dict, then those of outer.
type names struct {
	own   map[string]any
	dict  *py.Dict
	outer *names
}

func (n *names) lookup(name string) any {
	for ; n != nil; n = n.outer {
		if v, ok := n.own[name]; ok {
			return v
		}
		if v, ok := n.dict.GetStr(name); ok {
			return v
		}
	}
	return missing
}

// with returns all variables as they are now and, on top of them, those of a scope that have a value.
func (c *Context) with(f *frame, locals []localVar) *names {
	if len(c.vars) == 0 && len(locals) == 0 {
		return c.parent
	}
	own := make(map[string]any, len(c.vars)+len(locals))
	for k, v := range c.vars {
		own[k] = v
	}
	for _, l := range locals {
		if v := f.get(l.ref); v != missing {
			own[l.name] = v
		}
	}
	return &names{own: own, outer: c.parent}
}

// derived returns a context of its own with more variables, for a scoped block.
func (c *Context) derived(vars *names) *Context {
	d := &Context{rt: c.rt, tmpl: c.tmpl, name: c.name, parent: vars, vars: map[string]any{}, exported: map[string]bool{}}
	d.blocks = make(map[string][]*blockCode, len(c.blocks))
	for k, v := range c.blocks {
		d.blocks[k] = append([]*blockCode(nil), v...)
	}
	return d
}

// varRef says where a variable lives: so many functions up, at that slot.
type varRef struct{ up, slot int }

type localVar struct {
	name string
	ref  varRef
}

func (f *frame) get(r varRef) any {
	for i := r.up; i > 0; i-- {
		f = f.parent
	}
	return f.vars[r.slot]
}

func (f *frame) set(r varRef, v any) {
	for i := r.up; i > 0; i-- {
		f = f.parent
	}
	f.vars[r.slot] = v
}

// module is an imported template: what it printed, and the variables its top level set.
type module struct {
	name string
	body string
	line *Lines // of body
	vars map[string]any
}

// TypeName implements py.Typed.
func (m *module) TypeName() string { return "TemplateModule" }

// Str implements py.Stringer.
func (m *module) Str() (string, error) { return m.body, nil }

// Repr implements py.Reprer.
func (m *module) Repr() (string, error) { return "<TemplateModule " + quote(m.name) + ">", nil }

// Attr implements py.Attributer.
func (m *module) Attr(name string) (any, bool, error) {
	v, ok := m.vars[name]
	return v, ok, nil
}

// module runs a template for its variables.
func (rt *render) module(t *Template, vars *names) (*module, error) {
	ctx := newContext(rt, t, vars)
	out := rt.newBuffer()
	if err := t.run(rt, ctx, out); err != nil {
		return nil, err
	}
	m := &module{name: t.name, body: rt.captured(out), line: out.lines, vars: make(map[string]any, len(ctx.exported))}
	for n := range ctx.exported {
		m.vars[n] = ctx.vars[n]
	}
	return m, nil
}

// load finds the template that a tag names.
func (rt *render) load(name string) (*Template, error) {
	if rt.env.find == nil {
		return rt.env.Get(rt.ctx, name)
	}
	real, sets, err := rt.env.find(name, func(variable string) any {
		if v, ok := rt.sets[variable]; ok {
			return v
		}
		if v := rt.globals.lookup(variable); v != missing {
			return v
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !rt.loaded[name] {
		if rt.loaded == nil {
			rt.loaded, rt.sets = map[string]bool{}, map[string]any{}
		}
		rt.loaded[name] = true
		for _, e := range sets.Items() {
			rt.sets[py.Str(e.Key)] = e.Value
		}
	}
	return rt.env.Get(rt.ctx, real)
}

// defaultModule returns the module of a template that is imported without context: run once in a render.
func (rt *render) defaultModule(t *Template) (*module, error) {
	if m := rt.modules[t]; m != nil {
		return m, nil
	}
	m, err := rt.module(t, &names{own: maps.Clone(rt.sets), outer: rt.globals})
	if err == nil {
		rt.modules[t] = m
	}
	return m, err
}

// run executes the template's top level, and that of the template it extends.
func (t *Template) run(rt *render, ctx *Context, out *buffer) error {
	if err := rt.enter(); err != nil {
		return err
	}
	defer rt.leave()
	f := &frame{rt: rt, tmpl: t, ctx: ctx, out: out, vars: make([]any, t.code.slots), line: 1}
	for i := range f.vars {
		f.vars[i] = missing
	}
	if err := t.code.root(f); err != nil {
		return locate(err, t.display, f.line)
	}
	if f.extend != nil {
		if err := f.extend.run(rt, ctx, out); err != nil {
			return locate(err, t.display, f.line)
		}
	}
	return nil
}

// blockCode is a compiled {% block %}.
type blockCode struct {
	name  string
	tmpl  *Template
	slots int
	body  stmt
}

func (b *blockCode) run(ctx *Context, out *buffer) error {
	rt := ctx.rt
	if err := rt.enter(); err != nil {
		return err
	}
	defer rt.leave()
	f := &frame{rt: rt, tmpl: b.tmpl, ctx: ctx, out: out, vars: make([]any, b.slots)}
	for i := range f.vars {
		f.vars[i] = missing
	}
	if err := b.body(f); err != nil {
		return locate(err, b.tmpl.display, f.line)
	}
	return nil
}

// blockRef is a block as a value: super, and self.name.
type blockRef struct {
	name  string
	ctx   *Context
	stack []*blockCode
	depth int
}

// TypeName implements py.Typed.
func (b *blockRef) TypeName() string { return "BlockReference" }

// Attr implements py.Attributer.
func (b *blockRef) Attr(name string) (any, bool, error) {
	if name != "super" {
		return nil, false, nil
	}
	if b.depth+1 >= len(b.stack) {
		return b.ctx.rt.env.undefinedHint("there is no parent block called " + quote(b.name) + "."), true, nil
	}
	return &blockRef{b.name, b.ctx, b.stack, b.depth + 1}, true, nil
}

// Call implements py.Callable: it renders the block.
func (b *blockRef) Call(_ context.Context, args []any, kw *py.Dict) (any, error) {
	if len(args) > 0 || kw.Len() > 0 {
		return nil, py.Errorf(py.TypeError, "BlockReference.__call__() takes 1 positional argument but more were given")
	}
	out := b.ctx.rt.newBuffer()
	if err := b.stack[b.depth].run(b.ctx, out); err != nil {
		return nil, err
	}
	return escapeAsks.safe(b.ctx.rt, b.ctx.rt.captured(out)), nil
}

// templateRef is `self`: the blocks of the template.
type templateRef struct{ ctx *Context }

// TypeName implements py.Typed.
func (t *templateRef) TypeName() string { return "TemplateReference" }

// Repr implements py.Reprer.
func (t *templateRef) Repr() (string, error) {
	return "<TemplateReference " + quote(t.ctx.name) + ">", nil
}

// Item implements py.Indexer.
func (t *templateRef) Item(key any) (any, bool, error) {
	name, _ := key.(string)
	stack := t.ctx.blocks[name]
	if stack == nil {
		return nil, false, nil
	}
	return &blockRef{name, t.ctx, stack, 0}, true, nil
}

// super returns what the name super means in a block.
func (c *Context) super(name string, current *blockCode) any {
	stack := c.blocks[name]
	for i, b := range stack {
		if b == current && i+1 < len(stack) {
			return &blockRef{name, c, stack, i + 1}
		}
	}
	return c.rt.env.undefinedHint("there is no parent block called " + quote(name) + ".")
}

// Ops returns the budget of the running render.
func (c *Context) Ops() *py.Ops { return c.rt.ops }

// Name returns the name of the template that is running.
func (c *Context) Name() string { return c.name }

// trimName keeps the name of a template that was not found readable.
func trimName(s string) string {
	return strings.ToValidUTF8(printable.Shorten(s, 200), "?")
}
