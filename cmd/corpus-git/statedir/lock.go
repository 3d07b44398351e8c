// Package statedir owns the lock of a state directory and the mark of a clean shutdown.
//
// It never touches other files in the directory. One process holds the lock (flock(2)) from before the database is opened until after it is closed. After a
// crash the kernel has released the lock, and the mark is missing, so the next owner runs the recovery.
package statedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Lock is a held lock of a state directory.
type Lock struct{ f *os.File }

// Take acquires the lock, waiting at most wait, as another command may hold it briefly. who is written into the lock file, for the error messages of others. If
// the lock is held the error is fault.Busy. The state directory is created if it does not exist. The caller calls Release.
func Take(state layout.State, who string, wait time.Duration) (*Lock, error) {
	if err := os.MkdirAll(state.Path(), 0o700); err != nil {
		return nil, Error(state, err)
	}
	f, err := os.OpenFile(state.Lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, Error(state, err)
	}
	ctx, end := context.WithTimeout(context.Background(), wait)
	defer end()
	if err := vfs.FlockBefore(ctx, f); err != nil {
		holder, _ := os.ReadFile(state.Lock())
		_ = f.Close()
		if !errors.Is(err, context.DeadlineExceeded) {
			return nil, fault.New(fault.Internal, "lock the state", "%w", err)
		}
		return nil, fault.New(fault.Busy, "", "%s is in use by %s", state.Path(), orUnknown(strings.TrimSpace(string(holder)))).
			WithHint("only one server or command can use it at a time; try again, or stop the other one")
	}
	err = errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintf("%s (process %d)\n", who, os.Getpid())))
	if err != nil {
		_ = f.Close()
		return nil, fault.New(fault.Internal, "lock the state", "%w", err)
	}
	return &Lock{f}, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

func orUnknown(s string) string {
	if s == "" {
		return "another process"
	}
	return s
}

// Release releases the lock.
func (l *Lock) Release() error { return l.f.Close() }

// TakeClean reports whether the last owner shut down cleanly, and removes the mark. Durable on return.
func TakeClean(state layout.State) (bool, error) {
	err := os.Remove(state.Clean())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = vfs.SyncDir(vfs.OS{}, state.Path())
	}
	return err == nil, err
}

// LeaveClean marks the shutdown as clean. Durable on return. It is the last thing that an owner writes.
func LeaveClean(state layout.State) error {
	return vfs.WriteFileAtomic(vfs.OS{}, state.Clean(), nil, 0o600)
}

// Error adds the hint for a state directory that this user may not use.
func Error(state layout.State, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fault.New(fault.Refused, "", "%w", err).
			WithHint("the state in %s belongs to another user: run as that user, or choose another directory with --root", state.Path())
	}
	return fault.New(fault.Internal, "", "%w", err)
}
