package app

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// lockWait is how long a command waits for another one.
const lockWait = 3 * time.Second

// stateLock is the ownership of a state directory.
type stateLock struct{ f *os.File }

// lockState takes the lock, and waits for it at most so long: another command may hold it for a moment. The error of a
// lock that is held is fault.Busy. The state directory is made where it is missing.
func lockState(state layout.State, who string, wait time.Duration) (*stateLock, error) {
	if err := os.MkdirAll(state.Path(), 0o700); err != nil {
		return nil, stateError(state, err)
	}
	f, err := os.OpenFile(state.Lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, stateError(state, err)
	}
	for waited := time.Duration(0); ; waited += 50 * time.Millisecond {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || waited >= wait {
			holder, _ := os.ReadFile(state.Lock())
			_ = f.Close()
			if !errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fault.New(fault.Internal, "lock the state", "%w", err)
			}
			return nil, fault.New(fault.Busy, "", "%s is in use by %s", state.Path(), orUnknown(strings.TrimSpace(string(holder)))).
				WithHint("one server or command at a time owns it; try again, or end that one")
		}
		time.Sleep(50 * time.Millisecond)
	}
	err = errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintf("%s (process %d)\n", who, os.Getpid())))
	if err != nil {
		_ = f.Close()
		return nil, fault.New(fault.Internal, "lock the state", "%w", err)
	}
	return &stateLock{f}, nil
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

// release gives the state up.
func (l *stateLock) release() error { return l.f.Close() }

// takeClean reports whether the last owner left the state in order. It is so no longer, durably, when takeClean returns.
func takeClean(state layout.State) (bool, error) {
	err := os.Remove(state.Clean())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = vfs.SyncDir(vfs.OS{}, state.Path())
	}
	return err == nil, err
}

// leaveClean says that the state is in order. It is the last thing that an owner writes.
func leaveClean(state layout.State) error {
	return vfs.WriteFileAtomic(vfs.OS{}, state.Clean(), nil, 0o600)
}

func stateError(state layout.State, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fault.New(fault.Refused, "", "%w", err).
			WithHint("the state in %s belongs to another user: become that user, or choose another place with --root", state.Path())
	}
	return fault.New(fault.Internal, "", "%w", err)
}
