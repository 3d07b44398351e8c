package diskfull

import (
	"errors"
	"io/fs"
	"syscall"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// WithHint adds a hint to an error of the file system that has none yet.
func WithHint(f *fault.Error) *fault.Error {
	switch {
	case fault.HintOf(f) != "":
		return f
	case vfs.IsFull(f):
		return f.WithHint("the disk is full, or a quota of it: corpus-git archives prune, or free some space")
	case errors.Is(f, syscall.EROFS):
		return f.WithHint("the file system is mounted read-only, as the kernel does after an error: see its log, fix and remount it")
	case errors.Is(f, syscall.EBUSY):
		return f.WithHint("something is mounted there, or in use: umount it, or keep it out of the working copy")
	case errors.Is(f, syscall.EOPNOTSUPP):
		return f.WithHint("the file system has no access control lists: mount it with acl, or take `acl` out of the permissions")
	case errors.Is(f, fs.ErrPermission):
		return f.WithHint("run the server as root, or give these files to its user; lsattr shows an immutable one")
	case errors.Is(f, syscall.EIO):
		return f.WithHint("the disk failed: see the kernel's log")
	}
	return f
}
