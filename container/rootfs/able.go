package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Able is fault.Refused where no root file system can be made or used: by root of a user namespace, which may make no device files, and on a file system that does not
// provide them, or runs no programs.
func (m Maker) Able() error {
	if err := os.MkdirAll(m.Bases, 0o700); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(m.Bases, &fs); err != nil {
		return err
	}
	for _, o := range []struct {
		flag int64
		name string
	}{{unix.ST_NODEV, "nodev"}, {unix.ST_NOEXEC, "noexec"}} {
		if int64(fs.Flags)&o.flag != 0 { //nolint:unconvert // its size is the architecture's
			return fault.New(fault.Refused, "", "no container can be made in %s: its file system is mounted with %s", filepath.Dir(m.Bases), o.name).WithHint("name a folder on another one with --dir, or as state_dir")
		}
	}
	dir, err := os.MkdirTemp(m.Bases, ".able-")
	if err != nil {
		return m.full(m.Bases, err)
	}
	err = unix.Mknod(filepath.Join(dir, "null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) //nolint:gosec // it fits
	if errors.Is(err, syscall.EPERM) {
		err = fault.New(fault.Refused, "", "root may make no device files here, and a container needs some").
			WithHint("this is root of an unprivileged container, or of a user namespace: run it on the machine itself; machines that exist become nodes with  corpus-git node init NAME --ssh root@HOST")
	}
	return errors.Join(m.full(m.Bases, err), os.RemoveAll(dir))
}

// failed removes what was made of a tree, since it may have filled the file system, and returns the error, which says so then.
func (m Maker) failed(part string, err error) error {
	return errors.Join(m.full(filepath.Dir(part), err), m.clear(part))
}

// little is the room, in bytes, from which on a file system counts as full for a tree of many files.
const little = 1 << 20

// full returns fault.Busy for an error in a file system without room; others are returned as they are.
func (m Maker) full(dir string, err error) error {
	if err == nil {
		return nil
	}
	is := vfs.IsFull(err) || strings.Contains(err.Error(), syscall.ENOSPC.Error()) || strings.Contains(err.Error(), "No space left") || strings.Contains(err.Error(), "quota exceeded")
	var fs unix.Statfs_t
	if serr := unix.Statfs(dir, &fs); serr == nil && (fs.Bavail*uint64(fs.Bsize) < little || fs.Files > 0 && fs.Ffree == 0) { //nolint:gosec // the size of a block is not negative
		is = true // tools that were started by others say something else
	}
	if !is {
		return err
	}
	return fault.New(fault.Busy, "", "there is no room left in %s: %w", dir, err).WithHint("free some space there, and try again: a container takes some 250 MB, and so does each list of packages, once")
}
