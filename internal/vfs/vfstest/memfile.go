package vfstest

import (
	"context"
	"io"
	"slices"
	"syscall"

	"corpus-git/internal/vfs"
)

// memFile is an open file of Mem.
type memFile struct {
	d        memDir
	i        *inode
	path     string
	off      int64
	appendTo bool
	closed   bool
}

func (f *memFile) Read(p []byte) (int, error) {
	defer f.d.lock()()
	if f.i.dir() {
		return 0, wrap("read", f.path, syscall.EISDIR)
	}
	if f.off >= int64(len(f.i.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.i.data[f.off:])
	f.off += int64(n)
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	defer f.d.lock()()
	if f.appendTo {
		f.off = int64(len(f.i.data))
	}
	end := f.off + int64(len(p))
	if err := f.resize(max(end, int64(len(f.i.data)))); err != nil {
		return 0, wrap("write", f.path, err)
	}
	copy(f.i.data[f.off:], p)
	f.off = end
	return len(p), nil
}

// resize sets the length and the times of a write.
func (f *memFile) resize(size int64) error {
	m := f.d.m
	grow := size - int64(len(f.i.data))
	if m.limit > 0 && grow > 0 && m.used+grow > m.limit {
		return syscall.ENOSPC
	}
	m.used += grow
	if grow > 0 {
		f.i.data = append(f.i.data, make([]byte, grow)...)
	} else {
		f.i.data = f.i.data[:size]
	}
	t := m.tick()
	f.i.mtime, f.i.ctime = t, t
	return nil
}

func (f *memFile) Seek(offset int64, whence int) (int64, error) {
	defer f.d.lock()()
	switch whence {
	case io.SeekCurrent:
		offset += f.off
	case io.SeekEnd:
		offset += int64(len(f.i.data))
	}
	if offset < 0 {
		return 0, wrap("seek", f.path, syscall.EINVAL)
	}
	f.off = offset
	return offset, nil
}

func (f *memFile) Close() error {
	defer f.d.lock()()
	if f.closed {
		return wrap("close", f.path, syscall.EBADF)
	}
	f.closed = true
	return nil
}

func (f *memFile) Stat() (vfs.Stat, error) {
	defer f.d.lock()()
	return f.d.m.stat(f.i), nil
}

func (f *memFile) Xattrs() ([]vfs.Xattr, error) {
	defer f.d.lock()()
	return f.i.listXattrs(), nil
}

func (f *memFile) SetXattr(x vfs.Xattr) error {
	defer f.d.lock()()
	f.i.ctime = f.d.m.tick()
	f.i.setXattr(x)
	return nil
}

func (f *memFile) Truncate(size int64) error {
	defer f.d.lock()()
	return wrap("truncate", f.path, f.resize(size))
}

func (f *memFile) Allocate(size int64) error {
	defer f.d.lock()()
	return wrap("fallocate", f.path, f.resize(max(size, int64(len(f.i.data)))))
}

func (f *memFile) Chmod(mode uint32) error {
	defer f.d.lock()()
	f.i.ctime = f.d.m.tick()
	return wrap("chmod", f.path, chmod(f.i, mode))
}

func (f *memFile) Chown(uid, gid int) error {
	defer f.d.lock()()
	f.i.ctime = f.d.m.tick()
	chown(f.i, uid, gid)
	return nil
}

func (f *memFile) Utimes(mtime int64) error {
	defer f.d.lock()()
	f.i.ctime = f.d.m.tick()
	f.i.mtime = mtime
	return nil
}

func (f *memFile) Sync() error {
	defer f.d.lock()()
	f.d.m.sync(f.i)
	return nil
}

func (f *memFile) CopyFrom(ctx context.Context, src vfs.File) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s, ok := src.(*memFile)
	if !ok {
		return io.Copy(struct{ io.Writer }{f}, vfs.WithContext(ctx, src))
	}
	defer f.d.lock()()
	data := slices.Clone(s.i.data)
	if err := f.resize(int64(len(data))); err != nil {
		return 0, wrap("write", f.path, err)
	}
	copy(f.i.data, data)
	return int64(len(data)), nil
}
