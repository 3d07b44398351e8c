package vfs

import (
	"errors"
	"syscall"
)

// IsFull reports whether an error of a file system is a full disk or quota.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
