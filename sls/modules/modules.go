package modules

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"corpus-git/internal/py"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
)

// Env is the environment that the functions work on.
type Env struct {
	Host                      *host.Host
	Roots                     fileroot.Roots
	Cfg, Pillar, Grains, Opts *py.Dict
	// Locations override keys of mc_locations.settings.
	Locations *py.Dict
	Passwords Passwords
	// KV returns the keys that the project sees, with their values; nil means none.
	KV func(ctx context.Context) (map[string]string, error)
	// Static forbids reading what an earlier step may change.
	Static bool
	// Log receives what templates print with log.*; nil discards it.
	Log func(line string)
	// Output receives lines of output of commands; nil discards them.
	Output func(stderr bool, line string)
}

// Passwords keeps generated secrets.
type Passwords interface {
	// Get returns the secret of a key; ok is false if it has none yet.
	Get(key string) (secret string, ok bool, err error)
	// Put stores a secret under a key and returns what templates see of it: the secret or, if nothing is stored, a text that
	// says so.
	Put(key, secret string) (string, error)
}

// DeferError reports that a function may only be called when the step runs.
type DeferError struct{ Function string }

func (e *DeferError) Error() string { return e.Function + " is called while the template renders" }

// UnknownError is a call of a function that does not exist here.
type UnknownError struct{ Function, Near string }

func (e *UnknownError) Error() string { return "salt has no function '" + e.Function + "'" }

// UnsupportedError is something that Salt's function supports and the one here does not.
type UnsupportedError struct{ What string }

func (e *UnsupportedError) Error() string { return e.What + " is not built in" }

// call is one call: bound arguments and the environment.
type call struct {
	*Env
	ctx  context.Context
	name string
	args map[string]any
	rest []any    // positional arguments beyond the named ones
	kw   *py.Dict // keyword arguments beyond the named ones
}

type function struct {
	name        string
	params      []string // names; "?" after one marks it as optional
	unsupported []string // Salt's names of parameters that must not request anything
	varArg      bool     // * : more positional arguments
	varKw       bool     // ** : more keyword arguments
	live        bool     // must not run in a Static set
	run         func(c *call) (any, error)
}

// table is all functions by their names.
type table map[string]*function

// Set contains the functions with their environment: it is the value of salt in templates.
type Set struct {
	env   *Env
	funcs table
}

// New returns a Set.
func New(env *Env) *Set { return &Set{env: env, funcs: functions()} }

// functions returns the table. It is made once, because that takes longer than compiling a small file, and never changes.
var functions = sync.OnceValue(func() table {
	s := table{}
	for _, add := range []func(table){
		addPillar, addGrains, addConfig, addDefaults,
		addCmd, addFileStat, addFileContents, addFileNames, addPkg, addPkgVersions, addCp, addCorpus,
		addLog, addTest, addEnviron, addSlsutil, addSlsutilFiles, addHashutil, addRandom, addState,
		addAccounts, addService, addMakina, addKV,
	} {
		add(s)
	}
	return s
})

// add registers a function that only reads what cannot change before the step runs. spec is a list of parameter names; an
// optional one ends in ?, an unsupported one in ~, * accepts more positional and ** more keyword arguments.
func (s table) add(name, spec string, run func(c *call) (any, error)) { s.put(name, spec, false, run) }

// live registers a function that runs only when the step runs.
func (s table) live(name, spec string, run func(c *call) (any, error)) { s.put(name, spec, true, run) }

func (s table) put(name, spec string, live bool, run func(c *call) (any, error)) {
	f := &function{name: name, live: live, run: run}
	for _, p := range strings.Fields(spec) {
		switch p {
		case "*":
			f.varArg = true
		case "**":
			f.varKw = true
		default:
			if l, ok := strings.CutSuffix(p, "~"); ok {
				f.unsupported = append(f.unsupported, l)
				continue
			}
			f.params = append(f.params, p)
		}
	}
	s[name] = f
}

// Has reports whether a function exists.
func (s *Set) Has(name string) bool { return s.funcs[name] != nil }

// Live reports whether a function must not be called before the step runs.
func (s *Set) Live(name string) bool { f := s.funcs[name]; return f != nil && f.live }

