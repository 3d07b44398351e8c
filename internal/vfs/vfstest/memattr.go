package vfstest

import (
	"maps"
	"slices"
	"syscall"

	"corpus-git/internal/vfs"
)

func (d memDir) Lstat(path string) (vfs.Stat, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err != nil {
		return vfs.Stat{}, wrap("lstat", path, err)
	}
	return d.m.stat(i), nil
}

// change alters the attributes of an inode.
func (d memDir) change(op, path string, f func(*inode) error) error {
	defer d.lock()()
	i, err := d.find(path)
	if err == nil {
		i.ctime = d.m.tick()
		err = f(i)
	}
	return wrap(op, path, err)
}

func chmod(i *inode, mode uint32) error {
	if i.target != "" {
		return syscall.EOPNOTSUPP
	}
	i.mode = i.mode&syscall.S_IFMT | mode&0o7777
	return nil
}

func chown(i *inode, uid, gid int) {
	if uid >= 0 {
		i.uid = uint32(uid)
	}
	if gid >= 0 {
		i.gid = uint32(gid)
	}
	if !i.dir() {
		i.mode &^= 0o6000
	}
}

func (d memDir) Chmod(path string, mode uint32) error {
	return d.change("chmod", path, func(i *inode) error { return chmod(i, mode) })
}

func (d memDir) Lchown(path string, uid, gid int) error {
	return d.change("lchown", path, func(i *inode) error { chown(i, uid, gid); return nil })
}

func (d memDir) Lutimes(path string, mtime int64) error {
	return d.change("utimes", path, func(i *inode) error { i.mtime = mtime; return nil })
}

func (d memDir) Xattrs(path string) ([]vfs.Xattr, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err != nil {
		return nil, wrap("xattrs", path, err)
	}
	return i.listXattrs(), nil
}

func (i *inode) listXattrs() (out []vfs.Xattr) {
	for _, n := range slices.Sorted(maps.Keys(i.xattrs)) {
		out = append(out, vfs.Xattr{Name: n, Value: slices.Clone(i.xattrs[n])})
	}
	return out
}

func (d memDir) SetXattr(path string, x vfs.Xattr) error {
	return d.change("setxattr", path, func(i *inode) error { i.setXattr(x); return nil })
}

func (i *inode) setXattr(x vfs.Xattr) {
	if x.Value == nil {
		delete(i.xattrs, x.Name)
		return
	}
	if i.xattrs == nil {
		i.xattrs = map[string][]byte{}
	}
	i.xattrs[x.Name] = slices.Clone(x.Value)
}
