package project

import "time"

// CheckPeriod is a time in which a check that runs periodically gave the same answer each time: it succeeded, or it failed.
type CheckPeriod struct {
	Check string `json:"check"`
	// Good: it succeeded.
	Good bool `json:"good"`
	// Since and Last are when the first and the last run of the period ended, Runs how many there were.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	Runs  int64     `json:"runs"`
	// Took is how long the last run took.
	Took time.Duration `json:"took_ns"`
	// Reason and Answer are those of the last run that failed, redacted: one line, and the first lines of what came back.
	Reason string   `json:"reason,omitempty"`
	Answer []string `json:"answer,omitempty"`
	// Code is the commit that was live when the period began.
	Code Commit `json:"code,omitempty"`
}

// CheckState is a check that runs periodically, as it stands.
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

// Event is what a notification of the beginning of this period is called.
func (p CheckPeriod) Event() string {
	if p.Good {
		return CheckSucceeded
	}
	return CheckFailed
}
