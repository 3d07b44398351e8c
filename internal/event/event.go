package event

import "time"

// Kind is the kind of an event. The list is part of the --json schema.
type Kind string

const (
	// Head opens a deployment: project, commits, user.
	Head Kind = "head"
	// Waiting reports what a deployment waits for, and how many are before it.
	Waiting Kind = "waiting"
	// Note is a separate line: what was skipped, decided or found.
	Note Kind = "note"
	// ProcedureStart opens a procedure.
	ProcedureStart Kind = "procedure-start"
	// ProcedureDone closes it: what it did, and how long it took.
	ProcedureDone Kind = "procedure-done"
	// StepStart opens one step of the install procedure.
	StepStart Kind = "step-start"
	// StepDone closes it.
	StepDone Kind = "step-done"
	// StateStart opens one state of a step.
	StateStart Kind = "state-start"
	// StateDone closes it.
	StateDone Kind = "state-done"
	// Output is one line that a command printed.
	Output Kind = "output"
	// Failure is the full failure: Text is the first line, Lines the rest.
	Failure Kind = "failure"
	// Plan is one thing that a deployment would change.
	Plan Kind = "plan"
	// Verdict is the last event; its Status reports whether the deployment succeeded.
	Verdict Kind = "verdict"
	// Hint tells the reader what to do next.
	Hint Kind = "hint"
)

// Status of a Done, Plan or Verdict event.
type Status string

const (
	// OK means that nothing had to be changed, or that the whole succeeded.
	OK Status = "ok"
	// Changed means that it succeeded and changed something.
	Changed Status = "changed"
	// Bad means that it failed.
	Bad Status = "failed"
	// Skipped means that it was not run (only, skip, an unmet requisite).
	Skipped Status = "skipped"
)

// Event is one thing that happened. Which fields are set follows from Kind; absent ones are omitted in JSON.
type Event struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// Status reports how a Done, Plan or Verdict event went.
	Status Status `json:"status,omitempty"`
	// Procedure, Step and State are where it happened. State is the state's ID.
	Procedure string `json:"procedure,omitempty"`
	Step      string `json:"step,omitempty"`
	State     string `json:"state,omitempty"`
	// Function is the state's function, such as cmd.run.
	Function string `json:"function,omitempty"`
	// N of Of counts steps.
	N  int `json:"n,omitempty"`
	Of int `json:"of,omitempty"`
	// Changed counts the states of a step that changed something.
	Changed int `json:"changed,omitempty"`
	// Duration is set on Done events and on the verdict; in nanoseconds.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Stream is "stdout" or "stderr" for Output.
	Stream string `json:"stream,omitempty"`
	// Text is the event's own line, Lines what is under it.
	Text  string   `json:"text,omitempty"`
	Lines []string `json:"lines,omitempty"`
}
