package command

import (
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/service"
)

// addModule adds module.run and module.wait: execution functions as states, in both of Salt's forms.
// Source: Salt documentation, module state.
func addModule(t *core.Table) {
	t.Add("module.run", "*", moduleRun)
	t.Add("module.wait", "*", func(*core.Call) core.Return { return core.Return{Result: core.True} })
	t.OnWatch("module", func(c *core.Call, _ string) core.Return { return moduleRun(c) })
}

// job is one call of an execution function.
type job struct {
	fun  string
	args []any
	kw   *py.Dict
}

// moduleRun runs the function that name (or the form with m_name) gives, with the other arguments, or each
// of `- module.function: [arguments]`.
func moduleRun(c *core.Call) core.Return {
	jobs := dottedJobs(c)
	old := len(jobs) == 0
	if old {
		jobs = []job{namedJob(c)}
	}
	if c.Test {
		var funs []string
		for _, j := range jobs {
			funs = append(funs, j.fun)
		}
		return core.Would(nil, "Function %s to be executed.", strings.Join(funs, ", "))
	}
	ret := core.Return{Result: core.True}
	var done []string
	for _, j := range jobs {
		if err := noteService(c, j); err != nil {
			return core.Failf("%s", err)
		}
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

// dottedJobs returns the arguments that name a function: `- module.function: [arguments]`.
func dottedJobs(c *core.Call) (jobs []job) {
	for _, e := range c.Args.Items() {
		j := job{fun: py.Str(e.Key), kw: py.NewDict()}
		if !dotted(j.fun) {
			continue
		}
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
	return jobs
}

// namedJob returns the old form: the function is the name of the state, and its arguments are the state's.
func namedJob(c *core.Call) job {
	j := job{fun: c.Name, kw: py.NewDict()}
	for _, e := range c.Args.Items() {
		switch key := py.Str(e.Key); key {
		case "name", "returner":
		case "args", "func_args":
			j.args = append(j.args, c.List(key)...)
		case "kwargs", "func_kwargs":
			j.kw.Update(c.Dict(key))
		case "m_name", "m_fun", "m_user":
			j.kw.SetStr(key[2:], e.Value)
		default:
			j.kw.SetStr(key, e.Value)
		}
	}
	return j
}

func dotted(s string) bool {
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '.' {
			return true
		}
	}
	return false
}

// ModuleFunctions returns the execution functions that a module.run names.
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

// noteService records in the undo log a service that a function starts, stops, restarts or reloads.
func noteService(c *core.Call, j job) error {
	verb, ok := strings.CutPrefix(j.fun, "service.")
	if !ok || !slices.Contains([]string{"start", "stop", "restart", "reload", "force_reload"}, verb) {
		return nil
	}
	name, _ := j.kw.GetStr("name")
	if len(j.args) > 0 {
		name = j.args[0]
	}
	return service.Note(c, py.Str(name), verb)
}
