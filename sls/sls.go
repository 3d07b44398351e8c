package sls

import (
	"context"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/undo"
)

// Mode says what a compilation may look at.
type Mode uint8

const (
	// Static compiles before anything ran: a file whose templates would run a command, or look
	// at what an earlier step may change, is parsed only and reported as Deferred.
	Static Mode = iota
	// Live compiles right before the step runs: templates see the machine as it is.
	Live
)

// Input is everything that one SLS file is rendered and run with. Nothing in it is written to: templates work on copies.
type Input struct {
	// SLS is the dotted name: makina-projects.app.0100_build.
	SLS string
	// Roots are the file roots of salt://.
	Roots fileroot.Roots
	// Projects is the folder of all projects: Salt loads no module from below it, as the owners of working copies could change them; those
	// of the project itself come with its recipe. "" is none.
	Projects string
	// Cfg is the project configuration: opts.ms_project and cfg; nil is none.
	Cfg *py.Dict
	// Changed is given cfg as the templates left it, once: after a Check that rendered the file, and at the end of an Apply. It is
	// how a change reaches the steps that follow; what it returns is the step's error. Only the built-in runner calls it: what a
	// template changes inside Salt ends with Salt's own process. nil drops it.
	Changed func(cfg *py.Dict) error
	// Pillar and Grains are what templates see; nil is empty.
	Pillar, Grains *py.Dict
	// Opts are further keys of opts (id, root_dir, …); nil is none.
	Opts *py.Dict
	// Host is the machine.
	Host *host.Host
	// Mode of the compilation; Runner.Check sets Static and Runner.Apply sets Live.
	Mode Mode
	// Test runs no change: states report what they would do (Salt's test=True).
	Test bool
	// Plan is a test run of files that are not deployed: no command that they name is run, be it a condition, a test of a
	// stateful command, or what a template or a slot asks, and no Python. States report what was left out (StateResult.Unevaluated).
	// A Check with Plan is the one before such a run.
	Plan bool
	// Script is the path of the executable, for the script runner, and ScriptFile what messages call it ("" is the path).
	Script, ScriptFile string
	// Locations override keys of salt['mc_locations.settings']; nil is none.
	Locations *py.Dict
	// Undo keeps what stood outside of the archived trees before a state changes it; nil keeps nothing. What Salt and executables change
	// is not known: they say so in it.
	Undo *undo.Log
	// Yield is asked before each state; an error ends the step there, and is its error. nil goes on. Only the built-in runner asks.
	Yield func() error
	// Wait is the state corpus.wait: it pauses until a wait has ended, and gives what to say of it; an error fails the state. nil lets such a state fail.
	Wait func(ctx context.Context, id string, args *py.Dict) (said string, err error)
	// Branches makes functions of Salt that a state's template calls in a branch, a loop or a macro a need, as those are that it calls in any case: which
	// branch is taken is known when the template is rendered, and then it is too late for Salt. It is for who has a Salt to hand the file to.
	Branches bool
	// Passwords keeps what salt['mc_utils.generate_stored_password'] made; nil lets such a template fail.
	Passwords Passwords
	// KV gives the keys that the project sees, with their values; nil has none.
	KV func(ctx context.Context) (map[string]string, error)
}

// Asked is what Yield says.
func (in *Input) Asked() error {
	if in.Yield == nil {
		return nil
	}
	return in.Yield()
}

// Passwords keeps generated secrets by key, so that they stay the same from one run to the next.
type Passwords interface {
	// Get returns the stored secret; ok is false if there is none yet.
	Get(key string) (secret string, ok bool, err error)
	// Put returns a key a secret and returns what templates see of it: the secret or, if nothing is stored, a text that says so.
	Put(key, secret string) (string, error)
}

// Deferred says why a file could not be compiled before its turn.
type Deferred struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Why is a clause: "cmd.run is called while the template renders".
	Why string `json:"why"`
}

// Need is something that a file uses and the built-in runner lacks.
type Need struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text,omitempty"`
	// What names it: "state function timezone.system".
	What string `json:"what"`
}

// Checked is what a look at a step found before anything ran.
type Checked struct {
	SLS  string `json:"sls"`
	File string `json:"file"`
	// Runner is the name of the runner that will apply the step.
	Runner string `json:"runner"`
	// States is the number of states, 0 if the file is deferred or left to Salt.
	States int `json:"states"`
	// Deferred is not nil if only the syntax could be checked.
	Deferred *Deferred `json:"deferred,omitempty"`
	// Needs are why the built-in runner cannot apply it; then Runner is salt-call.
	Needs []Need `json:"needs,omitempty"`
	// Waits are the places of its states corpus.wait, as far as known.
	Waits []fault.Pos `json:"waits,omitempty"`
	// Warnings are what Salt ignores in it, where the built-in runner applies it and it is not deferred.
	Warnings []Warning `json:"warnings,omitempty"`
}

// Warning is a remark on a place in a file.
type Warning struct {
	At   fault.Pos `json:"at"`
	Text string    `json:"text"`
}

// String returns the place and the text.
func (w Warning) String() string { return w.At.String() + ": " + w.Text }

// Runner applies one SLS file. Every implementation passes the suite of package slstest.
type Runner interface {
	// Name is "builtin", "salt-call" or "script".
	Name() string
	// Check looks at the step and changes nothing. The error is a *fault.Error of kind Failed
	// with a place where the file is wrong, and of kind Refused where this runner cannot run it.
	Check(ctx context.Context, in *Input) (*Checked, error)
	// Apply runs the step and reports to sink what happens. A failed state is in the result; an error
	// is a file that does not compile (kind Failed), or our own or the machine's failure. When
	// ctx ends, the running command's process group is killed and the error is ctx's.
	Apply(ctx context.Context, in *Input, sink Sink) (*StepResult, error)
}
