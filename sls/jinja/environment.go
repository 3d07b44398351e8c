package jinja

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"corpus-git/internal/py"
)

// Loader finds the source of a template that another one names. display is what errors call it (a path in the
// repository); it is name itself where empty. A template that does not exist is ErrNotFound.
type Loader interface {
	Load(ctx context.Context, name string) (src, display string, err error)
}

// LoaderFunc is a function as a Loader.
type LoaderFunc func(ctx context.Context, name string) (src, display string, err error)

// Load implements Loader.
func (f LoaderFunc) Load(ctx context.Context, name string) (src, display string, err error) {
	return f(ctx, name)
}

// ErrNotFound is what a Loader gives for a template that does not exist.
var ErrNotFound = errors.New("template not found")

// MapLoader serves templates from memory, by name.
type MapLoader map[string]string

// Load implements Loader.
func (m MapLoader) Load(_ context.Context, name string) (src, display string, err error) {
	src, ok := m[name]
	if !ok {
		return "", "", ErrNotFound
	}
	return src, name, nil
}

// FilterFunc is a filter: v|name(args, kw). kw is nil if there are no keyword arguments.
type FilterFunc func(c *Context, v any, args []any, kw *py.Dict) (any, error)

// TestFunc is a test: v is name(args, kw).
type TestFunc func(c *Context, v any, args []any, kw *py.Dict) (bool, error)

// ContextFunc is a global function that sees the variables of the template that calls it.
type ContextFunc func(c *Context, args []any, kw *py.Dict) (any, error)

// DataLoader reads text in a data format. It must not put the text into its errors.
type DataLoader func(c *Context, text string) (any, error)

// Options configure an Environment. The zero value is Jinja2's defaults, with the do and loop-control extensions on.
type Options struct {
	Loader  Loader
	Filters map[string]FilterFunc
	Tests   map[string]TestFunc
	// Globals are values that every template sees, imported ones too.
	Globals map[string]any
	// ContextFuncs are more globals.
	ContextFuncs map[string]ContextFunc
	// Find, where not nil, turns the name that a tag has for a template into the one that Loader knows. sets are variables
	// that templates imported without context see from then on, if it is the first time in a render that this one is
	// loaded; global gives what such a template sees now, nil if there is none.
	Find func(name string, global func(variable string) any) (real string, sets *py.Dict, err error)
	// DataLoaders add, for each key F, the tags {% import_F %} and {% load_F %} and the filter load_F.
	DataLoaders map[string]DataLoader
	// StrictUndefined makes every use of an undefined variable an error, except testing for it.
	StrictUndefined bool
	// ContextIsGlobal makes the variables of a render visible in templates imported without context, as Salt does.
	ContextIsGlobal bool

	// Print, where not nil, is how a list, tuple, set or dict is printed; else it is its str().
	Print func(o *py.Ops, v any) (string, error)
	// Lacking are what the language of these templates has and this environment has not, as "filter xml" or
	// "test x": using one is a *LackError.
	Lacking map[string]bool

	TrimBlocks, LstripBlocks bool
	KeepTrailingNewline      bool
	// Delimiters, where not empty: {% %} {{ }} {# #}.
	BlockStart, BlockEnd, VariableStart, VariableEnd, CommentStart, CommentEnd string

	Limits Limits
}

// Limits bound one render; a zero field means its default.
type Limits struct {
	Source int   // bytes of one template; default 4 MiB
	Fuel   int64 // steps of evaluation, of about 100 ns; default 10 million
	Memory int64 // bytes of values that are in use at one time; default 24 MiB
	Output int   // bytes of output; default 8 MiB
	// Time is how long a render may work, without what its functions of other packages take; default a minute. It is the
	// last resort: Fuel ends what does too much in about a second.
	Time  time.Duration
	Depth int // nested calls of macros, includes, imports; default 250
	Range int // items of range(); default 100000, as in Jinja2's sandbox
}

func (l *Limits) defaults() {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&l.Source, 4<<20)
	set(&l.Output, 8<<20)
	set(&l.Depth, 250)
	set(&l.Range, 100000)
	if l.Time == 0 {
		l.Time = time.Minute
	}
	if l.Fuel == 0 {
		l.Fuel = 10e6
	}
	if l.Memory == 0 {
		l.Memory = 24 << 20
	}
}

