package jinja

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

// The classes of errors: Jinja2's own exception classes, or the name of a Python exception (TypeError …).
const (
	ClassSyntax      = "TemplateSyntaxError"
	ClassAssertion   = "TemplateAssertionError"
	ClassUndefined   = "UndefinedError"
	ClassRuntime     = "TemplateRuntimeError"
	ClassNotFound    = "TemplateNotFound"
	ClassNotFounds   = "TemplatesNotFound"
	ClassSecurity    = "SecurityError"
	ClassFilterArg   = "FilterArgumentError"
	ClassLimit       = "LimitError"
	ClassCanceled    = "Canceled"
	ClassLoad        = "LoadError"
	ClassUnsupported = "Unsupported"
)

// Pos is a place in a template.
type Pos struct {
	Template string
	Line     int
}

// Error is what parsing or rendering a template ends with. Msg is worded as Jinja2 and Python do, and holds no value
// of a variable. Stack are the places that led to Template:Line, innermost first: calls of macros, includes, imports.
type Error struct {
	Template string
	Line     int
	Class    string
	Msg      string
	Stack    []Pos
	Err      error // the cause, where something outside the engine failed
}

// Error is "template:line: message".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Template != "" || e.Line != 0 {
		fmt.Fprintf(&b, "%s:%d: ", e.Template, e.Line)
	}
	b.WriteString(e.Msg)
	if e.Msg == "" {
		b.WriteString(e.Class)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// undefinedText is the text of an error of ClassUndefined.
type undefinedText string

func (u undefinedText) Error() string { return string(u) }

// IsUndefined reports whether a fault that Error.Fault made is of ClassUndefined.
func IsUndefined(err error) bool {
	var u undefinedText
	return errors.As(err, &u)
}

// Fault returns the error as the project's own kind: the template is what its author wrote, so it is Failed; op is what
// was being done.
func (e *Error) Fault(op string) *fault.Error {
	msg := e.Msg
	if msg == "" {
		msg = e.Class
	}
	for _, p := range e.Stack {
		msg += fmt.Sprintf(" (from %s:%d)", p.Template, p.Line)
	}
	out := &fault.Error{Op: op, Kind: fault.Failed, At: fault.Pos{File: e.Template, Line: e.Line}, Err: errors.New(msg)}
	switch e.Class {
	case ClassLimit:
		out.Hint = "the template does too much work; render less in one file"
	case ClassUndefined:
		out.Err = undefinedText(msg)
		out.Hint = "test with `is defined`, or give a value with the default filter"
	}
	return out
}

// LackError is the use of something that the language of the templates has and the environment lacks.
type LackError struct{ What string }

// Error implements error.
func (e *LackError) Error() string { return e.What + " is not built in" }

// lack is the error of a filter or test that is missing; other where the language has none such either.
func (e *Environment) lack(what, name string, line int, other error) error {
	if !e.lacking[what+" "+name] {
		return other
	}
	l := &LackError{"the " + what + " " + quote(name)}
	return &raised{class: ClassUnsupported, msg: l.Error(), line: line, err: l}
}

// Lack is the error of a filter or function, called with what it has in Salt and not here.
func Lack(what string) error {
	l := &LackError{what}
	return &raised{class: ClassUnsupported, msg: l.Error(), err: l}
}

// raised is an error of the engine that does not know its template yet.
type raised struct {
	class string
	msg   string
	line  int // 0: the line being executed
	err   error
}

func (r *raised) Error() string { return r.class + ": " + r.msg }
func (r *raised) Unwrap() error { return r.err }

func raise(class, format string, args ...any) error {
	if len(args) == 0 {
		return &raised{class: class, msg: format}
	}
	return &raised{class: class, msg: fmt.Sprintf(format, args...)}
}

func syntaxError(line int, format string, args ...any) error {
	return &raised{class: ClassSyntax, msg: fmt.Sprintf(format, args...), line: line}
}

// locate turns any error into an *Error; one that has a place already gets (template, line) on its stack.
func locate(err error, template string, line int) error {
	var e *Error
	if errors.As(err, &e) {
		if e.Template == "" {
			e.Template, e.Line = template, line
			return e
		}
		if len(e.Stack) < 20 {
			e.Stack = append(e.Stack, Pos{template, line})
		}
		return e
	}
	var r *raised
	if errors.As(err, &r) {
		if r.line != 0 {
			line = r.line
		}
		return &Error{Template: template, Line: line, Class: r.class, Msg: r.msg, Err: r.err}
	}
	var p *py.Error
	if errors.As(err, &p) {
		return &Error{Template: template, Line: line, Class: string(p.Type), Msg: p.Msg}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Template: template, Line: line, Class: ClassCanceled, Msg: "rendering was stopped", Err: err}
	}
	return &Error{Template: template, Line: line, Class: ClassRuntime, Msg: err.Error(), Err: err}
}
