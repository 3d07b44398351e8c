package command

import (
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// addModule adds module.run and module.wait: execution functions as states, in both of Salt's forms.
// Source: Salt documentation, module state.
func addModule(t *core.Table) {
	t.Add("module.run", "*", moduleRun)
	t.Add("module.wait", "*", func(*core.Call) core.Return { return core.Return{Result: core.True} })
	t.OnWatch("module", func(c *core.Call, _ string) core.Return { return moduleRun(c) })
}

// moduleRun runs the function that name (or m_name's form) gives with the other arguments, or each of
// `- module.function: [arguments]`.
func moduleRun(c *core.Call) core.Return {
	type job struct {
		fun  string
		args []any
		kw   *py.Dict
	}
	var jobs []job
	plain := py.NewDict()
	for _, e := range c.Args.Items() {
		key := py.Str(e.Key)
		if !dotted(key) {
			if key != "name" {
				plain.SetStr(key, e.Value)
			}
			continue
		}
		j := job{fun: key, kw: py.NewDict()}
		l, isList := e.Value.(*py.List)
		if !isList && e.Value != nil {
			l = py.NewList(e.Value)
		}
		if l != nil {
			for _, a := range l.Items() {
				if d, isDict := a.(*py.Dict); isDict {
					j.kw.Update(d)
				} else {
					j.args = append(j.args, a)
				}
			}
		}
		jobs = append(jobs, j)
	}
	old := len(jobs) == 0
	if old {
		j := job{fun: c.Name, kw: py.NewDict()}
		for _, e := range plain.Items() {
			switch key := py.Str(e.Key); key {
			case "args", "func_args":
				j.args = append(j.args, c.List(key)...)
			case "kwargs", "func_kwargs":
				j.kw.Update(c.Dict(key))
			case "m_name", "m_fun", "m_user":
				j.kw.SetStr(key[2:], e.Value)
			case "returner":
			default:
				_ = j.kw.Set(e.Key, e.Value)
			}
		}
		jobs = append(jobs, j)
	}
	ret := core.Return{Result: core.True}
	if c.Test {
		var funs []string
		for _, j := range jobs {
			funs = append(funs, j.fun)
		}
		return core.Would(nil, "Function %s to be executed.", strings.Join(funs, ", "))
	}
	var done []string
	for _, j := range jobs {
		v, err := c.Modules(c.Ctx, j.fun, j.args, j.kw)
		if err != nil {
			ret.Result = core.False
			ret.Comment = "'" + j.fun + "' failed: " + err.Error()
			return ret
		}
		key := j.fun
		if old {
			key = "ret"
		}
		ret.Set(key, v)
		if v == false {
			ret.Result = core.False
		}
		done = append(done, j.fun+": "+py.Str(v))
	}
	ret.Comment = strings.Join(done, ", ")
	if old {
		ret.Comment = "Module function " + c.Name + " executed"
	}
	return ret
}

func dotted(s string) bool {
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '.' {
			return true
		}
	}
	return false
}

// ModuleFunctions are the execution functions that a module.run names.
func ModuleFunctions(name string, args *py.Dict) []string {
	var out []string
	for _, k := range args.Keys() {
		if s := py.Str(k); dotted(s) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		out = append(out, name)
	}
	return out
}
