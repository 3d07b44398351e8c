package project

import (
	"strings"
	"time"
)

// ConvergeMode is what a converge does.
type ConvergeMode string

const (
	// ConvergeEnforce applies its steps and permissions.
	ConvergeEnforce ConvergeMode = "enforce"
	// ConvergeReport reports what they would change, and changes nothing.
	ConvergeReport ConvergeMode = "report"
)

// ConvergeModes returns all modes.
func ConvergeModes() []ConvergeMode { return []ConvergeMode{ConvergeEnforce, ConvergeReport} }

// ConvergePolicy says when and how the live release of a project is applied again.
type ConvergePolicy struct {
	// Boot: once after each start of the machine.
	Boot bool `json:"boot,omitempty"`
	// Every is the interval of runs; 0 means never.
	Every time.Duration `json:"every_ns,omitempty"`
	// Splay is the period over which the runs of projects are spread; each project always has the same delay.
	Splay time.Duration `json:"splay_ns,omitempty"`
	Mode  ConvergeMode  `json:"mode"`
}

// On reports whether the server starts converges by itself.
func (p ConvergePolicy) On() bool { return p.Boot || p.Every > 0 }

// The occasions of a converge other than manual ones.
const (
	ConvergeBoot     = "boot"
	ConvergeSchedule = "schedule"
	// ConvergeWatch: a key that the project watches has changed.
	ConvergeWatch = "watch"
)

// ConvergeRun describes a TriggerConverge: what is done, and why.
type ConvergeRun struct {
	Mode ConvergeMode `json:"mode,omitempty"`
	// Occasion is ConvergeBoot, ConvergeSchedule or ConvergeWatch, "" for a manual run.
	Occasion string `json:"occasion,omitempty"`
}

// The states of a project that is converged.
const (
	// InSync: the state of the machine matches the live release.
	InSync = "in sync"
	// Drifted: a report found differences.
	Drifted = "drifted"
	// ConvergeFailing: the last run failed.
	ConvergeFailing = "failed"
)

// ConvergeState is the result of the last runs in a project.
type ConvergeState struct {
	ConvergePolicy
	// State is InSync, Drifted or ConvergeFailing, "" before the first run has ended; Since is when that state began.
	State string    `json:"state,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Last is when the last run ended, and Deployment its record, "" if it changed nothing and has none.
	Last       time.Time `json:"last,omitzero"`
	Deployment ID        `json:"deployment,omitempty"`
	// Code is the commit that it applied.
	Code Commit `json:"code,omitempty"`
	// Changed is the number of differences, and Drift the first of them, one line each and redacted; Reason is why it failed.
	Changed int      `json:"changed,omitempty"`
	Drift   []string `json:"drift,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	// Runs, Failed and Skipped count the runs that ended, the failed ones among them, and those that were due and were skipped because
	// of a deployment.
	Runs    int64 `json:"runs"`
	Failed  int64 `json:"failed"`
	Skipped int64 `json:"skipped"`
}

// Text returns the state in one line, "" if nothing is known.
func (s *ConvergeState) Text() string {
	switch {
	case s == nil || s.State == "" && !s.On():
		return ""
	case s.State == "":
		return "has not run yet"
	case s.State == Drifted:
		return "drifted since " + s.Since.Format(time.RFC3339) + ": " + strings.Join(s.Drift, "; ")
	case s.State == ConvergeFailing:
		return "failed since " + s.Since.Format(time.RFC3339) + ": " + s.Reason
	}
	return s.State + " since " + s.Since.Format(time.RFC3339)
}

// The events of notifications about converging.
const (
	EventDrifted        = "drifted"
	EventConvergeFailed = "converge-failed"
	EventConverged      = "converged"
)

// Event returns the name of the notification that reports the beginning of this state.
func (s ConvergeState) Event() string {
	switch s.State {
	case Drifted:
		return EventDrifted
	case ConvergeFailing:
		return EventConvergeFailed
	}
	return EventConverged
}
