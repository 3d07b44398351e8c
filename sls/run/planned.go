package run

import (
	"slices"

	"corpus-git/sls/compile"
	"corpus-git/sls/state/core"
)

// planNotes records what a plan does not evaluate in one state. A nil planNotes records nothing.
type planNotes struct {
	count *int // number of refused commands
	was   int
	left  []string
}

// planNotes returns nil if the run is not a plan.
func (r *run) planNotes() *planNotes {
	if !r.p.Input.Plan {
		return nil
	}
	return &planNotes{count: r.p.Input.Host.Refused, was: *r.p.Input.Host.Refused}
}

// refused reports whether a command was refused since the last call.
func (p *planNotes) refused() bool {
	if p == nil || *p.count == p.was {
		return false
	}
	p.was = *p.count
	return true
}

// leaveOut records that the plan skips something if it would run a command, and reports whether it does.
func (p *planNotes) leaveOut(what string, runs bool) bool {
	if p == nil || !runs {
		return false
	}
	if !slices.Contains(p.left, what) {
		p.left = append(p.left, what)
	}
	return true
}

// commands records what the function of a state, or a template or a slot of it, could not run.
func (p *planNotes) commands(skipped bool) {
	if !skipped {
		p.leaveOut("a needed command", p.refused())
	}
}

// result returns the result of a state whose outcome depends on what was skipped: it would change if all of that allows it. A result
// without changes is kept.
func (p *planNotes) result(ret core.Return) core.Return {
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
