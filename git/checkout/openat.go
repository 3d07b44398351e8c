package checkout

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// Every file below a working copy is reached through descriptors of its folders, opened one name at a time with O_NOFOLLOW: if a folder is
// swapped for a symbolic link, the result is an error, never a write elsewhere. See openat(2).

// tmpPrefix begins the names of files that are being written. The next Sync removes those that a crash left.
const tmpPrefix = ".corpus-git-tmp-"

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func retry(fn func() error) error {
	for {
		if err := fn(); err != unix.EINTR {
			return err
		}
	}
}

func openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode)
		return err
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

func opendir(dir int, name string) (int, error) { return openat(dir, name, dirFlags, 0) }

func lstatat(dir int, name string) (st unix.Stat_t, err error) {
	err = retry(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		err = &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return st, err
}

func readlinkat(dir int, name string, size int64) (string, error) {
	buf := make([]byte, max(size, 0)+64)
	for {
		n, err := unix.Readlinkat(dir, name, buf)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
		case n < len(buf):
			return string(buf[:n]), nil
		default:
			buf = make([]byte, 2*len(buf))
		}
	}
}

// missing reports that a path does not exist: no such name, or something other than a folder on the way.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) || notDir(err) }

// notDir reports that something other than a folder, such as a symbolic link, is where a folder was expected.
func notDir(err error) bool { return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) }

// dirents calls fn with each name in a folder and its d_type.
func dirents(dir int, buf []byte, fn func(name string, typ byte)) error {
	if _, err := unix.Seek(dir, 0, io.SeekStart); err != nil {
		return err
	}
	for {
		var n int
		err := retry(func() (err error) { n, err = unix.Getdents(dir, buf); return err })
		if err != nil {
			return fmt.Errorf("read folder: %w", err)
		}
		if n <= 0 {
			return nil
		}
		// struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name. See getdents64(2).
		for b := buf[:n]; len(b) > 19; {
			size := int(b[16]) | int(b[17])<<8
			if size < 20 || size > len(b) {
				return fmt.Errorf("read folder: record of %d bytes", size)
			}
			name := b[19:size]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			if s := string(name); s != "." && s != ".." {
				fn(s, b[18])
			}
			b = b[size:]
		}
	}
}

// folders caches descriptors of folders below root. It is for one goroutine; close it.
type folders struct {
	root int
	open map[string]int
	// mode and owner are those of folders that get creates.
	mode  uint32
	owner *Owner
	// made are the folders that get created, there those that existed.
	made, there map[string]bool
	// last is the folder that was requested last: files come folder by folder.
	last   string
	lastFD int
}

const maxOpenFolders = 128

func newFolders(root int, mode uint32, owner *Owner) *folders {
	return &folders{root: root, open: map[string]int{}, made: map[string]bool{}, mode: mode, owner: owner}
}

func (f *folders) close() {
	for _, fd := range f.open {
		_ = unix.Close(fd)
	}
	clear(f.open)
	f.last = ""
}

// get returns a folder's descriptor, which f owns and which is valid until the next call.
func (f *folders) get(dir string, create bool) (fd int, err error) {
	if dir == "" || dir == "." {
		return f.root, nil
	}
	if dir == f.last {
		return f.lastFD, nil
	}
	if fd, ok := f.open[dir]; ok {
		f.last, f.lastFD = dir, fd
		return fd, nil
	}
	up, name := split(dir)
	parent, err := f.get(up, create)
	if err != nil {
		return -1, err
	}
	// A folder that was just created is empty.
	err = fs.ErrNotExist
	if !create || !f.made[up] || f.made[dir] || f.there[dir] {
		fd, err = opendir(parent, name)
	}
	if create && errors.Is(err, fs.ErrNotExist) {
		err = retry(func() error { return unix.Mkdirat(parent, name, f.mode) })
		if err != nil && err != unix.EEXIST {
			return -1, &fs.PathError{Op: "mkdir", Path: dir, Err: err}
		}
		made := err == nil
		if fd, err = opendir(parent, name); err == nil && made {
			f.made[dir] = true
			if _, err = f.owner.apply(fd, f.mode); err != nil {
				_ = unix.Close(fd)
			}
		}
	}
	if err != nil {
		return -1, rename(err, dir)
	}
	if len(f.open) >= maxOpenFolders {
		f.close()
	}
	f.open[dir] = fd
	f.last, f.lastFD = dir, fd
	return fd, nil
}

// rename puts the whole path into an error that names only its last element.
func rename(err error, path string) error {
	path = printable.Line(path)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return &fs.PathError{Op: pe.Op, Path: path, Err: pe.Err}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// errNotRegular is returned by readFileAt for a fifo, a folder or a socket, which the owner of the working copy may have created.
var errNotRegular = errors.New("not a regular file")

// readFileAt reads a regular file of at most limit bytes; for anything else it returns errNotRegular without blocking.
func readFileAt(dir int, name string, limit int64) ([]byte, *unix.Stat_t, error) {
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENXIO) { // a socket
		return nil, nil, fmt.Errorf("%s: %w", name, errNotRegular)
	}
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, nil, fmt.Errorf("%s: %w", name, errNotRegular)
	}
	if st.Size > limit {
		return nil, nil, fmt.Errorf("%s: %d bytes, at most %d are read", name, st.Size, limit)
	}
	b := make([]byte, 0, st.Size+1)
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, &st, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if int64(len(b)) > limit {
			return nil, nil, fmt.Errorf("%s: more than %d bytes", name, limit)
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

// writeFileAt replaces a file: temporary name, write, rename. durable adds fsync of the file and of its folder. The file gets owner; if
// owner is nil, it keeps owner and permissions of the file that it replaces, which old holds.
func writeFileAt(dir int, name string, data []byte, durable bool, owner *Owner, old *vfs.Held) error {
	return writeFileWith(dir, name, durable, owner, old, func(fd int) error {
		_, err := fdWriter(fd).Write(data)
		return err
	})
}

// orOf returns o, or if o is nil the owner of an existing file; nil if there is none.
func (o *Owner) orOf(dir int, name string) *Owner {
	if o != nil {
		return o
	}
	st, err := lstatat(dir, name)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	have := &Owner{UID: -1, GID: -1, Perm: func(bool, uint32) uint32 { return st.Mode & 0o777 }}
	if os.Geteuid() == 0 {
		have.UID, have.GID = int(st.Uid), int(st.Gid)
	}
	return have
}

// writeFileWith is writeFileAt with content from write.
func writeFileWith(dir int, name string, durable bool, owner *Owner, old *vfs.Held, write func(fd int) error) (err error) {
	tmp := tmpPrefix + name
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
	fd, err := openat(dir, tmp, flags, 0o644)
	if errors.Is(err, fs.ErrExist) { // left by a crash
		if err = ignore(unix.Unlinkat(dir, tmp, 0), unix.ENOENT); err != nil {
			return &fs.PathError{Op: "unlink", Path: tmp, Err: err}
		}
		fd, err = openat(dir, tmp, flags, 0o644)
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = unix.Unlinkat(dir, tmp, 0)
		}
	}()
	if err = write(fd); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	if err = owner.orOf(dir, name).setOwner(fd, 0o644); err != nil {
		return &fs.PathError{Op: "chown", Path: name, Err: err}
	}
	if durable {
		if err = f.Sync(); err != nil {
			return err
		}
	}
	old.KeepAt(dir, name)
	if err = unix.Renameat(dir, tmp, dir, name); err != nil {
		return err
	}
	if durable {
		if err = unix.Fsync(dir); err != nil {
			return err
		}
	}
	return f.Close()
}
