package run

import (
	"context"
	"os"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/compile"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// conditionError is an error raised by a function in a condition: the state fails, as it does in Salt.
type conditionError struct{ error }

// conditions evaluates onlyif, unless and creates; skip reports that the state does not run.
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

// condition runs one entry of onlyif or unless: a command, or a function with its arguments. Anything else, such as a
// boolean, is not a condition: valid is false.
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

// unless skips the state if every command or function succeeds.
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
