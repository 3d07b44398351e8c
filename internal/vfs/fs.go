package vfs

import (
	"context"
	"io"
	"io/fs"
	"syscall"
	"time"
)

// FS is a file system as corpus-git needs it. Modes are the low twelve bits of
// st_mode (07777): permissions, setuid, setgid, sticky.
//
// Nothing is durable when a method returns, unless documented otherwise.
type FS interface {
	// OpenFile opens path with the O_ flags of open(2). O_NOFOLLOW and O_CLOEXEC are added; opening a fifo never
	// blocks (O_NONBLOCK). perm is subject to the umask.
	OpenFile(path string, flag int, perm uint32) (File, error)
	// OpenDir opens a folder as a separate file system, whose relative paths start there.
	// On a Dir no element of a relative path may be a symbolic link or leave the folder, here and in every method.
	OpenDir(path string) (Dir, error)
	// ReadDir lists the names in a folder in byte order, without "." and "..".
	ReadDir(path string) ([]string, error)
	// Lstat describes path itself.
	Lstat(path string) (Stat, error)
	// Readlink returns the target of a symbolic link, as stored.
	Readlink(path string) (string, error)

	// Mkdir creates one folder. perm is subject to the umask.
	Mkdir(path string, perm uint32) error
	// Mknod creates a fifo, socket or device: mode is a whole st_mode, type included.
	Mknod(path string, mode uint32, dev uint64) error
	// Symlink creates a symbolic link at path.
	Symlink(target, path string) error
	// Link gives the file oldPath a second name.
	Link(oldPath, newPath string) error
	// Rename replaces newPath atomically. It is durable after SyncDir of both parents.
	Rename(oldPath, newPath string) error
	// Exchange swaps two names atomically (renameat2 with RENAME_EXCHANGE): neither is ever absent.
	// EBUSY: one is a mount point; EXDEV: two file systems; EINVAL or ENOSYS: not supported here.
	Exchange(a, b string) error
	// Remove removes a file or an empty folder.
	Remove(path string) error

	// Chmod sets the twelve mode bits; on a symbolic link it is EOPNOTSUPP.
	Chmod(path string, mode uint32) error
	// Lchown sets owner and group; -1 leaves one as it is.
	Lchown(path string, uid, gid int) error
	// Lutimes sets the modification time, in nanoseconds since 1970; the access time becomes the same.
	Lutimes(path string, mtime int64) error
	// Xattrs lists the extended attributes (including POSIX ACLs) in byte order of names; none if the
	// file system does not support them.
	Xattrs(path string) ([]Xattr, error)
	// SetXattr sets one extended attribute; a nil Value removes it.
	SetXattr(path string, x Xattr) error

	// SyncFS makes everything written so far to the file system that holds path durable, names included
	// (syncfs(2)), and reports write-back errors since path was opened.
	SyncFS(path string) error
	// StatFS returns the free space of the file system that holds path.
	StatFS(path string) (Space, error)
}

// Dir is an FS bound to an open folder; "." is the folder itself. Close when done.
type Dir interface {
	FS
	io.Closer
}

// File is an open file.
type File interface {
	io.Reader
	io.Writer
	io.Seeker
	// Close releases the file. Its error may be a write error: do not drop it after a write.
	io.Closer
	// Stat describes the open file.
	Stat() (Stat, error)
	// Xattrs and SetXattr are those of FS on the open file.
	Xattrs() ([]Xattr, error)
	SetXattr(x Xattr) error
	// Truncate sets the size.
	Truncate(size int64) error
	// Allocate reserves space for the first size bytes of the file, and makes it at least that long (fallocate(2)). The error is
	// EOPNOTSUPP if the file system can't.
	Allocate(size int64) error
	// Chmod, Chown and Utimes are those of FS on the open file.
	Chmod(mode uint32) error
	Chown(uid, gid int) error
	Utimes(mtime int64) error
	// Sync makes the content durable (fsync(2)); for a folder, the names in it.
	Sync() error
	// CopyFrom makes this file, which is empty, a copy of src, from its start to its end as src.Stat last returned it: shared extents if
	// the file system supports them (FICLONE), copied within the kernel otherwise, holes kept. It returns the size of the
	// copy; the caller must detect a source that is written meanwhile (compare Stat before and after). It ends with ctx, within copyPart bytes.
	// If src has no holes, this file need not be empty: what it has after the copy stays, for the caller to truncate.
	CopyFrom(ctx context.Context, src File) (int64, error)
}

// Stat is the result of stat(2), times in nanoseconds since 1970.
type Stat struct {
	Mode   uint32 // st_mode: type and twelve mode bits
	UID    uint32
	GID    uint32
	Nlink  uint64
	Size   int64
	Blocks int64 // allocated, in units of 512 bytes
	Mtime  int64
	Ctime  int64
	Ino    uint64
	Dev    uint64
	Rdev   uint64
}

// Perm returns the twelve mode bits.
func (s Stat) Perm() uint32 { return s.Mode & 0o7777 }

// Type returns the file type bits, S_IFMT of st_mode.
func (s Stat) Type() uint32 { return s.Mode & syscall.S_IFMT }

// IsDir reports whether it is a folder.
func (s Stat) IsDir() bool { return s.Type() == syscall.S_IFDIR }

// IsRegular reports whether it is a regular file.
func (s Stat) IsRegular() bool { return s.Type() == syscall.S_IFREG }

// IsSymlink reports whether it is a symbolic link.
func (s Stat) IsSymlink() bool { return s.Type() == syscall.S_IFLNK }

// Allocated returns the space on disk in bytes.
func (s Stat) Allocated() int64 { return s.Blocks * 512 }

// ModTime returns the modification time.
func (s Stat) ModTime() time.Time { return time.Unix(0, s.Mtime) }

// Xattr is one extended attribute.
type Xattr struct {
	Name  string
	Value []byte
}

// Space is the state of a file system, as an ordinary process may use it.
type Space struct {
	Total  uint64 // bytes: f_blocks * f_frsize
	Free   uint64 // bytes: f_bavail * f_frsize, never f_bfree
	Files  uint64 // total inodes; 0 if the file system does not count them
	Inodes uint64 // inodes free: f_ffree
}

func pathErr(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
