// Package vfstest provides file systems for tests: one that fails at chosen calls (Faulty), and one in memory that loses what was not
// synced (Mem). It is imported only by tests.
package vfstest

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"syscall"

	"corpus-git/internal/vfs"
)

// Op is one call that a Faulty has recorded.
type Op struct {
	Name string // open, opendir, readdir, lstat, readlink, mkdir, mknod, symlink, link, rename, exchange, remove, chmod, lchown, utimes, xattrs, setxattr, syncfs, statfs, read, write, stat, truncate, fallocate, fchmod, fchown, futimes, fxattrs, fsetxattr, fsync, copy, close
	Path string
}

// Faulty wraps an FS and fails chosen calls. It counts every call, including those on files and folders that it opened.
// Safe for concurrent use.
type Faulty struct {
	vfs.FS
	s *state
}

type state struct {
	mu     sync.Mutex
	decide func(n int, op Op) error
	n      int
	ops    []Op
	keep   bool
}

// ErrCrash is what every call returns after a CrashAt: the process counts as dead.
var ErrCrash = errors.New("vfstest: crashed")

// New wraps inner. decide is called before each call, with the number of the call from 1; an error that it returns is the
// call's, and the call does not happen. nil never fails. Calls are recorded for Ops.
func New(inner vfs.FS, decide func(n int, op Op) error) *Faulty {
	return &Faulty{FS: inner, s: &state{decide: decide, keep: true}}
}

// FailNth fails the nth call named op (any call if op is "") with errno, once.
func FailNth(op string, n int, errno syscall.Errno) func(int, Op) error {
	seen := 0
	return func(_ int, o Op) error {
		if op != "" && o.Name != op {
			return nil
		}
		seen++
		if seen != n {
			return nil
		}
		return &fs.PathError{Op: o.Name, Path: o.Path, Err: errno}
	}
}

// FailFrom fails the nth call named op (any call if op is "") and every later one of that name with errno: a full
// disk, a folder remounted read-only.
func FailFrom(op string, n int, errno syscall.Errno) func(int, Op) error {
	seen := 0
	return func(_ int, o Op) error {
		if op != "" && o.Name != op {
			return nil
		}
		if seen++; seen < n {
			return nil
		}
		return &fs.PathError{Op: o.Name, Path: o.Path, Err: errno}
	}
}

// CrashAt lets n calls happen and fails all later ones with ErrCrash, of every name.
func CrashAt(n int) func(int, Op) error {
	return func(i int, _ Op) error {
		if i > n {
			return ErrCrash
		}
		return nil
	}
}

// Ops returns every call so far, in the order in which they were made, including failed ones.
func (f *Faulty) Ops() []Op {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return append([]Op(nil), f.s.ops...)
}

// Count returns the number of calls so far.
func (f *Faulty) Count() int {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.s.n
}

func (s *state) ask(name, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	op := Op{Name: name, Path: path}
	if s.keep {
		s.ops = append(s.ops, op)
	}
	if s.decide == nil {
		return nil
	}
	return s.decide(s.n, op)
}

// OpenFile implements vfs.FS.
func (f *Faulty) OpenFile(path string, flag int, perm uint32) (vfs.File, error) {
	if err := f.s.ask("open", path); err != nil {
		return nil, err
	}
	h, err := f.FS.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: h, s: f.s, path: path}, nil
}

// OpenDir implements vfs.FS.
func (f *Faulty) OpenDir(path string) (vfs.Dir, error) {
	if err := f.s.ask("opendir", path); err != nil {
		return nil, err
	}
	d, err := f.FS.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return &faultyDir{Faulty: Faulty{FS: d, s: f.s}, d: d}, nil
}

type faultyDir struct {
	Faulty
	d vfs.Dir
}

func (d *faultyDir) Close() error { return d.d.Close() }

func do[T any](f *Faulty, name, path string, call func() (T, error)) (T, error) {
	if err := f.s.ask(name, path); err != nil {
		var zero T
		return zero, err
	}
	return call()
}

func (f *Faulty) run(name, path string, call func() error) error {
	if err := f.s.ask(name, path); err != nil {
		return err
	}
	return call()
}

// ReadDir implements vfs.FS.
func (f *Faulty) ReadDir(path string) ([]string, error) {
	return do(f, "readdir", path, func() ([]string, error) { return f.FS.ReadDir(path) })
}

// Lstat implements vfs.FS.
func (f *Faulty) Lstat(path string) (vfs.Stat, error) {
	return do(f, "lstat", path, func() (vfs.Stat, error) { return f.FS.Lstat(path) })
}

// Readlink implements vfs.FS.
func (f *Faulty) Readlink(path string) (string, error) {
	return do(f, "readlink", path, func() (string, error) { return f.FS.Readlink(path) })
}

// Mkdir implements vfs.FS.
func (f *Faulty) Mkdir(path string, perm uint32) error {
	return f.run("mkdir", path, func() error { return f.FS.Mkdir(path, perm) })
}

// Mknod implements vfs.FS.
func (f *Faulty) Mknod(path string, mode uint32, dev uint64) error {
	return f.run("mknod", path, func() error { return f.FS.Mknod(path, mode, dev) })
}

