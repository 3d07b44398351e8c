package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/undo"
)

// Tri is Salt's result: true, false, or none (a test run that would change something).
type Tri int8

const (
	// False is a failed state.
	False Tri = iota
	// True is a successful state.
	True
	// None is a state that would change something.
	None
)

// Command describes a command that a state ran.
type Command struct {
	Line       string `json:"line"`
	Dir        string `json:"dir,omitempty"`
	User       string `json:"user,omitempty"`
	ExitStatus int    `json:"exit_status"`
	TimedOut   bool   `json:"timed_out,omitempty"`
	// StderrTail is the end of standard error, at most 40 lines.
	StderrTail string `json:"stderr_tail,omitempty"`
}

// Return is the result of a state function.
type Return struct {
	Result  Tri
	Changes *py.Dict
	Comment string
	// Diff is the unified diff of a text file, also if show_changes keeps it out of Changes, which then has "".
	Diff    string
	Command *Command
	// SkipWatch prevents mod_watch from running although a watched state changed.
	SkipWatch bool
	// SkipReq prevents requisites on this state from firing.
	SkipReq bool
	// Warnings are remarks for the log.
	Warnings []string
	// Unevaluated is what a plan did not evaluate.
	Unevaluated []string
}

// Changed reports whether there are changes.
func (r Return) Changed() bool { return r.Changes.Len() > 0 }

// Set adds to the changes.
func (r *Return) Set(key string, v any) {
	if r.Changes == nil {
		r.Changes = py.NewDict()
	}
	r.Changes.SetStr(key, v)
}

// Failf returns a failed state.
func Failf(format string, args ...any) Return {
	return Return{Result: False, Comment: fmt.Sprintf(format, args...)}
}

// OKf returns a state that needs no change.
func OKf(format string, args ...any) Return {
	return Return{Result: True, Comment: fmt.Sprintf(format, args...)}
}

// Would returns a test run that would make changes.
func Would(changes *py.Dict, format string, args ...any) Return {
	return Return{Result: None, Changes: changes, Comment: fmt.Sprintf(format, args...)}
}

// Template is a request to render a text.
type Template struct {
	// Engine is "jinja".
	Engine string
	// Name is the name of the text in errors.
	Name   string
	Source string
	// Vars are the variables on top of Salt's own.
	Vars *py.Dict
}

// Env is shared by all calls of a program.
type Env struct {
	Host   *host.Host
	Roots  fileroot.Roots
	Pillar *py.Dict
	Grains *py.Dict
	// Render renders a template of a file state.
	Render func(ctx context.Context, t Template) (string, error)
	// Modules calls an execution module (module.run, onlyif with fun); nil if there is none.
	Modules func(ctx context.Context, name string, args []any, kw *py.Dict) (any, error)
	// Backups is the folder in which file states with backup=minion keep old files, and archive.extracted the
	// hashes of archives.
	Backups string
	// Accumulated is what file.accumulated collected, by file.
	Accumulated map[string]*Accumulator
	// Undo records the previous contents before a state changes something; nil records nothing (a plan, a task).
	Undo *undo.Log
	// Wait is sls.Input.Wait, with what the run has done.
	Wait func(ctx context.Context, id string, args *py.Dict) (said string, err error)
	// Cache stores what is slow to read from the machine, for one program.
	Cache map[string]any
}

// Requisite is a state that the running one depends on.
type Requisite struct {
	Type, Module, ID, Name string
	Changed                bool
}

// Call is one call of a state function.
type Call struct {
	*Env
	Ctx context.Context
	// Function is module.function; for a watch, that of the watching state.
	Function string
	// Name, ID and SLS are those of the state.
	Name, ID, SLS string
	// Args are the arguments without the requisites; including "name".
	Args *py.Dict
	// RunAs and Umask are the global arguments of that name; Umask is nil if not set.
	RunAs string
	Umask *int
	// Provider is the global argument of that name: which of Salt's modules does the work.
	Provider string
	Test     bool
	// Requires are the requisites that this state declares on states that have run (file.directory clean).
	Requires []Requisite
	// RequiredIn are the entries of the state's require_in and watch_in, as written (file.accumulated).
	RequiredIn []any
	// Declared returns all states of the program, for states that act on the files of others (file.directory
	// clean).
	Declared func() []Declared
	// Verbatim are the contents of file.managed, byte by byte; nil takes them from Args.
	Verbatim []byte
	// Output receives a line of a command's output.
	Output func(stderr bool, line string)
	// noted: the undo log has a record of what the programs of this call change.
	noted bool
	// manual: the undo log lists the call as something that cannot be undone.
	manual bool
}

