package py

import (
	"errors"
	"fmt"
)

// ErrType is the class of a Python exception.
type ErrType string

// The exception classes that operations of this package raise.
const (
	TypeError         ErrType = "TypeError"
	ValueError        ErrType = "ValueError"
	KeyError          ErrType = "KeyError"
	IndexError        ErrType = "IndexError"
	AttributeError    ErrType = "AttributeError"
	ZeroDivisionError ErrType = "ZeroDivisionError"
	OverflowError     ErrType = "OverflowError"
	RecursionError    ErrType = "RecursionError"
	RuntimeError      ErrType = "RuntimeError"
	UnicodeError      ErrType = "UnicodeError"
	// LimitError is ours: a budget of Ops is used up.
	LimitError ErrType = "LimitError"
)

// Error is a Python exception: its class and its message. If CPython would show a value (the key of a KeyError, the
// text that is not a number), the message is worded differently.
type Error struct {
	Type ErrType
	Msg  string
}

// Error returns "Class: message", as the last line of a Python traceback.
func (e *Error) Error() string {
	if e.Msg == "" {
		return string(e.Type)
	}
	return string(e.Type) + ": " + e.Msg
}

// Errorf returns an exception of class t; args must not be values of variables.
func Errorf(t ErrType, format string, args ...any) *Error {
	if len(args) == 0 {
		return &Error{Type: t, Msg: format}
	}
	return &Error{Type: t, Msg: fmt.Sprintf(format, args...)}
}

// IsErr reports whether err is, or wraps, an exception of class t.
func IsErr(err error, t ErrType) bool {
	var e *Error
	return errors.As(err, &e) && e.Type == t
}
