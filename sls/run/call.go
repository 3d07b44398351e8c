package run

import (
	"context"
	"errors"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/compile"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// call runs the function of a state, with onlyif, unless, creates, check_cmd and retry around it.
func (r *run) call(ctx context.Context, c *compile.Chunk, reqs []core.Requisite, test bool) (core.Return, error) {
	ret, err := r.callState(ctx, c, reqs, test)
	if err != nil || test {
		return ret, err
	}
	v, ok := c.Global.GetStr("retry")
	if !ok {
		return ret, nil
	}
	return r.retry(ctx, c, reqs, ret, retryOf(v))
}

func (r *run) callState(ctx context.Context, c *compile.Chunk, reqs []core.Requisite, test bool) (core.Return, error) {
	var ret core.Return
	p := r.planNotes()
	skip, comment, err := r.conditions(ctx, c, p)
	if raised := (*conditionError)(nil); errors.As(err, &raised) {
		return p.result(core.Failf("%s", raised)), nil
	}
	if err != nil {
		return ret, err
	}
	if skip {
		ret = core.Return{Result: core.True, Comment: comment, SkipWatch: true}
	} else {
		call := r.newCall(ctx, c, reqs, test)
		if err := r.slots(ctx, call.Args); err != nil {
			ret = core.Failf("%s", err)
		} else if err := checkLinks(c.Module, call); err != nil {
			ret = core.Failf("%s", err)
		} else {
			ret = c.Func.Run(call)
		}
		r.left(ctx, &ret, test)
	}
	if err := context.Cause(ctx); err != nil {
		return ret, err
	}
	p.commands(skip)
	if cmds, ok := c.Global.GetStr("check_cmd"); ok && !p.leaveOut("check_cmd", !c.Func.HasParam("check_cmd")) {
		ret, err = r.checkCmd(ctx, c, cmds, ret)
	}
	return p.result(ret), err
}

// watch runs mod_watch of the state's module.
func (r *run) watch(ctx context.Context, c *compile.Chunk, reqs []core.Requisite) (core.Return, error) {
	p := r.planNotes()
	skip, comment, err := r.conditions(ctx, c, p)
	if raised := (*conditionError)(nil); errors.As(err, &raised) {
		return p.result(core.Failf("%s", raised)), nil
	}
	if err != nil {
		return core.Return{}, err
	}
	if skip {
		return core.Return{Result: core.True, Comment: comment, SkipWatch: true}, nil
	}
	fn := r.p.Table.Watch(c.Module)
	if fn == nil {
		return core.Failf("State '%s.mod_watch' was not found", c.Module), nil
	}
	call := r.newCall(ctx, c, reqs, false)
	var ret core.Return
	if err := r.slots(ctx, call.Args); err != nil {
		ret = core.Failf("%s", err)
	} else {
		ret = fn(call, c.Fun)
	}
	r.left(ctx, &ret, false)
	p.commands(false)
	return p.result(ret), context.Cause(ctx)
}

// left lets the undo log inspect what a state left.
func (r *run) left(ctx context.Context, ret *core.Return, test bool) {
	if test || r.p.Input.Test {
		return
	}
	if err := r.env.Undo.After(context.WithoutCancel(ctx)); err != nil {
		ret.Warnings = append(ret.Warnings, err.Error())
	}
}

func (r *run) newCall(ctx context.Context, c *compile.Chunk, reqs []core.Requisite, test bool) *core.Call {
	if !test && !r.p.Input.Test {
		r.env.Undo.Enter(undo.State{Step: r.p.Input.SLS[strings.LastIndexByte(r.p.Input.SLS, '.')+1:], ID: c.ID})
	}
	out := &core.Call{
		Env: r.env, Ctx: ctx, Function: c.Function(), Name: c.Name, ID: c.ID, SLS: c.SLS, Args: c.Args.Copy(), Umask: c.Umask,
		Test: test || r.p.Input.Test, Requires: r.requires(c, reqs),
		Output: func(stderr bool, line string) {
			s := sls.Stdout
			if stderr {
				s = sls.Stderr
			}
			r.sink.Output(c.ID, s, line)
		},
	}
	for _, key := range []string{"require_in", "watch_in"} {
		if v, ok := c.Global.GetStr(key); ok {
			out.RequiredIn = append(out.RequiredIn, compile.Items(v)...)
		}
	}
	if v, ok := c.Global.GetStr("runas"); ok && v != nil {
		out.RunAs = py.Str(v)
	}
	if v, ok := c.Global.GetStr("provider"); ok {
		out.Provider, _ = v.(string)
	}
	if v, ok := c.Global.GetStr("no_log"); ok && py.Truth(v) {
		out.Output = nil
	}
	return out
}

// requires adds to the requisites those states that are required in any other way (by file.directory clean).
func (r *run) requires(c *compile.Chunk, reqs []core.Requisite) []core.Requisite {
	return reqs
}

// shell returns how onlyif and unless run their commands.
func (r *run) shell(c *compile.Chunk, line string) host.Shell {
	sh := host.Shell{Line: line, Umask: c.Umask}
	excluded := map[string]bool{}
	if v, ok := c.Global.GetStr("cmd_opts_exclude"); ok {
		for _, s := range strs(v) {
			excluded[s] = true
		}
	}
	get := func(k string) (any, bool) {
		if excluded[k] {
			return nil, false
		}
		v, ok := c.Global.GetStr(k)
		if !ok {
			v, ok = c.Args.GetStr(k)
		}
		return v, ok && v != nil
	}
	if v, ok := get("cwd"); ok {
		sh.Dir = py.Str(v)
	}
	if v, ok := get("runas"); ok {
		sh.RunAs = py.Str(v)
	} else if v, ok := get("user"); ok && c.Module == "cmd" {
		sh.RunAs = py.Str(v)
	}
	if v, ok := get("shell"); ok && c.Module == "cmd" {
		sh.Path = py.Str(v)
	}
	if v, ok := get("prepend_path"); ok {
		sh.Prepend = py.Str(v)
	}
	if v, ok := get("timeout"); ok {
		if n, err := py.Index(v); err == nil {
			sh.Timeout = time.Duration(n) * time.Second
		}
	}
	if v, ok := get("env"); ok {
		sh.Env = envOf(v)
	}
	return sh
}

func envOf(v any) map[string]string {
	out := map[string]string{}
	put := func(d *py.Dict) {
		for _, e := range d.Items() {
			if e.Value == nil {
				out[py.Str(e.Key)] = ""
				continue
			}
			out[py.Str(e.Key)] = py.Str(e.Value)
		}
	}
	switch x := v.(type) {
	case *py.Dict:
		put(x)
	case *py.List:
		for _, it := range x.Items() {
			if d, ok := it.(*py.Dict); ok {
				put(d)
			}
		}
	}
	return out
}

func strs(v any) []string {
	if l, ok := v.(*py.List); ok {
		out := make([]string, 0, l.Len())
		for _, x := range l.Items() {
			out = append(out, py.Str(x))
		}
		return out
	}
	return []string{py.Str(v)}
}

func triName(t core.Tri) string { return [...]string{"False", "True", "None"}[t] }

// hiddenText replaces what no_log keeps out of results, as in Salt.
const hiddenText = "**********"

// hideValues returns a value with all texts in it replaced; keys, numbers and booleans are kept.
func hideValues(v any) any {
	switch x := v.(type) {
	case string:
		if x == "" {
			return x
		}
		return hiddenText
	case *py.Dict:
		if x == nil {
			return x
		}
		out := py.NewDict()
		for _, e := range x.Items() {
			_ = out.Set(e.Key, hideValues(e.Value))
		}
		return out
	case *py.List:
		out := py.NewList()
		for _, e := range x.Items() {
			out.Append(hideValues(e))
		}
		return out
	case nil, bool, int64, float64:
		return v
	}
	return hiddenText
}
