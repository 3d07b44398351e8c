package vfs

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// OS is the machine's file system. The zero value is ready; relative paths start at the working directory.
type OS struct{}

var _ FS = OS{}

// dir implements every method of FS by the *at system calls. fd is AT_FDCWD for OS.
type dir struct {
	fd int
	h  *handle // of a Dir; nil for OS
}

// handle closes a descriptor once: a number that is closed twice may be another's by then.
type handle struct{ closed atomic.Bool }

func cwd() dir { return dir{fd: unix.AT_FDCWD} }

// retry repeats a call that a signal interrupted.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR { //nolint:errorlint // a bare errno of our own call
			return err
		}
	}
}

func linkErr(op, a, b string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: a, New: b, Err: err}
}

// Close ends a Dir.
func (d dir) Close() error {
	if d.h == nil {
		return nil
	}
	if d.h.closed.Swap(true) {
		return pathErr("close", ".", os.ErrClosed)
	}
	return pathErr("close", ".", closeFD(d.fd))
}

// at splits path into the open folder that holds it and its last element. On a Dir, no link is followed on the way.
func (d dir) at(path string) (parent dir, name string, err error) {
	i := strings.LastIndexByte(path, '/')
	if d.fd == unix.AT_FDCWD || i < 0 || strings.HasPrefix(path, "/") {
		return dir{fd: d.fd}, path, nil
	}
	fd, err := d.openBeneath(path[:i])
	if err != nil {
		return dir{}, "", err
	}
	return dir{fd: fd}, path[i+1:], nil
}

// in calls f with the folder and the name of path.
func (d dir) in(path string, f func(fd int, name string) error) error {
	parent, name, err := d.at(path)
	if err != nil {
		return err
	}
	err = retry(func() error { return f(parent.fd, name) })
	if parent.fd != d.fd {
		_ = unix.Close(parent.fd)
	}
	return err
}

// inFolders calls f with the folders and the names of two paths.
func (d dir) inFolders(a, b string, f func(afd int, a string, bfd int, b string) error) error {
	return d.in(a, func(afd int, an string) error {
		return d.in(b, func(bfd int, bn string) error { return f(afd, an, bfd, bn) })
	})
}

func openFD(at int, path string, flag int, perm uint32) (int, error) {
	var fd int
	err := retry(func() (e error) {
		fd, e = unix.Openat(at, path, flag|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, perm)
		return e
	})
	return fd, err
}

func (d dir) open(path string, flag int, perm uint32) (fd int, err error) {
	err = d.in(path, func(at int, name string) (e error) {
		fd, e = openFD(at, name, flag, perm)
		return e
	})
	return fd, err
}

func (d dir) OpenFile(path string, flag int, perm uint32) (File, error) {
	fd, err := d.open(path, flag, perm)
	if err != nil {
		return nil, pathErr("open", path, err)
	}
	return &file{fd: fd, name: path}, nil
}

// openBeneath opens a folder without following any link below d, by openat2 (Linux 5.6) or element by element.
func (d dir) openBeneath(path string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW
	if d.fd == unix.AT_FDCWD || strings.HasPrefix(path, "/") {
		return openFD(d.fd, path, flags, 0)
	}
	if !strings.Contains(path, "/") && path != ".." {
		return openFD(d.fd, path, flags, 0)
	}
	var fd int
	err := retry(func() (e error) {
		fd, e = unix.Openat2(d.fd, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
		return e
	})
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.ENAMETOOLONG) && !errors.Is(err, unix.EPERM) {
		return fd, err
	}
	at := d.fd
	for el := range strings.SplitSeq(path, "/") {
		if el == ".." {
			err = unix.EXDEV
		} else {
			fd, err = openFD(at, el, flags, 0)
		}
		if at != d.fd {
			_ = unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at = fd
	}
	return at, nil
}

func (d dir) OpenDir(path string) (Dir, error) {
	fd, err := d.openBeneath(path)
	if err != nil {
		return nil, pathErr("opendir", path, err)
	}
	return dir{fd: fd, h: &handle{}}, nil
}

func (d dir) ReadDir(path string) ([]string, error) {
	fd, err := d.openBeneath(path)
	if err != nil {
		return nil, pathErr("readdir", path, err)
	}
	names, err := readNames(fd)
	if cerr := closeFD(fd); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, pathErr("readdir", path, err)
	}
	slices.Sort(names)
	return names, nil
}