// Environment holds what templates have in common, and the templates that were loaded, for ever.
type Environment struct {
	loader          Loader
	filters         map[string]FilterFunc
	tests           map[string]TestFunc
	globals         map[string]any // with the context functions
	loaders         map[string]DataLoader
	strict          bool
	contextIsGlobal bool
	find            func(name string, global func(variable string) any) (string, *py.Dict, error)
	print           func(o *py.Ops, v any) (string, error)
	lacking         map[string]bool
	syntax          syntax
	limits          Limits

	mu    sync.Mutex
	cache map[string]*Template
}

// New makes an Environment.
func New(o Options) *Environment {
	e := &Environment{
		loader: o.Loader, find: o.Find, loaders: o.DataLoaders, strict: o.StrictUndefined, contextIsGlobal: o.ContextIsGlobal,
		print: o.Print, lacking: o.Lacking,
		limits: o.Limits, cache: map[string]*Template{},
		filters: map[string]FilterFunc{}, tests: map[string]TestFunc{}, globals: map[string]any{},
	}
	e.limits.defaults()
	or := func(s, d string) string {
		if s == "" {
			return d
		}
		return s
	}
	e.syntax = syntax{
		blockStart: or(o.BlockStart, "{%"), blockEnd: or(o.BlockEnd, "%}"),
		varStart: or(o.VariableStart, "{{"), varEnd: or(o.VariableEnd, "}}"),
		commentStart: or(o.CommentStart, "{#"), commentEnd: or(o.CommentEnd, "#}"),
		trimBlocks: o.TrimBlocks, lstripBlocks: o.LstripBlocks, keepTrailingNewline: o.KeepTrailingNewline,
	}
	builtinFilters(e.filters)
	builtinTests(e.tests)
	builtinGlobals(e)
	for format, load := range o.DataLoaders {
		e.filters["load_"+format] = loadFilter(load)
	}
	for n, f := range o.Filters {
		e.filters[n] = f
	}
	for n, t := range o.Tests {
		e.tests[n] = t
	}
	for n, f := range o.ContextFuncs {
		e.globals[n] = &contextFunc{n, f}
	}
	for n, v := range o.Globals {
		e.globals[n] = v
	}
	return e
}

// Overlay returns an Environment that has everything from e but what it loads, which globals it adds, and the templates that were loaded.
//
// Source: Jinja documentation, Environment.overlay.
func (e *Environment) Overlay(loader Loader, globals map[string]any) *Environment {
	all := make(map[string]any, len(e.globals)+len(globals))
	maps.Copy(all, e.globals)
	maps.Copy(all, globals)
	return &Environment{
		loader: loader, globals: all, cache: map[string]*Template{},
		filters: e.filters, tests: e.tests, loaders: e.loaders, strict: e.strict, contextIsGlobal: e.contextIsGlobal, find: e.find, print: e.print,
		lacking: e.lacking, syntax: e.syntax, limits: e.limits,
	}
}

func loadFilter(load DataLoader) FilterFunc {
	return func(c *Context, v any, _ []any, _ *py.Dict) (any, error) {
		s, err := c.Ops().Str(v)
		if err != nil {
			return nil, err
		}
		return load(c, s)
	}
}

// FilterNames returns the names of the filters that templates see, sorted.
func (e *Environment) FilterNames() []string { return slices.Sorted(maps.Keys(e.filters)) }

// TestNames returns the names of the tests, sorted.
func (e *Environment) TestNames() []string { return slices.Sorted(maps.Keys(e.tests)) }

// GlobalNames returns the names of the globals, sorted.
func (e *Environment) GlobalNames() []string { return slices.Sorted(maps.Keys(e.globals)) }

// print returns the text of a value that a tag prints.
func (rt *render) print(v any) (string, error) {
	if rt.env.print != nil {
		switch v.(type) {
		case *py.Dict, *py.List, py.Tuple, *py.Set:
			return rt.env.print(rt.ops, v)
		}
	}
	return rt.ops.Str(v)
}

// Template is a compiled template. It holds no state of a render but the size of the last output, as a hint.
type Template struct {
	env     *Environment
	name    string
	display string
	src     string
	ast     *templateNode
	code    *templateCode
	size    atomic.Int64 // of the last output
}

// Parse compiles a template given as text; name is what errors call it. Nothing is cached. An error is an *Error.
func (e *Environment) Parse(name, src string) (*Template, error) { return e.compile(name, name, src) }

