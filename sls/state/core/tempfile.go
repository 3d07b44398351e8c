package core

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"corpus-git/internal/vfs"
)

// What a killed run may leave outside the project: nothing if the file system supports unnamed files (O_TMPFILE),
// except for the moment between two system calls; otherwise a file or folder that its owner holds a lock on. The next
// run that writes there removes what is no longer locked.

// ReplaceFile writes a file so that at any time it is either the old or the new one. The new file has the given mode
// and, if they are not negative, the given owner and group.
func (c *Call) ReplaceFile(path string, data []byte, mode fs.FileMode, uid, gid int) error {
	return at(path, false, func(p *vfs.Place) error { return c.replaceAt(p, path, data, mode, uid, gid) })
}

// replaceAt is ReplaceFile for a file at a place, which path resolved to.
func (c *Call) replaceAt(p *vfs.Place, path string, data []byte, mode fs.FileMode, uid, gid int) error {
	if err := c.Undo.BeforePlace(c.Ctx, p); err != nil {
		return err
	}
	for try := 0; ; try++ {
		f, link, err := c.openNew(p, path)
		if err != nil {
			return err
		}
		err = fill(f, data, mode, uid, gid)
		if err == nil {
			err = link(p.Path())
		}
		f.Discard()
		// Another process that writes the same file removed the temporary name.
		if err == nil || !errors.Is(err, fs.ErrNotExist) || try == 2 || !IsDir(p.Dir()) {
			return err
		}
	}
}

func fill(f *TempFile, data []byte, mode fs.FileMode, uid, gid int) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if uid >= 0 || gid >= 0 {
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	return f.Chmod(mode)
}

// openNew creates a file in the folder of a place, which path resolved to; link gives it a name there.
func (c *Call) openNew(p *vfs.Place, path string) (f *TempFile, link func(path string) error, err error) {
	fd, err := unix.Open(p.Dir(), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		f = &TempFile{File: os.NewFile(uintptr(fd), path)}
		return f, f.link, nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		c.sweepOnce(filepath.Dir(path), p.Dir(), ".corpus-")
		f, err = newTempFile(p.Dir(), ".corpus-", "")
		if err != nil {
			return nil, nil, err
		}
		return f, func(path string) error { return os.Rename(f.name, path) }, nil
	}
	return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
}

// link names an unnamed file. Source: open(2), O_TMPFILE.
func (f *TempFile) link(path string) error {
	self := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	at := func(name string) error {
		return unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	}
	err := at(path)
	if !errors.Is(err, unix.EEXIST) {
		return wrapLink(self, path, err)
	}
	// A link cannot replace a name: the file gets another name first. That name is derived from the path, so that the
	// next write of the same file removes what a kill leaves here.
	sum := sha256.Sum256([]byte(filepath.Base(path)))
	tmp := filepath.Join(filepath.Dir(path), ".corpus-"+hex.EncodeToString(sum[:8]))
	if err = at(tmp); errors.Is(err, unix.EEXIST) {
		_ = os.Remove(tmp)
		err = at(tmp)
	}
	if err != nil {
		return wrapLink(self, tmp, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return nil
}

func wrapLink(from, to string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: "link", Old: from, New: to, Err: err}
}

// TempFile is a temporary file. A named one is locked for as long as this process holds it.
type TempFile struct {
	*os.File
	name string // "" if it has none
	lock *os.File
}

// Discard closes the file and removes its temporary name, if it still has one.
func (s *TempFile) Discard() {
	_ = s.Close()
	if s.name != "" {
		_ = os.Remove(s.name)
		_ = s.lock.Close()
	}
}

// NewTempFile makes a named temporary file of mode 0600; dir "" means that of the system. What killed runs left with
// the same prefix is removed once per program.
func (c *Call) NewTempFile(dir, prefix, suffix string) (*TempFile, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	c.sweepOnce(dir, dir, prefix)
	return newTempFile(dir, prefix, suffix)
}

// sweepOnce removes what killed runs left in the folder named, which is accessed through dir, once per program.
func (c *Call) sweepOnce(named, dir, prefix string) {
	c.Once("sweep "+named+" "+prefix, func() any { sweep(dir, prefix); return nil })
}

func newTempFile(dir, prefix, suffix string) (*TempFile, error) {
	f, err := os.CreateTemp(dir, prefix+"*"+suffix)
	if err != nil {
		return nil, err
	}
	s := &TempFile{File: f, name: f.Name()}
	if s.lock, err = holdFile(s.name); err != nil {
		_ = f.Close()
		_ = os.Remove(s.name)
		return nil, err
	}
	return s, nil
}

// NewTempDir is NewTempFile for a folder of mode 0700; discard removes it with everything in it.
func (c *Call) NewTempDir(prefix string) (dir string, discard func(), err error) {
	c.sweepOnce(os.TempDir(), os.TempDir(), prefix)
	dir, err = os.MkdirTemp("", prefix)
	if err != nil {
		return "", nil, err
	}
	lock, err := holdDir(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir); _ = lock.Close() }, nil
}

// holdFile locks a file until it is closed or this process ends. It is opened for reading: a script that is open for
// writing cannot be run.
func holdFile(path string) (*os.File, error) {
	f, err := vfs.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	return locked(f, path)
}

// holdDir is holdFile for a folder.
func holdDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return locked(f, path)
}

func locked(f *os.File, path string) (*os.File, error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "flock", Path: path, Err: err}
	}
	return f, nil
}

// sweep removes files and folders of this user that begin with prefix and that are not locked.
func sweep(dir, prefix string) {
	found, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, p := range found {
		var st unix.Stat_t
		if unix.Lstat(p, &st) != nil || int(st.Uid) != os.Geteuid() {
			continue
		}
		hold := holdFile
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			hold = holdDir
		}
		lock, err := hold(p) // which refuses what is neither a file nor a folder
		if err != nil {
			continue
		}
		_ = os.RemoveAll(p)
		_ = lock.Close()
	}
}
