// Package modules holds the functions that SLS files call as salt['module.function'].
//
// It owns those of Salt's execution functions that templates use, those of makina-states that
// corpus projects use (mc_project, mc_utils, mc_locations, …), and the rule about which of them may
// be called before a deployment has started. It never renders templates and never runs states.
//
// Invariants: in a Static set, a function that runs a command, changes something, or reads what an
// earlier step may change is not run: it returns a *DeferError. No error contains a value of
// the pillar. Concurrency: a Set belongs to one rendering at a time.
//
// Source: Salt documentation, "Execution Modules"; makina-states, mc_states/modules.
package modules
