package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Flock takes a lock on an open file or folder (flock(2)), which ends when it is closed, or the process ends. how is that of the system call; an interrupted call is repeated.
func Flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
