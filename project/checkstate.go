package project

import "time"

// CheckPeriod is a period in which all runs of a periodic check had the same result.
type CheckPeriod struct {
	Check string `json:"check"`
	// Good: it succeeded.
	Good bool `json:"good"`
	// Since and Last are when the first and the last run of the period ended, Runs is their number.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	Runs  int64     `json:"runs"`
	// Took is the duration of the last run.
	Took time.Duration `json:"took_ns"`
	// Reason and Answer are from the last failed run, redacted: one line, and the first lines of the answer.
	Reason string   `json:"reason,omitempty"`
	Answer []string `json:"answer,omitempty"`
	// Code is the commit that was live when the period began.
	Code Commit `json:"code,omitempty"`
}

// CheckState is the state of a periodic check.
type CheckState struct {
	Name string    `json:"name"`
	Kind CheckKind `json:"kind"`
	// Every is the interval between two runs.
	Every time.Duration `json:"every_ns"`
	// Now is the newest period, nil before the first run has ended.
	Now *CheckPeriod `json:"now,omitempty"`
}

// Failing reports whether the last run failed.
func (s CheckState) Failing() bool { return s.Now != nil && !s.Now.Good }

// The events of notifications about checks that run periodically.
const (
	CheckFailed    = "check-failed"
	CheckSucceeded = "check-succeeded"
)

// Event returns the name of the notification that reports the beginning of this period.
func (p CheckPeriod) Event() string {
	if p.Good {
		return CheckSucceeded
	}
	return CheckFailed
}
