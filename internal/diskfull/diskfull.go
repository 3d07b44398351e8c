// Package diskfull recognises a full disk, from the errors of the system, of a quota, and of SQLite, and words the message about it. The
// error is always fault.Busy: the request was valid, and succeeds unchanged once there is room.
package diskfull

import (
	"errors"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Is reports whether an error is a full disk or quota.
func Is(err error) bool { return vfs.IsFull(err) || db.IsFull(err) }

// Explain adds the message to a full-disk error that has none yet (fault.Internal, or an error without a kind); any other error, including
// nil, is returned as it is.
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
