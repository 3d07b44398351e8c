package sls

import (
	"errors"

	"corpus-git/sls/jinja"
)

// UndefinedError is an error of Salt's about an undefined variable of a template.
type UndefinedError struct{ Text string }

func (e *UndefinedError) Error() string { return e.Text }

// IsUndefined reports whether a template failed for an undefined variable, whichever runner reports
// it.
func IsUndefined(err error) bool {
	var u *UndefinedError
	return jinja.IsUndefined(err) || errors.As(err, &u)
}
