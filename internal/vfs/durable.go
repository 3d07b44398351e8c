package vfs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ReadFile reads a whole file.
func ReadFile(f FS, path string) ([]byte, error) {
	h, err := f.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(h)
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return b, err
}

// WriteFileAtomic makes path contain data with exactly these mode bits: a temporary file in the same folder, fsync,
// rename, fsync of the folder. When it returns nil the new content is durable; whatever happens, path contains the
// old content or the new. A crash may leave a file named by TempName.
func WriteFileAtomic(f FS, path string, data []byte, mode uint32) error {
	return WriteAtomic(f, path, mode, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// WriteAtomic is WriteFileAtomic for content that is produced by a function. After an error of write, path is unchanged.
func WriteAtomic(f FS, path string, mode uint32, write func(io.Writer) error) (err error) {
	tmp := TempName(path)
	h, err := f.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Remove(tmp)
		}
	}()
	err = write(h)
	if err == nil {
		err = h.Chmod(mode)
	}
	if err == nil {
		err = h.Sync()
	}
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = f.Rename(tmp, path)
	}
	if err != nil {
		return err
	}
	return SyncDir(f, filepath.Dir(path))
}

// tempPrefix starts the name of every temporary file that this package creates.
const tempPrefix = ".tmp-"

// TempName returns a fresh name beside path: ".tmp-" and sixteen hexadecimal digits.
func TempName(path string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return filepath.Join(filepath.Dir(path), tempPrefix+hex.EncodeToString(b[:]))
}

// SyncUnlessCovered makes the content of a file durable, unless it is on a file system that the caller has synced since it was written (FS.SyncFS). covered is its
// device number, 0 for none. An fsync of a file that is durable is not free: it empties the disk's cache each time.
func SyncUnlessCovered(f File, covered uint64) error {
	if covered != 0 {
		st, err := f.Stat()
		if err != nil || st.Dev == covered {
			return err
		}
	}
	return f.Sync()
}

// SyncDir makes the names in a folder durable.
func SyncDir(f FS, path string) error { return SyncDirUnlessCovered(f, path, 0) }

// SyncDirUnlessCovered is SyncDir, unless the folder is on a file system that the caller has synced since; see SyncUnlessCovered.
func SyncDirUnlessCovered(f FS, path string, covered uint64) error {
	h, err := f.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	err = SyncUnlessCovered(h, covered)
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return err
}

// SyncParents makes the names beside each path durable, each folder once.
func SyncParents(f FS, paths ...string) error { return SyncParentsUnlessCovered(f, 0, paths...) }

// SyncParentsUnlessCovered is SyncParents, except for folders on a file system that the caller has synced since; see SyncUnlessCovered.
func SyncParentsUnlessCovered(f FS, covered uint64, paths ...string) error {
	seen := map[string]bool{}
	for _, p := range paths {
		d := filepath.Dir(p)
		if seen[d] {
			continue
		}
		seen[d] = true
		if err := SyncDirUnlessCovered(f, d, covered); err != nil {
			return err
		}
	}
	return nil
}

// RenameDurable renames and makes the new name durable.
func RenameDurable(f FS, oldPath, newPath string) error {
	if err := f.Rename(oldPath, newPath); err != nil {
		return err
	}
	return SyncParents(f, newPath, oldPath)
}

// MkdirAll creates path and its missing parents, each with perm; an existing folder is left as it is. The new names are
// durable when it returns. Links in the given path are followed, as for any parent.
func MkdirAll(f FS, path string, perm uint32) error {
	path = filepath.Clean(path)
	err := f.Mkdir(path, perm)
	switch {
	case err == nil:
		return SyncDir(f, filepath.Dir(path))
	case errors.Is(err, fs.ErrExist):
		st, serr := f.Lstat(path)
		if serr == nil && st.IsSymlink() {
			st, serr = f.Lstat(path + "/.")
		}
		if serr == nil && st.IsDir() {
			return nil
		}
		return pathErr("mkdir", path, syscall.ENOTDIR)
	case errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != path:
		if err := MkdirAll(f, filepath.Dir(path), perm); err != nil {
			return err
		}
		return MkdirAll(f, path, perm)
	}
	return err
}

// Exists reports whether something is at path. An error other than "not there" is returned.
func Exists(f FS, path string) (bool, error) {
	_, err := f.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// RemoveAll removes path and everything below it; a missing path is no error. It follows no link, and gives itself
// permission to empty folders that it owns. Nothing is durable when it returns.
func RemoveAll(f FS, path string) error {
	err := f.Remove(path)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist):
		d, err := openForRemoval(f, path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		err = removeContents(d)
		if cerr := d.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return prefixed(path, err)
		}
		if err := f.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return err
}

// openForRemoval opens a folder that must be emptied, adding u+rwx if it is missing.
func openForRemoval(f FS, path string) (Dir, error) {
	st, err := f.Lstat(path)
	if err != nil {
		return nil, err
	}
	if st.Perm()&0o700 != 0o700 {
		if err := f.Chmod(path, st.Perm()|0o700); err != nil {
			return nil, err
		}
	}
	return f.OpenDir(path)
}

func removeContents(d Dir) error {
	names, err := d.ReadDir(".")
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := RemoveAll(d, n); err != nil {
			return err
		}
	}
	return nil
}

// prefixed prepends the folder to a path that is relative to it.
func prefixed(dir string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) && !strings.HasPrefix(pe.Path, "/") {
		return &fs.PathError{Op: pe.Op, Path: filepath.Join(dir, pe.Path), Err: pe.Err}
	}
	return err
}

// DropCache lets the kernel forget the pages of a file that has been synced, if it can: a later reader then reads the
// disk. A File without a cache is not an error.
func DropCache(f File) error {
	if d, ok := f.(interface{ DropCache() error }); ok {
		return d.DropCache()
	}
	return nil
}