// Symlink implements vfs.FS.
func (f *Faulty) Symlink(target, path string) error {
	return f.run("symlink", path, func() error { return f.FS.Symlink(target, path) })
}

// Link implements vfs.FS.
func (f *Faulty) Link(oldPath, newPath string) error {
	return f.run("link", newPath, func() error { return f.FS.Link(oldPath, newPath) })
}

// Rename implements vfs.FS.
func (f *Faulty) Rename(oldPath, newPath string) error {
	return f.run("rename", newPath, func() error { return f.FS.Rename(oldPath, newPath) })
}

// Exchange implements vfs.FS.
func (f *Faulty) Exchange(a, b string) error {
	return f.run("exchange", a, func() error { return f.FS.Exchange(a, b) })
}

// Remove implements vfs.FS.
func (f *Faulty) Remove(path string) error {
	return f.run("remove", path, func() error { return f.FS.Remove(path) })
}

// Chmod implements vfs.FS.
func (f *Faulty) Chmod(path string, mode uint32) error {
	return f.run("chmod", path, func() error { return f.FS.Chmod(path, mode) })
}

// Lchown implements vfs.FS.
func (f *Faulty) Lchown(path string, uid, gid int) error {
	return f.run("lchown", path, func() error { return f.FS.Lchown(path, uid, gid) })
}

// Lutimes implements vfs.FS.
func (f *Faulty) Lutimes(path string, mtime int64) error {
	return f.run("utimes", path, func() error { return f.FS.Lutimes(path, mtime) })
}

// Xattrs implements vfs.FS.
func (f *Faulty) Xattrs(path string) ([]vfs.Xattr, error) {
	return do(f, "xattrs", path, func() ([]vfs.Xattr, error) { return f.FS.Xattrs(path) })
}

// SetXattr implements vfs.FS.
func (f *Faulty) SetXattr(path string, x vfs.Xattr) error {
	return f.run("setxattr", path, func() error { return f.FS.SetXattr(path, x) })
}

// SyncFS implements vfs.FS.
func (f *Faulty) SyncFS(path string) error {
	return f.run("syncfs", path, func() error { return f.FS.SyncFS(path) })
}

// StatFS implements vfs.FS.
func (f *Faulty) StatFS(path string) (vfs.Space, error) {
	return do(f, "statfs", path, func() (vfs.Space, error) { return f.FS.StatFS(path) })
}

type faultyFile struct {
	vfs.File
	s    *state
	path string
}

func (h *faultyFile) Read(p []byte) (int, error) {
	if err := h.s.ask("read", h.path); err != nil {
		return 0, err
	}
	return h.File.Read(p)
}

func (h *faultyFile) Write(p []byte) (int, error) {
	if err := h.s.ask("write", h.path); err != nil {
		return 0, err
	}
	return h.File.Write(p)
}

func (h *faultyFile) Stat() (vfs.Stat, error) {
	if err := h.s.ask("stat", h.path); err != nil {
		return vfs.Stat{}, err
	}
	return h.File.Stat()
}

func (h *faultyFile) Xattrs() ([]vfs.Xattr, error) {
	if err := h.s.ask("fxattrs", h.path); err != nil {
		return nil, err
	}
	return h.File.Xattrs()
}

func (h *faultyFile) SetXattr(x vfs.Xattr) error {
	if err := h.s.ask("fsetxattr", h.path); err != nil {
		return err
	}
	return h.File.SetXattr(x)
}

func (h *faultyFile) Truncate(size int64) error {
	if err := h.s.ask("truncate", h.path); err != nil {
		return err
	}
	return h.File.Truncate(size)
}

func (h *faultyFile) Allocate(size int64) error {
	if err := h.s.ask("fallocate", h.path); err != nil {
		return err
	}
	return h.File.Allocate(size)
}

func (h *faultyFile) Chmod(mode uint32) error {
	if err := h.s.ask("fchmod", h.path); err != nil {
		return err
	}
	return h.File.Chmod(mode)
}

func (h *faultyFile) Chown(uid, gid int) error {
	if err := h.s.ask("fchown", h.path); err != nil {
		return err
	}
	return h.File.Chown(uid, gid)
}

func (h *faultyFile) Utimes(mtime int64) error {
	if err := h.s.ask("futimes", h.path); err != nil {
		return err
	}
	return h.File.Utimes(mtime)
}

func (h *faultyFile) Sync() error {
	if err := h.s.ask("fsync", h.path); err != nil {
		return err
	}
	return h.File.Sync()
}

func (h *faultyFile) CopyFrom(ctx context.Context, src vfs.File) (int64, error) {
	if err := h.s.ask("copy", h.path); err != nil {
		return 0, err
	}
	if s, ok := src.(*faultyFile); ok {
		src = s.File
	}
	return h.File.CopyFrom(ctx, src)
}

// Close releases the file whatever happens; the injected error comes after.
func (h *faultyFile) Close() error {
	err := h.s.ask("close", h.path)
	if cerr := h.File.Close(); err == nil {
		err = cerr
	}
	return err
}
