package sls

import (
	"encoding/json"
	"time"
)

// Outcome is the result of a state.
type Outcome string

const (
	// Succeeded is Salt's True.
	Succeeded Outcome = "succeeded"
	// FailedState is Salt's False.
	FailedState Outcome = "failed"
	// WouldChange is Salt's None: a change that test=True held back.
	WouldChange Outcome = "would-change"
)

// StateRef names a state of a program.
type StateRef struct {
	// ID is the declaration's ID; Name is what it acts on (the argument name, or one of names).
	ID   string `json:"id"`
	Name string `json:"name"`
	// Function is module.function: file.managed.
	Function string `json:"function"`
	SLS      string `json:"sls"`
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	// Num counts states from 1 in the order in which they run; Of is their total number.
	Num int `json:"num"`
	Of  int `json:"of"`
}

// StateResult is what one state did.
type StateResult struct {
	StateRef
	Outcome Outcome `json:"outcome"`
	// Changed is true if something changed (or would, in a test run).
	Changed bool `json:"changed"`
	// Changes is Salt's changes dictionary as JSON, null if nothing changed. It can contain secrets.
	Changes json.RawMessage `json:"changes,omitempty"`
	Comment string          `json:"comment,omitempty"`
	// Skipped is true if onlyif, unless, onchanges or a failed requisite kept it from running.
	Skipped bool `json:"skipped,omitempty"`
	// Always: the state runs whenever its step does, such as a command without conditions. In a test run it says nothing about the machine.
	Always bool `json:"always,omitempty"`
	// Unevaluated is what a plan did not evaluate because that would run a command: onlyif, unless, check_cmd, a template.
	Unevaluated []string      `json:"unevaluated,omitempty"`
	Started     time.Time     `json:"started"`
	Duration    time.Duration `json:"duration_ns"`
	// Diff is the unified diff of a text file that was or would be changed, "" otherwise. It can contain secrets.
	Diff string `json:"diff,omitempty"`
	// Command is set if the state ran one.
	Command *CommandResult `json:"command,omitempty"`
}

// CommandResult describes the command that a state ran. It can contain secrets.
type CommandResult struct {
	Line       string `json:"line"`
	Dir        string `json:"dir,omitempty"`
	User       string `json:"user,omitempty"`
	ExitStatus int    `json:"exit_status"`
	TimedOut   bool   `json:"timed_out,omitempty"`
	// StderrTail is the end of standard error, at most 40 lines.
	StderrTail string `json:"stderr_tail,omitempty"`
}

// StepResult is what one SLS file did.
type StepResult struct {
	SLS      string        `json:"sls"`
	File     string        `json:"file"`
	Runner   string        `json:"runner"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	// States are in the order in which they ran.
	States []StateResult `json:"states"`
	// Warnings are remarks of the compilation: deprecated forms and the like.
	Warnings []string `json:"warnings,omitempty"`
}

// OK returns true if no state failed.
func (r *StepResult) OK() bool { return r.Failed() == nil }

// Failed returns the first state that failed by itself (not because of a failed requisite), nil if none did.
func (r *StepResult) Failed() *StateResult {
	var skipped *StateResult
	for i := range r.States {
		s := &r.States[i]
		if s.Outcome != FailedState {
			continue
		}
		if !s.Skipped {
			return s
		}
		if skipped == nil {
			skipped = s
		}
	}
	return skipped
}

// Counts returns the numbers of states that were already correct, that changed (or would), and that failed.
func (r *StepResult) Counts() (right, changed, failed int) {
	for i := range r.States {
		switch s := &r.States[i]; {
		case s.Outcome == FailedState:
			failed++
		case s.Changed:
			changed++
		default:
			right++
		}
	}
	return right, changed, failed
}

// Stream names the output that a line came from.
type Stream string

const (
	// Stdout is the standard output of a state's command.
	Stdout Stream = "stdout"
	// Stderr is the standard error of a state's command.
	Stderr Stream = "stderr"
	// Log is output of a runner or a template itself.
	Log Stream = "log"
)

// Sink receives what happens, as it happens, from one goroutine at a time. It must not block for long.
type Sink interface {
	StateStart(ref StateRef)
	StateDone(res StateResult)
	// Output receives one line without its line end. id is the ID of the running state, "" outside a state.
	Output(id string, stream Stream, line string)
}

// Discard is a Sink that drops everything.
type Discard struct{}

// StateStart implements Sink.
func (Discard) StateStart(StateRef) {}

// StateDone implements Sink.
func (Discard) StateDone(StateResult) {}

// Output implements Sink.
func (Discard) Output(string, Stream, string) {}
