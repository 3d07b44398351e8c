package undo

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"corpus-git/internal/vfs"
)

// openDir opens a folder by an absolute path; a symbolic link on the way is refused.
func openDir(f vfs.FS, path string) (vfs.Dir, error) {
	root, err := f.OpenDir("/")
	if err != nil || path == "/" {
		return root, err
	}
	defer root.Close()
	return root.OpenDir(strings.TrimPrefix(path, "/"))
}

// maxLinks is how many symbolic links are followed on the way to a path, as Linux does.
const maxLinks = 40

// resolveParent returns an absolute path with the links above its last element followed.
func resolveParent(f vfs.FS, path string) (string, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return path, errors.New("not an absolute path")
	}
	path = filepath.Clean(path)
	if path == "/" {
		return path, nil
	}
	dir, err := resolve(f, filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// resolve follows every link of a path; a path that does not exist has none.
func resolve(f vfs.FS, path string) (string, error) {
	rest := strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	at, links := "/", 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		st, err := f.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return filepath.Join(append([]string{next}, rest...)...), nil
		case err != nil:
			return path, err
		case !st.IsSymlink():
			at = next
			continue
		}
		if links++; links > maxLinks {
			return path, &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
		}
		target, err := f.Readlink(next)
		if err != nil {
			return path, err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}
