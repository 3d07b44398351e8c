package state

import (
	"strings"

	"corpus-git/internal/py"
)

// addModule adds module.run and module.wait: execution functions as states, in both of Salt's forms.
// Source: Salt documentation, module state.
func addModule(t *Table) {
	t.add("module.run", "*", moduleRun)
	t.add("module.wait", "*", func(*Call) Return { return Return{Result: True} })
	t.onWatch("module", func(c *Call, _ string) Return { return moduleRun(c) })
}

// moduleRun runs the function that name (or m_name's form) gives with the other arguments, or each of
// `- module.function: [arguments]`.
func moduleRun(c *Call) Return {
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
				j.args = append(j.args, c.list(key)...)
			case "kwargs", "func_kwargs":
				j.kw.Update(c.dict(key))
			case "m_name", "m_fun", "m_user":
				j.kw.SetStr(key[2:], e.Value)
			case "returner":
			default:
				_ = j.kw.Set(e.Key, e.Value)
			}
		}
		jobs = append(jobs, j)
	}
	ret := Return{Result: True}
	if c.Test {
		var funs []string
		for _, j := range jobs {
			funs = append(funs, j.fun)
		}
		return Would(nil, "Function %s to be executed.", strings.Join(funs, ", "))
	}
	var done []string
	for _, j := range jobs {
		v, err := c.Modules(c.Ctx, j.fun, j.args, j.kw)
		if err != nil {
			ret.Result = False
			ret.Comment = "'" + j.fun + "' failed: " + err.Error()
			return ret
		}
		key := j.fun
		if old {
			key = "ret"
		}
		ret.Set(key, v)
		if v == false {
			ret.Result = False
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
