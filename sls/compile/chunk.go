package compile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/salt/names"
	"corpus-git/sls/state"
	"corpus-git/sls/state/core"
)

// Chunk is one state that runs: Salt's low chunk.
type Chunk struct {
	Module, Fun  string
	ID, Name     string
	SLS          string
	includedFrom []string
	at           pos
	Func         *core.Function
	Args         *py.Dict
	Global       *py.Dict // the arguments in globalArg, without requisites
	globalAt     map[string]pos
	Reqs         [ReqCount][]ReqRef
	ListenIn     []ReqRef
	Umask        *int
	ignored      []leftover // arguments that the function does not have and that are ignored

	order     any // as written: a number, "first", "last", or nil
	nameOrder int
	sortKey   float64
	// Prereq is set while the next call is a test run for a state that has this one as prereq.
	Prereq bool
	// prerequiring is set if this state has a prereq.
	prerequiring bool
}

// Tag identifies a chunk; two chunks with the same tag are one state.
func (c *Chunk) Tag() string {
	return c.Module + "_|-" + c.ID + "_|-" + c.Name + "_|-" + c.Fun
}

// Function is module.function, as the state is written.
func (c *Chunk) Function() string { return c.Module + "." + c.Fun }

// chunks flattens the high data: one chunk per state and name.
func (h *high) chunks(table *core.Table) ([]*Chunk, error) {
	var out []*Chunk
	for _, id := range h.order {
		d := h.ids[id]
		for _, s := range d.states {
			cs, err := s.chunks(d, table)
			if err != nil {
				return nil, err
			}
			out = append(out, cs...)
		}
	}
	return out, nil
}

func (s *stateDecl) chunks(d *decl, table *core.Table) ([]*Chunk, error) {
	if len(s.funs) == 0 {
		return nil, failf(s.at, "No function declared in state '%s' in SLS '%s'", d.id, d.sls)
	}
	base := &Chunk{Module: s.module, Fun: s.funs[0].fun, ID: d.id, Name: d.id, SLS: d.sls,
		includedFrom: d.includedFrom, at: s.at}
	if s.iorder > 0 {
		base.order = int64(s.iorder)
	}
	type entry struct {
		name string
		over []argument
		at   pos
	}
	var names []entry
	seen := map[string]bool{}
	var args []argument
	for _, a := range s.args {
		if a.key != "names" {
			args = append(args, a)
			continue
		}
		for _, v := range a.val.(*py.List).Items() {
			e := entry{at: a.at}
			switch x := v.(type) {
			case *py.Dict:
				first := x.Items()[0]
				e.name = py.Str(first.Key)
				l, ok := first.Value.(*py.List)
				if !ok {
					return nil, failf(a.at, "the arguments of '%s' in names must be a list", e.name)
				}
				for _, it := range l.Items() {
					o, ok := it.(*py.Dict)
					if !ok {
						return nil, failf(a.at, "the arguments of '%s' in names must be '- key: value'", e.name)
					}
					for _, kv := range o.Items() {
						e.over = append(e.over, argument{key: py.Str(kv.Key), val: kv.Value, at: a.at})
					}
				}
			case string:
				e.name = x
			default:
				return nil, failf(a.at, "a name in names must be a string, not a %s", py.TypeName(v)).WithHint("quote it")
			}
			key := e.name + "\x00" + py.Repr(v)
			if !seen[key] {
				seen[key] = true
				names = append(names, e)
			}
		}
	}
	if len(names) == 0 {
		c, err := base.withArguments(args, table)
		if err != nil {
			return nil, err
		}
		return []*Chunk{c}, nil
	}
	var out []*Chunk
	for i, e := range names {
		b := *base
		c, err := b.withArguments(append(append([]argument{}, args...), append([]argument{{key: "name", val: e.name, at: e.at}}, e.over...)...), table)
		if err != nil {
			return nil, err
		}
		c.nameOrder = i + 1
		out = append(out, c)
	}
	return out, nil
}

// withArguments gives a chunk its arguments and checks them against the function.
func (c *Chunk) withArguments(args []argument, table *core.Table) (*Chunk, error) {
	out := *c
	out.Args, out.Global, out.globalAt = py.NewDict(), py.NewDict(), map[string]pos{}
	fn, ok := table.Lookup(out.Function())
	if !ok {
		return nil, unknownFunction(&out, table)
	}
	out.Func = fn
	at := map[string]pos{}
	for _, a := range args {
		if err := out.addArgument(a); err != nil {
			return nil, err
		}
		at[a.key] = a.at
	}
	out.Args.SetStr("name", out.Name)
	for _, k := range out.Args.Keys() {
		key := k.(string)
		if _, lacks := fn.Unsupported[key]; lacks {
			if v, _ := out.Args.Pop(key); fn.AsksUnsupported(key, v) {
				return nil, unsupported(at[key], "the argument "+key+" of "+out.Function(), out.Function())
			}
			continue
		}
		if fn.Accepts(key) {
			continue
		}
		// Since formulas write file.{{ 'managed' if x else 'absent' }}, arguments of the module's other
		// functions are not mistakes if Salt accepts them.
		if fn.Ignores && table.ModuleHasParam(out.Module, key) {
			out.Args.Delete(key)
			out.ignored = append(out.ignored, leftover{key: key, at: at[key]})
			continue
		}
		near := closest(key, knownArgs(fn))
		// Salt passes arguments that a templating function does not know to the template.
		alike := near != "" && distance(key, near, 3) <= max(1, len(key)/4)
		if v, has := out.Args.GetStr("template"); has && v != nil && !alike {
			extra, _ := out.Args.GetStr("context")
			ctx, _ := extra.(*py.Dict)
			vars := py.NewDict()
			v, _ := out.Args.Pop(key)
			vars.SetStr(key, v)
			vars.Update(ctx)
			if extra == nil || ctx != nil {
				out.Args.SetStr("context", vars)
			}
			continue
		}
		// What another function accepts is not a typo, however similar it is: groups, of user.present.
		if fn.Ignores && (!alike || table.HasParam(key)) || key == "__env__" { // Salt itself sets the latter
			out.Args.Delete(key)
			left := leftover{key: key, at: at[key]}
			if alike {
				left.near = near
			}
			out.ignored = append(out.ignored, left)
			continue
		}
		e := failf(at[key], "%s of state '%s' has no argument '%s'", out.Function(), out.ID, key)
		if near != "" {
			return nil, e.WithHint("did you mean '%s'?", near).WithFix(key, near)
		}
		takes := out.Function() + " takes: " + strings.Join(fn.Params, ", ")
		return nil, e.WithHint("%s", takes)
	}
	if what := state.Unsupported(fn, out.Args); what != "" {
		return nil, unsupported(out.at, what, out.Function())
	}
	for _, r := range fn.Required {
		if !out.Args.Has(r) {
			return nil, failf(out.at, "Missing parameter %s for state %s ('%s')", r, out.Function(), out.ID)
		}
	}
	return &out, nil
}

