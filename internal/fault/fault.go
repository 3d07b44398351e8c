package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Kind reports whose fault an error is. The zero value is Internal.
type Kind uint8

const (
	// Internal is the server's own fault: users see the operation and an ID, the log has the rest.
	Internal Kind = iota
	// Usage is a command or request that is invalid as typed.
	Usage
	// Refused is a valid request that is not allowed: permissions, state, policy.
	Refused
	// Failed is work that did not succeed: a step that exited 1, a file with a syntax error.
	Failed
	// Busy is a request that may succeed later, unchanged.
	Busy
	// Conflict is a request about something that has ended or changed since then: it was valid, and never succeeds.
	Conflict
)

// String returns the name of the kind as it appears in --json documents.
func (k Kind) String() string {
	switch k {
	case Usage:
		return "usage"
	case Refused:
		return "refused"
	case Failed:
		return "failed"
	case Busy:
		return "busy"
	case Conflict:
		return "conflict"
	default:
		return "internal"
	}
}

// ExitCode returns the exit status of a command that ends with this kind.
// 70 is EX_SOFTWARE of sysexits.h.
func (k Kind) ExitCode() int {
	switch k {
	case Failed:
		return 1
	case Usage:
		return 2
	case Refused, Conflict:
		return 3
	case Busy:
		return 4
	default:
		return 70
	}
}

// Pos is a place in a file that a user wrote. Line and Col count from 1; 0 means unknown.
// Text is the line itself, without its end, and is empty if showing it could reveal a secret.
type Pos struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
	Text string `json:"text,omitempty"`
}

// String returns file:line:col, as far as known.
func (p Pos) String() string {
	switch {
	case p.File == "" && p.Line == 0:
		return ""
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
	}
}

// Error is an error that a person can act on. Op names the operation ("receive pack", "compile 0100_build"), Err is the cause, Hint what to
// run or look at next.
type Error struct {
	Op   string
	Kind Kind
	At   Pos
	Hint string
	Err  error
	// Fix is what should be at the place instead, if that is known.
	Fix Fix
}

// Fix replaces a word on the line of an error. The zero value replaces nothing.
type Fix struct{ Old, New string }

// Error returns one line: place, operation, cause. The hint is not part of it.
func (e *Error) Error() string {
	var parts []string
	if at := e.At.String(); at != "" {
		parts = append(parts, at)
	}
	if e.Op != "" {
		parts = append(parts, e.Op)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	if len(parts) == 0 {
		return e.Kind.String()
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an Error of a kind; format and args are those of fmt.Errorf, %w included.
func New(k Kind, op, format string, args ...any) *Error {
	return &Error{Op: op, Kind: k, Err: fmt.Errorf(format, args...)}
}

// WithHint returns a copy of e that carries a hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithFix returns a copy of e that names the word of its line to replace, and its replacement.
func (e *Error) WithFix(old, new string) *Error {
	c := *e
	c.Fix = Fix{old, new}
	return &c
}

// WithPos returns a copy of e that names a place.
func (e *Error) WithPos(p Pos) *Error {
	c := *e
	c.At = p
	return &c
}

// KindOf returns the kind of the outermost Error in err's chain, Internal if there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// HintOf returns the first hint found in err's chain, "" if there is none.
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// FixOf returns the first fix in an error chain.
func FixOf(err error) (f Fix, ok bool) {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return Fix{}, false
		}
		if e.Fix != (Fix{}) {
			return e.Fix, true
		}
		err = e.Err
	}
	return Fix{}, false
}

// Cause returns what is wrong, without its place, and without the operation if the place is known.
func Cause(err error) string {
	var f *Error
	if !errors.As(err, &f) || f.At == (Pos{}) || f.Err == nil {
		return err.Error()
	}
	return f.Err.Error()
}

// PosOf returns the first place found in err's chain; ok is false if there is none.
func PosOf(err error) (p Pos, ok bool) {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return Pos{}, false
		}
		if e.At != (Pos{}) {
			return e.At, true
		}
		err = e.Err
	}
	return Pos{}, false
}

// ExitCode returns the exit status of a command that ended with err: 0 for nil.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	return KindOf(err).ExitCode()
}
