package sls

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"corpus-git/sls/fileroot"
)

// OnDisk gives an input whose file roots all lie on disk. A root that does not, such as the tree of a pushed commit
// while it is planned, is copied below dir/trees, each time anew: Salt reads
// directories.
func OnDisk(in *Input, dir string) (*Input, error) {
	out := *in
	out.Roots = nil
	for i, r := range in.Roots {
		if r.Dir != "" {
			out.Roots = append(out.Roots, r)
			continue
		}
		to := filepath.Join(dir, "trees", strconv.Itoa(i))
		if err := os.RemoveAll(to); err != nil {
			return nil, err
		}
		if err := copyRoot(r.FS, to); err != nil {
			return nil, fmt.Errorf("copy the file root %s: %w", r.Mount, err)
		}
		r.Dir = to
		out.Roots = append(out.Roots, r)
		own := to + "-modules"
		if some, err := linkModules(to, own, path.Base(r.Mount)); err != nil {
			return nil, fmt.Errorf("link the modules of %s: %w", r.Mount, err)
		} else if some {
			out.Roots = append(out.Roots, fileroot.OnDisk(own))
		}
	}
	return &out, nil
}

// linkModules makes a file root of a recipe's own Salt modules, named as a deployment links them: mod.py and <name>_mod.py.
// some is false where the recipe has none.
func linkModules(recipe, to, name string) (some bool, err error) {
	if err := os.RemoveAll(to); err != nil {
		return false, err
	}
	modules, err := filepath.Glob(filepath.Join(recipe, "_*", "*.py"))
	for _, m := range modules {
		dir := filepath.Join(to, filepath.Base(filepath.Dir(m)))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, err
		}
		for _, n := range []string{filepath.Base(m), name + "_" + filepath.Base(m)} {
			if err := os.Symlink(m, filepath.Join(dir, n)); err != nil {
				return false, err
			}
		}
	}
	return len(modules) > 0, err
}

func copyRoot(from fs.FS, to string) error {
	return fs.WalkDir(from, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := fs.Stat(from, p) // follows links
		if errors.Is(err, fs.ErrNotExist) && p != "." {
			return nil // a link to nowhere: Salt does not see it either
		}
		if err != nil {
			return err
		}
		at := filepath.Join(to, filepath.FromSlash(p))
		switch {
		case st.IsDir() && d.IsDir():
			return os.MkdirAll(at, 0o700)
		case st.Mode().IsRegular():
			return copyRootFile(from, p, at, st.Mode().Perm())
		}
		return nil
	})
}

func copyRootFile(from fs.FS, p, to string, mode fs.FileMode) (err error) {
	r, err := from.Open(p)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return w.Chmod(mode | 0o400) // mode: keep copies it
}