// Declared is another state of the program.
type Declared struct {
	Function, ID, Name string
	Args               *py.Dict
	// Requires are the (module, ID or name) pairs of its require_in-resolved requisites.
	Requires [][2]string
}

// argumentError is an argument of a wrong type.
type argumentError struct{ msg string }

func (e argumentError) Error() string { return e.msg }

// BadArg ends the call: the state fails with that comment.
func BadArg(format string, args ...any) { panic(argumentError{fmt.Sprintf(format, args...)}) }

// Guard turns a badArg into a failed state. It recovers nothing else.
func Guard(fn func(c *Call) Return) func(c *Call) Return {
	return func(c *Call) (ret Return) {
		defer func() {
			if r := recover(); r != nil {
				e, ok := r.(argumentError)
				if !ok {
					panic(r)
				}
				ret = Failf("%s", e.msg)
			}
		}()
		return fn(c)
	}
}

// Value returns an argument; ok is false if it is missing or null.
func (c *Call) Value(name string) (any, bool) {
	v, ok := c.Args.GetStr(name)
	return v, ok && v != nil
}

// Has reports whether an argument is set and not null.
func (c *Call) Has(name string) bool { _, ok := c.Value(name); return ok }

// Str returns an argument as text; numbers are written as Python writes them.
func (c *Call) Str(name, def string) string {
	v, ok := c.Value(name)
	if !ok {
		return def
	}
	switch x := v.(type) {
	case string:
		return x
	case bool, int64, float64:
		return py.Str(x)
	}
	if py.IsInt(v) {
		return py.Str(v)
	}
	BadArg("The argument %q must be a string, not a %s", name, py.TypeName(v))
	return ""
}

// Bool returns an argument's truth.
func (c *Call) Bool(name string, def bool) bool {
	v, ok := c.Args.GetStr(name)
	if !ok {
		return def
	}
	return py.Truth(v)
}

// Int returns a whole number, including one that is written as text.
func (c *Call) Int(name string, def int64) int64 {
	v, ok := c.Value(name)
	if !ok {
		return def
	}
	switch x := v.(type) {
	case int64:
		return x
	case bool:
		if x {
			return 1
		}
		return 0
	case float64:
		return int64(x)
	case string:
		var n int64
		if _, err := fmt.Sscan(strings.TrimSpace(x), &n); err == nil {
			return n
		}
	}
	BadArg("The argument %q must be a number, not a %s", name, py.TypeName(v))
	return 0
}

// List returns an argument as a list: one value is a list of one, a missing one is nil.
func (c *Call) List(name string) []any {
	v, ok := c.Value(name)
	if !ok {
		return nil
	}
	switch x := v.(type) {
	case *py.List:
		return x.Items()
	case py.Tuple:
		return x
	}
	return []any{v}
}

// Strings returns an argument as a list of texts.
func (c *Call) Strings(name string) []string {
	var out []string
	for _, v := range c.List(name) {
		out = append(out, py.Str(v))
	}
	return out
}

// CommaList is like Strings, but one text may contain several names separated by commas.
func (c *Call) CommaList(name string) []string {
	v, ok := c.Value(name)
	if s, isStr := v.(string); ok && isStr {
		var out []string
		for _, p := range strings.Split(s, ",") {
			if p = strings.TrimSpace(p); p != "" {
				out = append(out, p)
			}
		}
		return out
	}
	return c.Strings(name)
}

// Dict returns an argument as a mapping; a list of one-key mappings counts as one.
func (c *Call) Dict(name string) *py.Dict {
	v, ok := c.Value(name)
	if !ok {
		return nil
	}
	d, err := repack(v)
	if err != nil {
		BadArg("The argument %q must be a mapping, not a %s", name, py.TypeName(v))
	}
	return d
}

var errNotMapping = errors.New("not a mapping")

// repack turns a list of one-key mappings into one mapping.
func repack(v any) (*py.Dict, error) {
	switch x := v.(type) {
	case *py.Dict:
		return x, nil
	case *py.List:
		out := py.NewDict()
		for _, it := range x.Items() {
			d, ok := it.(*py.Dict)
			if !ok {
				return nil, errNotMapping
			}
			out.Update(d)
		}
		return out, nil
	}
	return nil, errNotMapping
}

// Accumulator is what file.accumulated collected for one file.
type Accumulator struct {
	// Texts are the lists of pieces by the name of the accumulator, as templates see them.
	Texts *py.Dict
	// Feeds are, by the name of the accumulator, the IDs that its require_in and watch_in name.
	Feeds map[string][]string
}
