package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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

// left has the undo log look at what a state left.
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

// shell is how onlyif and unless run their commands.
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

// conditions are onlyif, unless and creates; skip reports that the state does not run.
// Source: Salt documentation, "Requisites", "Altering States".
func (r *run) conditions(ctx context.Context, c *compile.Chunk, p *planNotes) (skip bool, comment string, err error) {
	var comments []string
	for _, cond := range []struct {
		name string
		ask  func(ctx context.Context, c *compile.Chunk, v any) (bool, string, error)
	}{{"onlyif", r.onlyif}, {"unless", r.unless}} {
		v, ok := c.Global.GetStr(cond.name)
		if !ok || p.leaveOut(cond.name, runsCommand(v)) {
			continue
		}
		s, cm, err := cond.ask(ctx, c, v)
		if p.leaveOut(cond.name, p.refused()) {
			continue
		}
		if err != nil {
			return false, "", err
		}
		skip = skip || s
		comments = append(comments, cm)
	}
	if v, ok := c.Global.GetStr("creates"); ok {
		s, cm := creates(v)
		skip = skip || s
		comments = append(comments, cm)
	}
	return skip, strings.Join(comments, "\n"), nil
}

// conditionError is what a function of a condition raised: the state fails, as it does in Salt.
type conditionError struct{ error }

// condition runs one entry of onlyif or unless: a command, or a function with its arguments. Anything else, a truth among
// it, is no condition: valid is false.
func (r *run) condition(ctx context.Context, c *compile.Chunk, entry any, onStartFailure bool) (ok, valid bool, err error) {
	switch x := entry.(type) {
	case string:
		res, rerr := r.p.Input.Host.RunShell(ctx, r.shell(c, x))
		if cause := context.Cause(ctx); cause != nil {
			return false, false, cause
		}
		if rerr != nil {
			return onStartFailure, true, nil
		}
		return res.Retcode == 0, true, nil
	case *py.Dict:
		kw := x.Copy()
		fun, has := kw.Pop("fun")
		if !has {
			return false, false, nil
		}
		var args []any
		if a, ok := kw.Pop("args"); ok {
			args = compile.Items(a)
		}
		path, _ := kw.Pop("get_return")
		asked := py.NewDict("args", py.NewList(args...), "kw", kw)
		if err := r.slots(ctx, asked); err != nil {
			return false, false, &conditionError{err}
		}
		l, _ := asked.GetStr("args")
		args = l.(*py.List).Items()
		d, _ := asked.GetStr("kw")
		kw = d.(*py.Dict)
		v, err := r.env.Modules(ctx, py.Str(fun), args, kw)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return false, false, cause
			}
			return false, false, &conditionError{err}
		}
		if path != nil {
			v, _ = py.Traverse(v, py.Str(path), ":")
		}
		return py.Truth(v), true, nil
	}
	return false, false, nil
}

func (r *run) onlyif(ctx context.Context, c *compile.Chunk, v any) (skip bool, comment string, err error) {
	comment = "onlyif condition is true"
	for _, e := range compile.Items(v) {
		ok, valid, err := r.condition(ctx, c, e, false)
		if err != nil {
			return false, "", err
		}
		if !valid {
			return false, "onlyif execution failed, bad type passed", nil
		}
		if !ok {
			return true, "onlyif condition is false", nil
		}
	}
	return false, comment, nil
}

// unless skips where every command or function succeeds.
func (r *run) unless(ctx context.Context, c *compile.Chunk, v any) (skip bool, comment string, err error) {
	for _, e := range compile.Items(v) {
		ok, valid, err := r.condition(ctx, c, e, true)
		if err != nil {
			return false, "", err
		}
		if !valid {
			skip, comment = false, "unless condition is false, bad type passed"
			if _, isDict := e.(*py.Dict); isDict {
				return skip, comment, nil
			}
			continue
		}
		if !ok {
			return false, "unless condition is false", nil
		}
		skip, comment = true, "unless condition is true"
	}
	return skip, comment, nil
}

func creates(v any) (skip bool, comment string) {
	if l, ok := v.(*py.List); ok {
		for _, p := range l.Items() {
			if _, err := os.Stat(py.Str(p)); err != nil {
				return false, "Creates files not found"
			}
		}
		return true, "All files in creates exist"
	}
	if _, err := os.Stat(py.Str(v)); err == nil {
		return true, py.Str(v) + " exists"
	}
	return false, "Creates files not found"
}

// checkCmd decides a state's result by commands.
func (r *run) checkCmd(ctx context.Context, c *compile.Chunk, cmds any, ret core.Return) (core.Return, error) {
	if c.Func.HasParam("check_cmd") {
		return ret, nil // the function has run it itself
	}
	for _, e := range compile.Items(cmds) {
		res, err := r.p.Input.Host.RunShell(ctx, host.Shell{Line: py.Str(e)})
		if cause := context.Cause(ctx); cause != nil {
			return ret, cause
		}
		if err != nil || res.Retcode != 0 {
			ret.Result, ret.Comment = core.False, "check_cmd determined the state failed"
			return ret, nil
		}
		ret.Result, ret.Comment = core.True, "check_cmd determined the state succeeded"
	}
	return ret, nil
}

type retrySpec struct {
	until                     bool
	attempts, interval, splay int64
}

func retryOf(v any) retrySpec {
	s := retrySpec{true, 2, 30, 0}
	if b, ok := v.(bool); ok && !b {
		s.attempts = 0
		return s
	}
	d, _ := v.(*py.Dict) // anything else, a list of mappings too, asks for the defaults
	if b, has := d.GetStr("until"); has {
		if x, isBool := b.(bool); isBool {
			s.until = x
		}
	}
	for k, p := range map[string]*int64{"attempts": &s.attempts, "interval": &s.interval, "splay": &s.splay} {
		if n, has := d.GetStr(k); has {
			if i, isInt := n.(int64); isInt {
				*p = i
			}
		}
	}
	return s
}

// retry runs a state again until it gives the wanted result. Source: Salt documentation, "Retrying States".
func (r *run) retry(ctx context.Context, c *compile.Chunk, reqs []core.Requisite, ret core.Return, s retrySpec) (core.Return, error) {
	if r.p.Input.Test {
		ret.Comment += fmt.Sprintf("  The state would be retried every %d seconds (with a splay of up to %d seconds) a maximum of %d times or until a result of %s is returned",
			s.interval, s.splay, s.attempts, py.Str(s.until))
		return ret, nil
	}
	var log []string
	for try := int64(1); try < s.attempts && (ret.Result == core.True) != s.until; try++ {
		log = append(log, fmt.Sprintf("Attempt %d: Returned a result of \"%s\", with the following comment: \"%s\"", try, triName(ret.Result), ret.Comment))
		wait := s.interval
		if s.splay > 0 {
			wait += rand.Int64N(s.splay + 1)
		}
		t := time.NewTimer(time.Duration(wait) * time.Second)
		select {
		case <-ctx.Done():
			t.Stop()
			return ret, context.Cause(ctx)
		case <-t.C:
		}
		var err error
		if ret, err = r.callState(ctx, c, reqs, false); err != nil {
			return ret, err
		}
	}
	if len(log) > 0 {
		ret.Comment = strings.Join(append(log, ret.Comment), "\n")
	}
	return ret, nil
}

func triName(t core.Tri) string { return [...]string{"False", "True", "None"}[t] }

// hiddenText stands for what no_log keeps out of results, as in Salt.
const hiddenText = "**********"

// hideValues is a value with all texts in it replaced; keys, numbers and truths stay.
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