func knownArgs(fn *core.Function) []string {
	lacking := slices.Collect(maps.Keys(fn.Unsupported))
	slices.Sort(lacking)
	return append(slices.Concat(fn.Params, lacking), "require", "watch", "onchanges", "onfail", "prereq", "listen",
		"require_in", "watch_in", "onchanges_in", "onfail_in", "prereq_in", "listen_in", "onlyif", "unless", "creates",
		"order", "failhard", "retry", "check_cmd", "names", "runas", "umask", "require_any", "watch_any", "onchanges_any", "onfail_any")
}

// unknownFunction distinguishes a typo, which has a similar name, from a function that Salt may have.
func unknownFunction(c *Chunk, table *core.Table) *fault.Error {
	if near := closestFunction(c.Function(), table.Names()); near != "" && !names.State(c.Function()) {
		return failf(c.at, "State '%s' was not found", c.Function()).WithHint("did you mean %s?", near).WithFix(c.Function(), near)
	}
	return unsupported(c.at, "the state function "+c.Function(), c.Function())
}

// unsupported returns the error for what Salt supports and the built-in runner does not.
func unsupported(p pos, what, function string) *fault.Error {
	at := p.at()
	return fault.New(fault.Failed, "", "%w", &NeedError{sls.Need{File: at.File, Line: at.Line, Text: at.Text, What: what}}).
		WithPos(at).WithHint("%s", needHint(function))
}

// addArgument stores an argument according to its kind.
func (c *Chunk) addArgument(a argument) error {
	if t, ok := parseReqType(a.key); ok {
		c.Reqs[t] = nil
		for _, v := range a.val.(*py.List).Items() {
			r, err := parseReq(a, v)
			if err != nil {
				return err
			}
			if r.Module != "" {
				c.Reqs[t] = append(c.Reqs[t], r)
			}
		}
		// file.directory with clean keeps what it requires.
		return nil
	}
	switch a.key {
	case "state", "fun":
		return nil
	case "name":
		if s, ok := a.val.(string); ok {
			c.Name = s
		} else {
			c.Name = c.ID
		}
		return nil
	case "order":
		c.order = a.val
		return nil
	case "listen_in":
		l, ok := a.val.(*py.List)
		if !ok {
			return failf(a.at, "listen_in needs to be formed as a list")
		}
		for _, v := range l.Items() {
			r, err := parseReq(a, v)
			if err != nil {
				return err
			}
			c.ListenIn = append(c.ListenIn, r)
		}
		return nil
	case "parallel":
		if py.Truth(a.val) {
			return unsupported(a.at, "the argument parallel", c.Function())
		}
		return nil
	case "umask":
		n, err := strconv.ParseInt(strings.TrimSpace(py.Str(a.val)), 8, 32)
		if err != nil || n < 0 || n > 0o777 {
			return failf(a.at, "Invalid umask: it must be an octal number")
		}
		u := int(n)
		c.Umask = &u
		return nil
	case "saltenv":
		if py.Str(a.val) != "base" && a.val != nil {
			return failf(a.at, "there is one environment: base")
		}
		return nil
	case "check_cmd", "runas":
		// These are also arguments of some functions, which then handle them.
		if c.Func.HasParam(a.key) {
			c.Args.SetStr(a.key, a.val)
			if a.key == "check_cmd" {
				return nil
			}
		}
		c.Global.SetStr(a.key, a.val)
		c.globalAt[a.key] = a.at
		return nil
	}
	if globalArg(a.key) {
		c.Global.SetStr(a.key, a.val)
		c.globalAt[a.key] = a.at
		return nil
	}
	c.Args.SetStr(a.key, a.val)
	return nil
}

// Items returns the entries of an argument: those of a list, or the one value.
func Items(v any) []any {
	if l, ok := v.(*py.List); ok {
		return l.Items()
	}
	return []any{v}
}

// leftover is an argument that a function does not have, as Salt ignores it.
type leftover struct {
	key  string
	at   pos
	near string // name that was probably meant
}
