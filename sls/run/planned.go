package run

import (
	"slices"

	"corpus-git/sls/compile"
	"corpus-git/sls/state/core"
)

// planned keeps account of what a plan leaves out of one state. A nil planned leaves nothing out.
type planned struct {
	count *int // of commands that were refused
	was   int
	left  []string
}

// planned is nil where the run is no plan.
func (r *run) planned() *planned {
	if !r.p.Input.Plan {
		return nil
	}
	return &planned{count: r.p.Input.Host.Refused, was: *r.p.Input.Host.Refused}
}

// refused reports whether a command was refused since it was last asked.
func (p *planned) refused() bool {
	if p == nil || *p.count == p.was {
		return false
	}
	p.was = *p.count
	return true
}

// leaves notes that the plan leaves something out, where it would run a command, and reports whether it does.
func (p *planned) leaves(what string, runs bool) bool {
	if p == nil || !runs {
		return false
	}
	if !slices.Contains(p.left, what) {
		p.left = append(p.left, what)
	}
	return true
}

// commands notes what the function of a state, or a template or a slot of it, could not run.
func (p *planned) commands(skipped bool) {
	if !skipped {
		p.leaves("a needed command", p.refused())
	}
}

// settle gives a state whose outcome hangs on what was left out: it would change, if all of that says so. One that is right
// already stays so.
func (p *planned) settle(ret core.Return) core.Return {
	if p == nil || len(p.left) == 0 {
		return ret
	}
	ret.Unevaluated = p.left
	if ret.Result == core.False || slices.Contains(p.left, "a needed command") {
		ret.Result = core.None
	}
	return ret
}

// runsCommand reports whether a condition runs a command line.
func runsCommand(v any) bool {
	return slices.ContainsFunc(compile.Items(v), func(e any) bool { _, ok := e.(string); return ok })
}
