package vfs

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// file is an open file of OS. It is a bare descriptor: regular files and folders block only on the disk.
type file struct {
	fd     int
	name   string
	closed bool
	size   int64 // as last returned by Stat
	blocks int64
	known  bool
}

func (f *file) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	err = retry(func() (e error) { n, e = unix.Read(f.fd, p); return e })
	if err != nil {
		return 0, pathErr("read", f.name, err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *file) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		var n int
		err := retry(func() (e error) { n, e = unix.Write(f.fd, p[done:]); return e })
		if err != nil {
			return done, pathErr("write", f.name, err)
		}
		done += n
	}
	return done, nil
}

func (f *file) Seek(offset int64, whence int) (int64, error) {
	n, err := unix.Seek(f.fd, offset, whence)
	return n, pathErr("seek", f.name, err)
}

func (f *file) Close() error {
	if f.closed {
		return pathErr("close", f.name, os.ErrClosed)
	}
	f.closed = true
	return pathErr("close", f.name, closeFD(f.fd))
}

func (f *file) Stat() (Stat, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(f.fd, &st) }); err != nil {
		return Stat{}, pathErr("stat", f.name, err)
	}
	f.size, f.blocks, f.known = st.Size, st.Blocks, true
	return fromUnix(&st), nil
}

func (f *file) Xattrs() ([]Xattr, error) {
	out, err := fxattrs(f.fd)
	return out, pathErr("xattrs", f.name, err)
}

func (f *file) Truncate(size int64) error {
	return pathErr("truncate", f.name, retry(func() error { return unix.Ftruncate(f.fd, size) }))
}

func (f *file) Allocate(size int64) error {
	return pathErr("fallocate", f.name, retry(func() error { return unix.Fallocate(f.fd, 0, 0, size) }))
}

func (f *file) Chmod(mode uint32) error {
	return pathErr("chmod", f.name, retry(func() error { return unix.Fchmod(f.fd, mode) }))
}

func (f *file) Chown(uid, gid int) error {
	return pathErr("chown", f.name, retry(func() error { return unix.Fchown(f.fd, uid, gid) }))
}

func (f *file) Utimes(mtime int64) error {
	ts := unix.NsecToTimespec(mtime)
	return pathErr("utimes", f.name, retry(func() error {
		return unix.UtimesNanoAt(f.fd, "", []unix.Timespec{ts, ts}, unix.AT_EMPTY_PATH)
	}))
}

func (f *file) Sync() error {
	return pathErr("fsync", f.name, retry(func() error { return unix.Fsync(f.fd) }))
}

const (
	smallFile  = 32 << 10 // one read and one write
	plainBlock = 256 << 10
)

func (f *file) SetXattr(x Xattr) error {
	if x.Value == nil {
		return pathErr("setxattr "+x.Name, f.name, unix.Fremovexattr(f.fd, x.Name))
	}
	return pathErr("setxattr "+x.Name, f.name, unix.Fsetxattr(f.fd, x.Name, x.Value, 0))
}

// copyPart is how much is copied between two checks of the context, in bytes.
const copyPart = 64 << 20

// WithContext returns a reader of r that ends with ctx.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return ctxReader{ctx, r} }

type ctxReader struct {
	ctx context.Context //nolint:containedctx // of one copy
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func (f *file) CopyFrom(ctx context.Context, src File) (int64, error) {
	s, ok := src.(*file)
	if !ok {
		return io.CopyBuffer(struct{ io.Writer }{f}, WithContext(ctx, src), make([]byte, 128<<10))
	}
	if !s.known {
		if _, err := s.Stat(); err != nil {
			return 0, err
		}
	}
	size := s.size
	if size == 0 {
		return 0, nil
	}
	// Small files: one read and one write cost less than asking for clones and holes, unless there are holes.
	sparse := s.blocks*512 < size
	if size <= smallFile && !sparse {
		return f.copySmall(ctx, s, size)
	}
	if err := unix.IoctlFileClone(f.fd, s.fd); err == nil {
		return size, nil
	}
	if sparse {
		return f.copySparse(ctx, s, size)
	}
	return f.copyRange(ctx, s, 0, size)
}

// copyRange copies size bytes at off to the same offset, within the kernel if possible. It returns how many there were.
func (f *file) copyRange(ctx context.Context, s *file, off, size int64) (int64, error) {
	var done int64
	for done < size {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		from, to := off+done, off+done
		var n int
		err := retry(func() (e error) {
			n, e = unix.CopyFileRange(s.fd, &from, f.fd, &to, int(min(size-done, copyPart)), 0)
			return e
		})
		switch {
		case err == nil && n > 0:
			done += int64(n)
			continue
		case err == nil && done > 0:
			return done, nil // shrank
		case err == nil, errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS),
			errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPERM), errors.Is(err, unix.ETXTBSY):
			// Some file systems return 0 for files that have content: read them.
			n, err := f.plainRange(ctx, s, off+done, size-done)
			return done + n, err
		default:
			return done, pathErr("copy_file_range", s.name, err)
		}
	}
	return done, nil
}

// plainRange copies size bytes at off to the same offset through memory. It returns how many there were.
func (f *file) plainRange(ctx context.Context, s *file, off, size int64) (int64, error) {
	return f.through(ctx, s, off, size, make([]byte, min(size, plainBlock)))
}

// copySmall is plainRange with a buffer that costs nothing.
func (f *file) copySmall(ctx context.Context, s *file, size int64) (int64, error) {
	var buf [smallFile]byte
	return f.through(ctx, s, 0, size, buf[:])
}

func (f *file) through(ctx context.Context, s *file, off, size int64, buf []byte) (int64, error) {
	var done int64
	for done < size {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		var n int
		err := retry(func() (e error) {
			n, e = unix.Pread(s.fd, buf[:min(int64(len(buf)), size-done)], off+done)
			return e
		})
		if err != nil {
			return done, pathErr("read", s.name, err)
		}
		if n == 0 {
			return done, nil
		}
		for w := 0; w < n; {
			var m int
			err := retry(func() (e error) { m, e = unix.Pwrite(f.fd, buf[w:n], off+done+int64(w)); return e })
			if err != nil {
				return done, pathErr("write", f.name, err)
			}
			w += m
		}
		done += int64(n)
	}
	return done, nil
}

// copySparse copies what lseek(2) calls data and leaves the rest a hole.
func (f *file) copySparse(ctx context.Context, s *file, size int64) (int64, error) {
	for off := int64(0); off < size; {
		data, err := unix.Seek(s.fd, off, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // a hole up to the end
		}
		if err != nil { // no SEEK_DATA here
			if _, err := f.copyRange(ctx, s, off, size-off); err != nil {
				return off, err
			}
			break
		}
		hole, err := unix.Seek(s.fd, data, unix.SEEK_HOLE)
		if err != nil {
			return off, pathErr("seek", s.name, err)
		}
		hole = min(hole, size)
		if _, err := f.copyRange(ctx, s, data, hole-data); err != nil {
			return off, err
		}
		off = hole
	}
	st, err := s.Stat()
	if err != nil {
		return 0, err
	}
	end := min(size, st.Size)
	return end, f.Truncate(end)
}

// DropCache drops the clean pages of the file (POSIX_FADV_DONTNEED). It is only a hint: nothing fails without it.
func (f *file) DropCache() error {
	_ = unix.Fadvise(f.fd, 0, 0, unix.FADV_DONTNEED)
	return nil
}
