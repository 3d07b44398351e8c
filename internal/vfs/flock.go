package vfs

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/sleep"
)

// Flock takes a lock on an open file or folder (flock(2)), which ends when it is closed, or the process ends. how is that of the system call; an interrupted call is repeated.
func Flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// flockEvery is the interval at which FlockBefore tries: flock(2) cannot be told when to give up.
const flockEvery = 50 * time.Millisecond

// FlockBefore takes an exclusive lock as Flock does, and waits for whoever holds it until ctx ends; then the error is the cause of that. It tries once even if ctx has ended.
func FlockBefore(ctx context.Context, f *os.File) error {
	for {
		if err := Flock(f, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if err := sleep.For(ctx, flockEvery); err != nil {
			return err
		}
	}
}
