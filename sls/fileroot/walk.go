package fileroot

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Walk calls fn for everything below a directory of salt://, over all roots that have it, each path once, in the order
// of names; rel is relative to the directory. Symbolic links are followed, as Salt's fileserver_followsymlinks does: d
// describes their targets. A link to a directory above itself is not entered.
func (r Roots) Walk(dir string, fn func(rel string, f File, d fs.DirEntry) error) error {
	c, _, ok := clean(dir, true)
	if !ok {
		return fmt.Errorf("salt://%s leaves the file roots: %w", dir, fs.ErrInvalid)
	}
	found := false
	seen := map[string]bool{}
	for _, f := range r.candidates(c) {
		if st, err := f.Stat(); err != nil || !st.IsDir() {
			continue
		}
		found = true
		w := walker{root: f.Root, fn: func(below, rel string, d fs.DirEntry, link string) error {
			if seen[below] {
				return nil
			}
			seen[below] = true
			return fn(below, File{Root: f.Root, Path: path.Join(c, below), Rel: rel, Link: link}, d)
		}}
		if err := w.walk("", f.Rel, nil); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("salt://%s: %w", c, fs.ErrNotExist)
	}
	return nil
}

type walker struct {
	root Root
	fn   func(below, rel string, d fs.DirEntry, link string) error
}

// walk goes through the directory rel of the root, which is below in the walk; above are the links on the path to it.
func (w walker) walk(below, rel string, above []string) error {
	entries, err := fs.ReadDir(w.root.FS, rel)
	if err != nil {
		return err
	}
	for _, d := range entries {
		b, p := path.Join(below, d.Name()), path.Join(rel, d.Name())
		link, through := "", above
		if d.Type()&fs.ModeSymlink != 0 {
			link = w.link(p)
			if st, err := fs.Stat(w.root.FS, p); err == nil {
				d = fs.FileInfoToDirEntry(st)
			}
			if d.IsDir() {
				real := w.real(p)
				if slices.ContainsFunc(above, func(a string) bool { return a == real }) || strings.HasPrefix(w.real(rel)+"/", real+"/") {
					continue
				}
				through = append(slices.Clone(above), real)
			}
		}
		if err := w.fn(b, p, d, link); err != nil {
			return err
		}
		if d.IsDir() {
			if err := w.walk(b, p, through); err != nil {
				return err
			}
		}
	}
	return nil
}

// link returns the target of a symbolic link, "" if that is outside the root. Source: Salt, salt/fileserver/roots.py,
// _file_lists, including its handling of a target that begins with dots.
func (w walker) link(rel string) string {
	if w.root.Dir == "" {
		return ""
	}
	at := filepath.Join(w.root.Dir, filepath.FromSlash(rel))
	target, err := os.Readlink(at)
	if err != nil {
		return ""
	}
	joined := filepath.Join(filepath.Dir(at), target)
	switch {
	case filepath.IsAbs(target):
		joined = filepath.Clean(target)
	case strings.HasPrefix(target, ".."):
		joined = filepath.Join(at, target)
	}
	in, err := filepath.Rel(realPath(w.root.Dir), realPath(joined))
	if err != nil || strings.HasPrefix(in, "..") {
		return ""
	}
	return target
}

func (w walker) real(rel string) string {
	if w.root.Dir == "" {
		return rel
	}
	return realPath(filepath.Join(w.root.Dir, filepath.FromSlash(rel)))
}

// realPath returns a path without symbolic links, as far as it exists.
func realPath(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	if dir := filepath.Dir(p); dir != p {
		return filepath.Join(realPath(dir), filepath.Base(p))
	}
	return p
}
