package core

import (
	"sort"
	"strings"

	"corpus-git/internal/py"
)

// Function is one state function.
type Function struct {
	// Name is module.function.
	Name string
	// Params are the names of the arguments that it accepts, without the global ones.
	Params []string
	// Unsupported are Salt's arguments that are not built in, each with the value that, besides null, requests nothing; "" means every
	// false value, and false always requests nothing if that value is not true. A state that requests more needs Salt.
	Unsupported map[string]string
	// Required are the mandatory arguments ("name" always is).
	Required []string
	// AnyParam accepts every argument (module.run).
	AnyParam bool
	// Ignores: Salt's function accepts unknown arguments, and ignores them.
	Ignores bool
	// Run does the work.
	Run func(c *Call) Return
}

// Table is the set of state functions.
type Table struct {
	funcs map[string]*Function
	watch map[string]func(c *Call, sfun string) Return
	alias map[string]string
}

// NewTable returns the table of the functions that the families add.
func NewTable(families ...func(*Table)) *Table {
	t := &Table{
		funcs: map[string]*Function{},
		watch: map[string]func(c *Call, sfun string) Return{},
		alias: map[string]string{},
	}
	for _, add := range families {
		add(t)
	}
	return t
}

// Add registers a function. params is a space-separated list. A name that ends in ! is required. One that ends in ? is
// accepted and has no effect here: it is for other systems, or for Salt's internals. One that ends in ~ is unsupported, and the text
// after the tilde is the value that requests nothing. * accepts every argument, ** accepts and ignores those that are not in the list.
func (t *Table) Add(name, params string, run func(c *Call) Return) {
	f := &Function{Name: name, Params: []string{"name"}, Unsupported: map[string]string{}, Run: Guard(run)}
	for _, p := range strings.Fields(params) {
		if p == "*" {
			f.AnyParam = true
			continue
		}
		if p == "**" {
			f.Ignores = true
			continue
		}
		if l, value, ok := strings.Cut(p, "~"); ok {
			f.Unsupported[l] = value
			continue
		}
		if r, ok := strings.CutSuffix(p, "!"); ok {
			p = r
			f.Required = append(f.Required, p)
		}
		f.Params = append(f.Params, strings.TrimSuffix(p, "?"))
	}
	t.funcs[name] = f
}

// OnWatch registers what a module does if a watched state changed (mod_watch); sfun is the function of the watching state.
func (t *Table) OnWatch(module string, run func(c *Call, sfun string) Return) {
	t.watch[module] = func(c *Call, sfun string) Return {
		return Guard(func(c *Call) Return { return run(c, sfun) })(c)
	}
}

// Alias makes another name an alias of a module (mc_git for git).
func (t *Table) Alias(module, as string) { t.alias[module] = as }

func (t *Table) module(m string) string {
	if a, ok := t.alias[m]; ok {
		return a
	}
	return m
}

// Lookup finds a function; ok is false if there is none.
func (t *Table) Lookup(name string) (*Function, bool) {
	f, ok := t.funcs[name]
	if !ok {
		mod, fun, _ := strings.Cut(name, ".")
		f, ok = t.funcs[t.module(mod)+"."+fun]
	}
	return f, ok
}

// Watch returns the function that runs if a watched state changed; nil if the module has none, and
// then watch means require.
func (t *Table) Watch(module string) func(c *Call, sfun string) Return {
	return t.watch[t.module(module)]
}

// Names returns all functions, sorted.
func (t *Table) Names() []string {
	out := make([]string, 0, len(t.funcs))
	for n := range t.funcs {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// HasModule reports whether any function belongs to a module.
func (t *Table) HasModule(module string) bool {
	module = t.module(module)
	for n := range t.funcs {
		if strings.HasPrefix(n, module+".") {
			return true
		}
	}
	return false
}

// Accepts reports whether the function accepts an argument of that name.
func (f *Function) Accepts(param string) bool {
	return f.AnyParam || f.HasParam(param)
}

// AsksUnsupported reports whether an argument requests something that is not built in.
func (f *Function) AsksUnsupported(param string, value any) bool {
	nothing, lacks := f.Unsupported[param]
	if !lacks || value == nil {
		return false
	}
	if nothing == "" || value == false && nothing != "true" {
		return py.Truth(value)
	}
	return !strings.EqualFold(py.Str(value), nothing)
}

// HasParam reports whether the function names an argument.
func (f *Function) HasParam(param string) bool {
	for _, p := range f.Params {
		if p == param {
			return true
		}
	}
	return false
}

// HasParam reports whether any function accepts an argument of that name.
func (t *Table) HasParam(param string) bool {
	for _, f := range t.funcs {
		if f.HasParam(param) {
			return true
		}
	}
	return false
}

// ModuleHasParam reports whether any function of a module accepts an argument of that name.
func (t *Table) ModuleHasParam(module, param string) bool {
	module = t.module(module)
	for n, f := range t.funcs {
		if strings.HasPrefix(n, module+".") && f.HasParam(param) {
			return true
		}
	}
	return false
}
