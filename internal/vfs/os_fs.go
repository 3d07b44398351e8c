package vfs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// fchmodat2 is system call 452 on every architecture.
func fchmodat2(fd int, path *byte, mode uint32) error {
	_, _, errno := unix.Syscall6(unix.SYS_FCHMODAT2, uintptr(fd), uintptr(unsafe.Pointer(path)), uintptr(mode), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// The methods of OS are those of a Dir at the working directory.

// OpenFile implements FS.
func (OS) OpenFile(path string, flag int, perm uint32) (File, error) {
	return cwd().OpenFile(path, flag, perm)
}

// OpenDir implements FS.
func (OS) OpenDir(path string) (Dir, error) { return cwd().OpenDir(path) }

// ReadDir implements FS.
func (OS) ReadDir(path string) ([]string, error) { return cwd().ReadDir(path) }

// Lstat implements FS.
func (OS) Lstat(path string) (Stat, error) { return cwd().Lstat(path) }

// Readlink implements FS.
func (OS) Readlink(path string) (string, error) { return cwd().Readlink(path) }

// Mkdir implements FS.
func (OS) Mkdir(path string, perm uint32) error { return cwd().Mkdir(path, perm) }

// Mknod implements FS.
func (OS) Mknod(path string, mode uint32, dev uint64) error { return cwd().Mknod(path, mode, dev) }

// Symlink implements FS.
func (OS) Symlink(target, path string) error { return cwd().Symlink(target, path) }

// Link implements FS.
func (OS) Link(oldPath, newPath string) error { return cwd().Link(oldPath, newPath) }

// Rename implements FS.
func (OS) Rename(oldPath, newPath string) error { return cwd().Rename(oldPath, newPath) }

// Exchange implements FS.
func (OS) Exchange(a, b string) error { return cwd().Exchange(a, b) }

// Remove implements FS.
func (OS) Remove(path string) error { return cwd().Remove(path) }

// Chmod implements FS.
func (OS) Chmod(path string, mode uint32) error { return cwd().Chmod(path, mode) }

// Lchown implements FS.
func (OS) Lchown(path string, uid, gid int) error { return cwd().Lchown(path, uid, gid) }

// Lutimes implements FS.
func (OS) Lutimes(path string, mtime int64) error { return cwd().Lutimes(path, mtime) }

// Xattrs implements FS.
func (OS) Xattrs(path string) ([]Xattr, error) { return cwd().Xattrs(path) }

// SetXattr implements FS.
func (OS) SetXattr(path string, x Xattr) error { return cwd().SetXattr(path, x) }

// SyncFS implements FS.
func (OS) SyncFS(path string) error { return cwd().SyncFS(path) }

// StatFS implements FS.
func (OS) StatFS(path string) (Space, error) { return cwd().StatFS(path) }
