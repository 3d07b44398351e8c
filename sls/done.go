package sls

import (
	"context"
	"time"

	"corpus-git/internal/py"
)

// WaitFunc is the state corpus.wait: it pauses until a wait has ended, and returns a message about it; an error makes the state fail. so is what the file
// has done before; it is called, if at all, before WaitFunc returns.
type WaitFunc func(ctx context.Context, id string, args *py.Dict, so func() Done) (said string, err error)

// Done is what a run of a file has done when it pauses, for another process to continue. It contains no text of the file.
type Done struct {
	// Program is a digest of the compiled file.
	Program string `json:"program,omitempty"`
	// States are the states that have ended.
	States []DoneState `json:"states,omitempty"`
	// Lost says why no other process can continue, "" if one can.
	Lost string `json:"lost,omitempty"`
}

// DoneState is a state that ended without a failure.
type DoneState struct {
	// N is its index in the order in which states and their test runs are.
	N int `json:"n"`
	// Ran, Changed, SkipWatch and SkipReq are its outcome for the states that depend on it.
	Ran       bool          `json:"ran,omitempty"`
	Changed   bool          `json:"changed,omitempty"`
	SkipWatch bool          `json:"skip_watch,omitempty"`
	SkipReq   bool          `json:"skip_req,omitempty"`
	Started   time.Time     `json:"started"`
	Duration  time.Duration `json:"duration_ns"`
}

// Lost returns the Done of a run that no other process can continue.
func Lost(why string) func() Done { return func() Done { return Done{Lost: why} } }