func readNames(fd int) (names []string, err error) {
	buf := make([]byte, 8<<10)
	for {
		var n int
		err := retry(func() (e error) { n, e = unix.ReadDirent(fd, buf); return e })
		if err != nil || n == 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// closeFD closes a descriptor. On Linux it is released even if close(2) was interrupted; see there, "Dealing with
// error returns".
func closeFD(fd int) error {
	if err := unix.Close(fd); !errors.Is(err, unix.EINTR) {
		return err
	}
	return nil
}

func (d dir) Lstat(path string) (Stat, error) {
	var st unix.Stat_t
	err := d.in(path, func(at int, name string) error { return unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return Stat{}, pathErr("lstat", path, err)
	}
	return fromUnix(&st), nil
}

func fromUnix(st *unix.Stat_t) Stat {
	return Stat{
		Mode: st.Mode, UID: st.Uid, GID: st.Gid, Nlink: uint64(st.Nlink), Size: st.Size, Blocks: st.Blocks,
		Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Ino: st.Ino, Dev: uint64(st.Dev), Rdev: uint64(st.Rdev),
	}
}

func (d dir) Readlink(path string) (string, error) {
	var buf []byte
	var n int
	for size := 256; ; size *= 2 {
		buf = make([]byte, size)
		err := d.in(path, func(at int, name string) (e error) { n, e = unix.Readlinkat(at, name, buf); return e })
		if err != nil {
			return "", pathErr("readlink", path, err)
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

func (d dir) Mkdir(path string, perm uint32) error {
	return pathErr("mkdir", path, d.in(path, func(at int, name string) error { return unix.Mkdirat(at, name, perm) }))
}

func (d dir) Mknod(path string, mode uint32, dev uint64) error {
	return pathErr("mknod", path, d.in(path, func(at int, name string) error { return unix.Mknodat(at, name, mode, int(dev)) }))
}

func (d dir) Symlink(target, path string) error {
	return linkErr("symlink", target, path, d.in(path, func(at int, name string) error { return unix.Symlinkat(target, at, name) }))
}

func (d dir) Link(oldPath, newPath string) error {
	return linkErr("link", oldPath, newPath, d.inFolders(oldPath, newPath, func(afd int, a string, bfd int, b string) error {
		return unix.Linkat(afd, a, bfd, b, 0)
	}))
}

func (d dir) Rename(oldPath, newPath string) error {
	return linkErr("rename", oldPath, newPath, d.inFolders(oldPath, newPath, unix.Renameat))
}

func (d dir) Exchange(a, b string) error {
	return linkErr("exchange", a, b, d.inFolders(a, b, func(afd int, a string, bfd int, b string) error {
		return unix.Renameat2(afd, a, bfd, b, unix.RENAME_EXCHANGE)
	}))
}

func (d dir) Remove(path string) error {
	return pathErr("remove", path, d.in(path, func(at int, name string) error {
		err := unix.Unlinkat(at, name, 0)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
			if derr := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); !errors.Is(derr, unix.ENOTDIR) {
				err = derr
			}
		}
		return err
	}))
}

// Chmod uses fchmodat2 (Linux 6.6), otherwise an O_PATH handle: neither follows a link.
func (d dir) Chmod(path string, mode uint32) error {
	return pathErr("chmod", path, d.in(path, func(at int, name string) error {
		p, err := unix.BytePtrFromString(name)
		if err != nil {
			return err
		}
		if err := fchmodat2(at, p, mode); !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
			return err
		}
		fd, err := openFD(at, name, unix.O_PATH, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return unix.EOPNOTSUPP
		}
		return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
	}))
}

func (d dir) Lchown(path string, uid, gid int) error {
	return pathErr("lchown", path, d.in(path, func(at int, name string) error {
		return unix.Fchownat(at, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	}))
}

func (d dir) Lutimes(path string, mtime int64) error {
	ts := unix.NsecToTimespec(mtime)
	return pathErr("utimes", path, d.in(path, func(at int, name string) error {
		return unix.UtimesNanoAt(at, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	}))
}

// procPath returns a name of the file for system calls that have no *at form.
func procPath(at int, name string) string {
	if at == unix.AT_FDCWD || strings.HasPrefix(name, "/") {
		return name
	}
	return "/proc/self/fd/" + strconv.Itoa(at) + "/" + name
}

func (d dir) Xattrs(path string) ([]Xattr, error) {
	var out []Xattr
	err := d.in(path, func(at int, name string) (e error) {
		if at != unix.AT_FDCWD && name == "." {
			out, e = fxattrs(at)
			return e
		}
		p := procPath(at, name)
		out, e = xattrs(
			func(b []byte) (int, error) { return unix.Llistxattr(p, b) },
			func(attr string, b []byte) (int, error) { return unix.Lgetxattr(p, attr, b) })
		return e
	})
	return out, pathErr("xattrs", path, err)
}

// fxattrs returns the extended attributes of an open file.
func fxattrs(fd int) ([]Xattr, error) {
	return xattrs(
		func(b []byte) (int, error) { return unix.Flistxattr(fd, b) },
		func(attr string, b []byte) (int, error) { return unix.Fgetxattr(fd, attr, b) })
}

func xattrs(list func([]byte) (int, error), get func(string, []byte) (int, error)) ([]Xattr, error) {
	all, err := grow(list)
	if errors.Is(err, unix.EOPNOTSUPP) || (err == nil && len(all) == 0) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimSuffix(string(all), "\x00"), "\x00")
	slices.Sort(names)
	out := make([]Xattr, 0, len(names))
	for _, n := range names {
		v, err := grow(func(b []byte) (int, error) { return get(n, b) })
		if errors.Is(err, unix.ENODATA) {
			continue // removed meanwhile, or not ours to see
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Xattr{Name: n, Value: v})
	}
	return out, nil
}

// grow calls f with a buffer that is large enough.
func grow(f func([]byte) (int, error)) ([]byte, error) {
	var small [256]byte // most files have none
	for size := len(small); ; size *= 4 {
		buf := small[:]
		if size > len(buf) {
			buf = make([]byte, size)
		}
		n, err := f(buf)
		if errors.Is(err, unix.ERANGE) && size < 1<<17 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return append([]byte{}, buf[:n]...), nil
	}
}

func (d dir) SetXattr(path string, x Xattr) error {
	return pathErr("setxattr "+x.Name, path, d.in(path, func(at int, name string) error {
		if x.Value == nil {
			return unix.Lremovexattr(procPath(at, name), x.Name)
		}
		return unix.Lsetxattr(procPath(at, name), x.Name, x.Value, 0)
	}))
}

func (d dir) SyncFS(path string) error {
	fd, err := d.open(path, unix.O_RDONLY, 0)
	if err != nil {
		return pathErr("syncfs", path, err)
	}
	err = unix.Syncfs(fd)
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	return pathErr("syncfs", path, err)
}

func (d dir) StatFS(path string) (Space, error) {
	var st unix.Statfs_t
	err := d.in(path, func(at int, name string) error { return unix.Statfs(procPath(at, name), &st) })
	if err != nil {
		return Space{}, pathErr("statfs", path, err)
	}
	unit := uint64(st.Frsize)
	if unit == 0 {
		unit = uint64(st.Bsize)
	}
	return Space{Total: st.Blocks * unit, Free: st.Bavail * unit, Files: st.Files, Inodes: st.Ffree}, nil
}