func (e *Environment) compile(name, display, src string) (*Template, error) {
	if len(src) > e.limits.Source {
		return nil, &Error{Template: display, Class: ClassLimit, Msg: "the template is too large"}
	}
	t := &Template{env: e, name: name, display: display}
	t.src = normalizeSource(src, e.syntax.keepTrailingNewline)
	ast, err := parse(e, name, t.src)
	if err != nil {
		return nil, locate(err, display, 1)
	}
	t.ast = ast
	if t.code, err = compileTemplate(t); err != nil {
		return nil, locate(err, display, 1)
	}
	return t, nil
}

// Get loads a template by name, once.
func (e *Environment) Get(ctx context.Context, name string) (*Template, error) {
	e.mu.Lock()
	t := e.cache[name]
	e.mu.Unlock()
	if t != nil {
		return t, nil
	}
	if e.loader == nil {
		return nil, &Error{Class: ClassNotFound, Msg: "no loader for this environment specified"}
	}
	src, display, err := e.loader.Load(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil, &Error{Class: ClassNotFound, Msg: trimName(name), Err: err}
	}
	if err != nil {
		return nil, &Error{Class: ClassLoad, Msg: err.Error(), Err: err}
	}
	if display == "" {
		display = name
	}
	t, err = e.compile(name, display, src)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if old := e.cache[name]; old != nil {
		return old, nil
	}
	e.cache[name] = t
	return t, nil
}

// Render runs the template with the variables; their keys are strings. It ends within the environment's limits, or
// when ctx does. An error is an *Error; the output until then is lost.
func (t *Template) Render(ctx context.Context, vars *py.Dict) (string, error) {
	return t.render(t.newRender(ctx, vars))
}

// RenderLines is Render that also reports where each line of the output came from.
func (t *Template) RenderLines(ctx context.Context, vars *py.Dict) (string, *Lines, error) {
	rt, global := t.newRender(ctx, vars)
	rt.texts, rt.out.lines = &captures{}, &Lines{}
	text, err := t.render(rt, global)
	return text, rt.out.lines, err
}

func (t *Template) render(rt *render, global *names) (string, error) {
	rt.out.b.Grow(int(t.size.Load()))
	if err := t.run(rt, newContext(rt, t, global), &rt.out); err != nil {
		return "", err
	}
	text := rt.out.b.String()
	t.size.Store(int64(len(text)))
	return text, nil
}

// newRender begins a render; the names are those of the template that is rendered.
func (t *Template) newRender(ctx context.Context, vars *py.Dict) (*render, *names) {
	e := t.env
	rt := &render{env: e, ctx: ctx, modules: map[*Template]*module{}, globals: &names{own: e.globals}}
	rt.ops = py.NewOps(ctx, e.limits.Fuel, e.limits.Memory)
	rt.ops.SetTime(e.limits.Time)
	rt.ops.Missing = func(v, key any) any { // an attribute may be an item, as in the template
		if w, ok, err := rt.ops.Item(v, key); ok && err == nil {
			return w
		}
		return e.undefinedItem(v, key, false)
	}
	global := &names{dict: vars, outer: rt.globals}
	if e.contextIsGlobal {
		rt.globals = global
	}
	return rt, global
}

// Module runs the template and gives the variables and macros that its top level exports, by name; it is for
// callers that want a template's settings and not its text.
func (t *Template) Module(ctx context.Context, vars *py.Dict) (*py.Dict, error) {
	rt, global := t.newRender(ctx, vars)
	m, err := rt.module(t, global)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(m.vars))
	for n := range m.vars {
		names = append(names, n)
	}
	sort.Strings(names)
	out := py.NewDict()
	for _, n := range names {
		out.SetStr(n, m.vars[n])
	}
	return out, nil
}

// Name returns the name that the template was parsed or loaded under.
func (t *Template) Name() string { return t.name }

// contextFunc is a ContextFunc as a value; the evaluator hands it the context.
type contextFunc struct {
	name string
	fn   ContextFunc
}

// TypeName implements py.Typed.
func (c *contextFunc) TypeName() string { return "function" }

// Call implements py.Callable for code that knows no context.
func (c *contextFunc) Call(context.Context, []any, *py.Dict) (any, error) {
	return nil, raise(ClassRuntime, "%s needs a context", c.name)
}
