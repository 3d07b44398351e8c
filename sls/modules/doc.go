// Package modules holds what SLS files call as salt['module.function'].
//
// It owns Salt's execution functions as far as templates use them, those of makina-states that
// corpus projects use (mc_project, mc_utils, mc_locations, …), and the rule which of them may be
// called before a deployment started. It never renders templates and never runs states.
//
// Invariants: in a Static set, a function that runs a command, changes something, or looks at
// what an earlier step may change is not run: it gives a *DeferError. No error holds a value of
// the pillar. Concurrency: a Set belongs to one rendering at a time.
//
// Source: Salt documentation, "Execution Modules"; makina-states, mc_states/modules.
package modules
