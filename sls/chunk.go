package sls

import (
	"strconv"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls/saltnames"
	"corpus-git/sls/state"
	"corpus-git/sls/state/core"
)

// chunk is one state that runs: Salt's low chunk.
type chunk struct {
	module, fun  string
	id, name     string
	sls          string
	includedFrom []string
	at           pos
	fn           *core.Function
	args         *py.Dict
	global       *py.Dict // the arguments of globalArg, without requisites
	globalAt     map[string]pos
	reqs         [reqCount][]reqRef
	listenIn     []reqRef
	umask        *int
	ignored      []string // arguments of other functions of the module

	order     any // as written: a number, "first", "last", or nil
	nameOrder int
	sortKey   float64
	// prereq is set while the next call is a test run for a state that has this one as prereq.
	prereq bool
	// prerequiring is set where this state has a prereq.
	prerequiring bool
}

// tag identifies a chunk; two chunks with one tag are one state.
func (c *chunk) tag() string {
	return c.module + "_|-" + c.id + "_|-" + c.name + "_|-" + c.fun
}

func (c *chunk) function() string { return c.module + "." + c.fun }

// chunks flattens the high data: one chunk per state and name.
func (h *high) chunks(table *core.Table) ([]*chunk, error) {
	var out []*chunk
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

func (s *stateDecl) chunks(d *decl, table *core.Table) ([]*chunk, error) {
	if len(s.funs) == 0 {
		return nil, failf(s.at, "No function declared in state '%s' in SLS '%s'", d.id, d.sls)
	}
	base := &chunk{module: s.module, fun: s.funs[0].fun, id: d.id, name: d.id, sls: d.sls,
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
		c, err := base.with(args, table)
		if err != nil {
			return nil, err
		}
		return []*chunk{c}, nil
	}
	var out []*chunk
	for i, e := range names {
		b := *base
		c, err := b.with(append(append([]argument{}, args...), append([]argument{{key: "name", val: e.name, at: e.at}}, e.over...)...), table)
		if err != nil {
			return nil, err
		}
		c.nameOrder = i + 1
		out = append(out, c)
	}
	return out, nil
}

// with gives a chunk its arguments and checks them against the function.
func (c *chunk) with(args []argument, table *core.Table) (*chunk, error) {
	out := *c
	out.args, out.global, out.globalAt = py.NewDict(), py.NewDict(), map[string]pos{}
	fn, ok := table.Lookup(out.function())
	if !ok {
		return nil, unknownFunction(&out, table)
	}
	out.fn = fn
	at := map[string]pos{}
	for _, a := range args {
		if err := out.take(a); err != nil {
			return nil, err
		}
		at[a.key] = a.at
	}
	out.args.SetStr("name", out.name)
	for _, k := range out.args.Keys() {
		key := k.(string)
		if _, lacks := fn.Lacks[key]; lacks {
			if v, _ := out.args.Pop(key); fn.Asks(key, v) {
				return nil, lacking(at[key], "the argument "+key+" of "+out.function(), out.function())
			}
			continue
		}
		if fn.Knows(key) {
			continue
		}
		// As a formula writes file.{{ 'managed' if x else 'absent' }}, arguments of the module's other functions
		// are no mistake.
		if table.ModuleKnows(out.module, key) {
			out.args.Delete(key)
			out.ignored = append(out.ignored, key)
			continue
		}
		near := closest(key, knownArgs(fn))
		// Salt hands what a templating function does not know to the template.
		if v, has := out.args.GetStr("template"); has && v != nil && (near == "" || distance(key, near, 3) > max(1, len(key)/4)) {
			extra, _ := out.args.GetStr("context")
			ctx, _ := extra.(*py.Dict)
			vars := py.NewDict()
			v, _ := out.args.Pop(key)
			vars.SetStr(key, v)
			vars.Update(ctx)
			if extra == nil || ctx != nil {
				out.args.SetStr("context", vars)
			}
			continue
		}
		e := failf(at[key], "%s of state '%s' has no argument '%s'", out.function(), out.id, key)
		if near != "" {
			return nil, e.WithHint("did you mean '%s'?", near)
		}
		takes := out.function() + " takes: " + strings.Join(fn.Params, ", ")
		if out.module == "cmd" { // cmd.* take **kwargs
			return nil, e.WithHint("Salt ignores it without a word, so it does nothing there either: remove it; %s", takes)
		}
		return nil, e.WithHint("%s", takes)
	}
	if what := state.Cannot(fn, out.args); what != "" {
		return nil, lacking(out.at, what, out.function())
	}
	for _, r := range fn.Required {
		if !out.args.Has(r) {
			return nil, failf(out.at, "Missing parameter %s for state %s ('%s')", r, out.function(), out.id)
		}
	}
	return &out, nil
}

func knownArgs(fn *core.Function) []string {
	return append(append([]string{}, fn.Params...), "require", "watch", "onchanges", "onfail", "prereq", "listen",
		"require_in", "watch_in", "onchanges_in", "onfail_in", "prereq_in", "listen_in", "onlyif", "unless", "creates",
		"order", "failhard", "retry", "check_cmd", "names", "runas", "umask", "require_any", "watch_any", "onchanges_any", "onfail_any")
}

// unknownFunction tells a typo, which has a near neighbour, from a function that Salt may have.
func unknownFunction(c *chunk, table *core.Table) *fault.Error {
	if near := closestFunction(c.function(), table.Names()); near != "" && !saltnames.State(c.function()) {
		return failf(c.at, "State '%s' was not found", c.function()).WithHint("did you mean %s?", near)
	}
	return lacking(c.at, "the state function "+c.function(), c.function())
}

// lacking is what Salt has and the built-in runner has not.
func lacking(p pos, what, function string) *fault.Error {
	at := p.at()
	return fault.New(fault.Failed, "", "%w", &NeedError{Need{File: at.File, Line: at.Line, Text: at.Text, What: what}}).
		WithPos(at).WithHint("%s", needHint(function))
}

// take sorts an argument into what it is.
func (c *chunk) take(a argument) error {
	if t, ok := parseReqType(a.key); ok {
		c.reqs[t] = nil
		for _, v := range a.val.(*py.List).Items() {
			r, err := parseReq(a, v)
			if err != nil {
				return err
			}
			if r.module != "" {
				c.reqs[t] = append(c.reqs[t], r)
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
			c.name = s
		} else {
			c.name = c.id
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
			c.listenIn = append(c.listenIn, r)
		}
		return nil
	case "parallel":
		if py.Truth(a.val) {
			return lacking(a.at, "the argument parallel", c.function())
		}
		return nil
	case "umask":
		n, err := strconv.ParseInt(strings.TrimSpace(py.Str(a.val)), 8, 32)
		if err != nil || n < 0 || n > 0o777 {
			return failf(a.at, "Invalid umask: it must be an octal number")
		}
		u := int(n)
		c.umask = &u
		return nil
	case "saltenv":
		if py.Str(a.val) != "base" && a.val != nil {
			return failf(a.at, "there is one environment: base")
		}
		return nil
	case "check_cmd", "runas":
		// These are also arguments of some functions, which then handle them.
		if c.fn.Takes(a.key) {
			c.args.SetStr(a.key, a.val)
			if a.key == "check_cmd" {
				return nil
			}
		}
		c.global.SetStr(a.key, a.val)
		c.globalAt[a.key] = a.at
		return nil
	}
	if globalArg(a.key) {
		c.global.SetStr(a.key, a.val)
		c.globalAt[a.key] = a.at
		return nil
	}
	c.args.SetStr(a.key, a.val)
	return nil
}
