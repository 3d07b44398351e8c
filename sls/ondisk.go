package sls

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"corpus-git/sls/fileroot"
)

// OnDisk gives an input whose file roots all lie on disk. A root that does not, such as the tree of a pushed commit
// while it is planned, is copied below dir/trees, each time anew: Salt reads
// directories.
func OnDisk(in *Input, dir string) (*Input, error) {
	out := *in
	out.Roots = append(fileroot.Roots(nil), in.Roots...)
	for i, r := range out.Roots {
		if r.Dir != "" {
			continue
		}
		to := filepath.Join(dir, "trees", strconv.Itoa(i))
		if err := os.RemoveAll(to); err != nil {
			return nil, err
		}
		if err := copyRoot(r.FS, to); err != nil {
			return nil, fmt.Errorf("copy the file root %s: %w", r.Mount, err)
		}
		out.Roots[i].Dir = to
	}
	return &out, nil
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