// Names returns all functions, sorted.
func (s *Set) Names() []string {
	out := make([]string, 0, len(s.funcs))
	for n := range s.funcs {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// Call calls a function.
func (s *Set) Call(ctx context.Context, name string, args []any, kw *py.Dict) (any, error) {
	f := s.funcs[name]
	if f == nil {
		return nil, &UnknownError{Function: name}
	}
	return f.call(ctx, s.env, args, kw)
}

func (f *function) call(ctx context.Context, env *Env, args []any, kw *py.Dict) (any, error) {
	c := &call{Env: env, ctx: ctx, name: f.name, args: map[string]any{}, kw: py.NewDict()}
	for i, a := range args {
		if i < len(f.params) {
			c.args[strings.TrimSuffix(f.params[i], "?")] = a
			continue
		}
		if !f.varArg {
			return nil, py.Errorf(py.TypeError, "%s() takes %d positional arguments but %d were given", f.name, len(f.params), len(args))
		}
		c.rest = append(c.rest, a)
	}
	for _, e := range kw.Items() {
		k, _ := e.Key.(string)
		known := false
		for _, p := range f.params {
			if strings.TrimSuffix(p, "?") == k {
				known = true
			}
		}
		switch {
		case slices.Contains(f.unsupported, k):
			if py.Truth(e.Value) {
				return nil, &UnsupportedError{What: "the argument " + k + " of " + f.name}
			}
		case known:
			c.args[k] = e.Value
		case f.varKw:
			c.kw.SetStr(k, e.Value)
		default:
			return nil, py.Errorf(py.TypeError, "%s() got an unexpected keyword argument '%s'", f.name, k)
		}
	}
	for _, p := range f.params {
		if strings.HasSuffix(p, "?") {
			continue
		}
		if _, ok := c.args[p]; !ok {
			return nil, py.Errorf(py.TypeError, "%s() missing 1 required positional argument: '%s'", f.name, p)
		}
	}
	if f.live && env.Static {
		return nil, &DeferError{Function: f.name}
	}
	return f.run(c)
}

// val returns an argument, nil if it was not given.
func (c *call) val(name string) any { return c.args[name] }

func (c *call) given(name string) bool { _, ok := c.args[name]; return ok }

func (c *call) str(name, def string) string {
	v, ok := c.args[name]
	if !ok || v == nil {
		return def
	}
	return py.Str(v)
}

func (c *call) boolean(name string, def bool) bool {
	v, ok := c.args[name]
	if !ok {
		return def
	}
	return py.Truth(v)
}

func (c *call) integer(name string, def int64) (int64, error) {
	v, ok := c.args[name]
	if !ok || v == nil {
		return def, nil
	}
	n, err := py.Index(v)
	if err != nil {
		return 0, fmt.Errorf("%s() argument '%s': %w", c.name, name, err)
	}
	return n, nil
}

// TypeName implements py.Typed.
func (s *Set) TypeName() string { return "LazyLoader" }

// Item implements py.Indexer: salt['cmd.run'].
func (s *Set) Item(key any) (any, bool, error) {
	name, ok := key.(string)
	if !ok {
		return nil, false, nil
	}
	if f := s.funcs[name]; f != nil {
		return s.bound(f), true, nil
	}
	return nil, false, nil // undefined, as in Salt: templates ask  salt['x'] is defined
}

// Contains implements py.Container: 'cmd.run' in salt.
func (s *Set) Contains(v any) (bool, error) {
	name, ok := v.(string)
	return ok && s.Has(name), nil
}

// Attr implements py.Attributer: salt.cmd.run, salt.get.
func (s *Set) Attr(name string) (any, bool, error) {
	if name == "get" {
		return py.NewFunc("get", func(_ context.Context, args []any, _ *py.Dict) (any, error) {
			if len(args) > 0 {
				if n, ok := args[0].(string); ok && s.Has(n) {
					return s.bound(s.funcs[n]), nil
				}
			}
			if len(args) > 1 {
				return args[1], nil
			}
			return nil, nil
		}), true, nil
	}
	for n := range s.funcs {
		if strings.HasPrefix(n, name+".") {
			return &module{s, name}, true, nil
		}
	}
	return nil, false, nil
}

func (s *Set) bound(f *function) *py.Func {
	return py.NewFunc(f.name, func(ctx context.Context, args []any, kw *py.Dict) (any, error) {
		return f.call(ctx, s.env, args, kw)
	})
}

// module is salt.cmd.
type module struct {
	set  *Set
	name string
}

// TypeName implements py.Typed.
func (m *module) TypeName() string { return "LoadedMod" }

// Attr implements py.Attributer.
func (m *module) Attr(name string) (any, bool, error) { return m.set.Item(m.name + "." + name) }

// Item implements py.Indexer.
func (m *module) Item(key any) (any, bool, error) {
	if s, ok := key.(string); ok {
		return m.Attr(s)
	}
	return nil, false, nil
}
