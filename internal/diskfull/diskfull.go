// Package diskfull is the one place that knows a full disk, and what people are told of it: the system's errors, a quota's, and SQLite's own. It is
// fault.Busy wherever it is met: nothing is wrong with what was asked for, and the same succeeds once there is room.
package diskfull

import (
	"errors"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Is reports whether an error is a full disk or quota.
func Is(err error) bool { return vfs.IsFull(err) || db.IsFull(err) }

// Explain gives a full disk that nobody has explained yet (fault.Internal, or an error without a kind) as people read it; every other error, nil among them,
// stays as it is.
func Explain(err error) error {
	if !Is(err) || fault.KindOf(err) != fault.Internal {
		return err
	}
	cause := err
	var e *fault.Error
	if errors.As(err, &e) && e.Err != nil {
		cause = e.Err
	}
	return fault.New(fault.Busy, "", "the disk of the server is full: %w", cause).WithHint("whoever runs the server must free some space; then try again")
}
