package vfstest

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"corpus-git/internal/vfs"
)

// memDir is Mem seen from one folder.
type memDir struct {
	m    *Mem
	here *inode
}

var _ vfs.Dir = memDir{}

func (d memDir) Close() error { return nil }

// walk finds the folder of a path and its last name, which is "." for the folder itself.
func (d memDir) walk(path string) (*inode, string, error) {
	at := d.here
	if strings.HasPrefix(path, "/") {
		at = d.m.root
	}
	parts := slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" || s == "." })
	if len(parts) == 0 {
		return at, ".", nil
	}
	for _, p := range parts[:len(parts)-1] {
		next := at.names[p]
		switch {
		case next == nil:
			return nil, "", syscall.ENOENT
		case next.target != "":
			return nil, "", syscall.ELOOP
		case !next.dir():
			return nil, "", syscall.ENOTDIR
		}
		at = next
	}
	last := parts[len(parts)-1]
	if len(last) > 255 {
		return nil, "", syscall.ENAMETOOLONG
	}
	return at, last, nil
}

// find returns the inode of a path.
func (d memDir) find(path string) (*inode, error) {
	at, name, err := d.walk(path)
	if err != nil || name == "." {
		return at, err
	}
	if i := at.names[name]; i != nil {
		return i, nil
	}
	return nil, syscall.ENOENT
}

// fresh finds the folder of a path that does not exist.
func (d memDir) fresh(path string) (*inode, string, error) {
	at, name, err := d.walk(path)
	if err == nil && (name == "." || at.names[name] != nil) {
		err = syscall.EEXIST
	}
	return at, name, err
}

func (d memDir) lock() func() { d.m.mu.Lock(); return d.m.mu.Unlock }

func wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func wrap2(op, a, b string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: a, New: b, Err: err}
}

func (d memDir) add(op, path string, i *inode) error {
	at, name, err := d.fresh(path)
	if err != nil {
		return wrap(op, path, err)
	}
	d.m.set(at, name, i)
	d.m.record(func() { setDurable(at, name, i) }, at)
	return nil
}

func (d memDir) OpenFile(path string, flag int, perm uint32) (vfs.File, error) {
	defer d.lock()()
	i, err := d.find(path)
	switch {
	case err == syscall.ENOENT && flag&os.O_CREATE != 0: //nolint:errorlint // find returns it bare
		i = d.m.inode(syscall.S_IFREG | perm)
		if err := d.add("open", path, i); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, wrap("open", path, err)
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, wrap("open", path, syscall.EEXIST)
	case i.target != "":
		return nil, wrap("open", path, syscall.ELOOP)
	case flag&syscall.O_DIRECTORY != 0 && !i.dir():
		return nil, wrap("open", path, syscall.ENOTDIR)
	}
	if flag&os.O_TRUNC != 0 {
		d.m.used -= int64(len(i.data))
		i.data = nil
	}
	return &memFile{d: d, i: i, path: path, appendTo: flag&os.O_APPEND != 0}, nil
}

func (d memDir) OpenDir(path string) (vfs.Dir, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err == nil && i.target != "" {
		err = syscall.ELOOP
	} else if err == nil && !i.dir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, wrap("opendir", path, err)
	}
	return memDir{d.m, i}, nil
}

func (d memDir) ReadDir(path string) ([]string, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err == nil && !i.dir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, wrap("readdir", path, err)
	}
	return slices.Sorted(maps.Keys(i.names)), nil
}

func (d memDir) Readlink(path string) (string, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err == nil && i.target == "" {
		err = syscall.EINVAL
	}
	if err != nil {
		return "", wrap("readlink", path, err)
	}
	return i.target, nil
}

func (d memDir) Mkdir(path string, perm uint32) error {
	defer d.lock()()
	return d.add("mkdir", path, d.m.inode(syscall.S_IFDIR|perm))
}

func (d memDir) Mknod(path string, mode uint32, dev uint64) error {
	defer d.lock()()
	i := d.m.inode(mode)
	i.rdev = dev
	return d.add("mknod", path, i)
}

func (d memDir) Symlink(target, path string) error {
	defer d.lock()()
	i := d.m.inode(syscall.S_IFLNK | 0o777)
	i.target = target
	return d.add("symlink", path, i)
}

func (d memDir) Link(oldPath, newPath string) error {
	defer d.lock()()
	i, err := d.find(oldPath)
	if err == nil && i.dir() {
		err = syscall.EPERM
	}
	if err != nil {
		return wrap2("link", oldPath, newPath, err)
	}
	if err := d.add("link", newPath, i); err != nil {
		return err
	}
	i.nlink++
	i.ctime = d.m.now
	return nil
}

func (d memDir) Rename(oldPath, newPath string) error {
	defer d.lock()()
	from, a, err := d.walk(oldPath)
	if err != nil {
		return wrap2("rename", oldPath, newPath, err)
	}
	to, b, err := d.walk(newPath)
	if err != nil {
		return wrap2("rename", oldPath, newPath, err)
	}
	i, old := from.names[a], to.names[b]
	switch {
	case i == nil:
		err = syscall.ENOENT
	case old == i:
		return nil
	case old != nil && old.dir() && !i.dir():
		err = syscall.EISDIR
	case old != nil && !old.dir() && i.dir():
		err = syscall.ENOTDIR
	case old != nil && len(old.names) > 0:
		err = syscall.ENOTEMPTY
	}
	if err != nil {
		return wrap2("rename", oldPath, newPath, err)
	}
	if old != nil {
		d.m.unlink(old)
	}
	d.m.set(from, a, nil)
	d.m.set(to, b, i)
	i.ctime = d.m.now
	d.m.record(func() { setDurable(from, a, nil); setDurable(to, b, i) }, from, to)
	return nil
}

func (d memDir) Exchange(x, y string) error {
	defer d.lock()()
	xd, xn, err := d.walk(x)
	if err != nil {
		return wrap2("exchange", x, y, err)
	}
	yd, yn, err := d.walk(y)
	if err != nil {
		return wrap2("exchange", x, y, err)
	}
	xi, yi := xd.names[xn], yd.names[yn]
	if xi == nil || yi == nil {
		return wrap2("exchange", x, y, syscall.ENOENT)
	}
	d.m.set(xd, xn, yi)
	d.m.set(yd, yn, xi)
	xi.ctime, yi.ctime = d.m.now, d.m.now
	d.m.record(func() { setDurable(xd, xn, yi); setDurable(yd, yn, xi) }, xd, yd)
	return nil
}

func (d memDir) Remove(path string) error {
	defer d.lock()()
	at, name, err := d.walk(path)
	if err != nil {
		return wrap("remove", path, err)
	}
	i := at.names[name]
	switch {
	case i == nil:
		return wrap("remove", path, syscall.ENOENT)
	case len(i.names) > 0:
		return wrap("remove", path, syscall.ENOTEMPTY)
	}
	d.m.set(at, name, nil)
	d.m.unlink(i)
	d.m.record(func() { setDurable(at, name, nil) }, at)
	return nil
}

func (d memDir) SyncFS(path string) error {
	defer d.lock()()
	if _, err := d.find(path); err != nil {
		return wrap("syncfs", path, err)
	}
	d.m.syncAll()
	return nil
}

func (d memDir) StatFS(path string) (vfs.Space, error) {
	defer d.lock()()
	if _, err := d.find(path); err != nil {
		return vfs.Space{}, wrap("statfs", path, err)
	}
	total := int64(1 << 50)
	if d.m.limit > 0 {
		total = d.m.limit
	}
	return vfs.Space{Total: uint64(total), Free: uint64(max(0, total-d.m.used))}, nil
}
