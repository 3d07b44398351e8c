package sls

import (
	"context"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/undo"
)

// Mode says what a compilation may read.
type Mode uint8

const (
	// Static compiles before anything has run: a file whose templates would run a command, or read what an earlier step may change, is only parsed and
	// reported as Deferred.
	Static Mode = iota
	// Live compiles right before the step runs: templates see the machine as it is.
	Live
)

// Input is everything that one SLS file is rendered and run with. Nothing in it is modified: templates work on copies.
type Input struct {
	// SLS is the dotted name: makina-projects.app.0100_build.
	SLS string
	// Roots are the file roots of salt://.
	Roots fileroot.Roots
	// Projects is the folder of all projects: Salt loads no module from below it, since the owners of working copies could change them; the project's own
	// modules come with its recipe. "" means none.
	Projects string
	// Cfg is the project configuration: opts.ms_project and cfg; nil means none.
	Cfg *py.Dict
	// Changed is called once with cfg as the templates left it: after a Check that rendered the file, and at the end of an Apply. It passes changes on to
	// the following steps; its error is the step's error. Only the built-in runner calls it: what a template changes inside Salt is lost with Salt's own
	// process. nil discards it.
	Changed func(cfg *py.Dict) error
	// Pillar and Grains are the data that templates see; nil means empty.
	Pillar, Grains *py.Dict
	// Opts are further keys of opts (id, root_dir, …); nil means none.
	Opts *py.Dict
	// Host is the machine.
	Host *host.Host
	// Mode is the mode of the compilation; Runner.Check sets Static and Runner.Apply sets Live.
	Mode Mode
	// Test changes nothing: states report what they would do (Salt's test=True).
	Test bool
	// Plan is a test run of files that are not deployed: no command in them is run (a condition, a test of a stateful command, or one called by a
	// template or a slot), and no Python. States report what was not evaluated (StateResult.Unevaluated). A Check with Plan is the one before such a run.
	Plan bool
	// Script is the path of the executable, for the script runner, and ScriptFile its name in messages ("" means the path).
	Script, ScriptFile string
	// First: nothing of the project runs before this file. A Check then refuses an executable whose interpreter is missing.
	First bool
	// Locations override keys of salt['mc_locations.settings']; nil means none.
	Locations *py.Dict
	// Undo records what is outside the archived trees before a state changes it; nil records nothing. What Salt and executables change is unknown, which
	// they record in it.
	Undo *undo.Log
	// Yield is called before each state; an error ends the step there and becomes its error. nil means to continue. Only the built-in runner calls it.
	Yield func() error
	// Wait is the state corpus.wait; with nil such a state fails.
	Wait WaitFunc
	// Done is what an earlier process had done of the file when it paused: an Apply of the built-in runner continues there, and fails before anything runs
	// if the file compiles to other states. nil begins.
	Done *Done
	// Branches treats functions of Salt that a state's template calls in a branch, a loop or a macro as a need, like those that it always calls: which
	// branch is taken is only known when the template is rendered, which is too late for passing the file to Salt. It is for callers that have a Salt to
	// pass the file to.
	Branches bool
	// Passwords stores what salt['mc_utils.generate_stored_password'] generated; with nil such a template fails.
	Passwords Passwords
	// KV returns the keys that the project sees, with their values; nil means none.
	KV func(ctx context.Context) (map[string]string, error)
}

// Asked calls Yield and returns its error.
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
	// Put stores a secret under a key and returns what templates see of it: the secret or, if nothing is stored, a text that says so.
	Put(key, secret string) (string, error)
}

// Deferred says why a file could not be compiled before its step runs.
type Deferred struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Why is a clause: "cmd.run is called while the template renders".
	Why string `json:"why"`
}

// Need is something that a file uses and the built-in runner does not support.
type Need struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text,omitempty"`
	// What names it: "state function timezone.system".
	What string `json:"what"`
}

// Checked is the result of checking a step before anything runs.
type Checked struct {
	SLS  string `json:"sls"`
	File string `json:"file"`
	// Runner is the name of the runner that will apply the step.
	Runner string `json:"runner"`
	// States is the number of states, 0 if the file is deferred or passed to Salt.
	States int `json:"states"`
	// Deferred is not nil if only the syntax could be checked.
	Deferred *Deferred `json:"deferred,omitempty"`
	// Needs are why the built-in runner cannot apply it; then Runner is salt-call.
	Needs []Need `json:"needs,omitempty"`
	// Waits are the positions of its states corpus.wait, as far as known.
	Waits []fault.Pos `json:"waits,omitempty"`
	// Warnings are about what Salt ignores in it, if the built-in runner applies it and it is not deferred, and about a missing interpreter.
	Warnings []Warning `json:"warnings,omitempty"`
}

// Warning is a remark about a position in a file.
type Warning struct {
	At   fault.Pos `json:"at"`
	Text string    `json:"text"`
}

// String returns the position and the text.
func (w Warning) String() string { return w.At.String() + ": " + w.Text }

// Runner applies one SLS file. Every implementation passes the suite of package slstest.
type Runner interface {
	// Name is "builtin", "salt-call" or "script".
	Name() string
	// Check checks the step and changes nothing. The error is a *fault.Error of kind Failed, with a position, if the file is wrong, and of kind Refused
	// if this runner cannot run it.
	Check(ctx context.Context, in *Input) (*Checked, error)
	// Apply runs the step and reports to sink what happens. A failed state is in the result; an error
	// means that the file does not compile (kind Failed), or is our fault or the machine's. When
	// ctx ends, the running command's process group is killed and the error is ctx's.
	Apply(ctx context.Context, in *Input, sink Sink) (*StepResult, error)
}
