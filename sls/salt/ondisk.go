package salt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"corpus-git/sls"
	"corpus-git/sls/fileroot"
)

// onDisk returns an input whose file roots are folders as Salt should see them. A root that is not on disk is copied below dir/trees, anew each
// time, since Salt reads directories. A recipe's own Salt modules get a separate root. What a mount hides, and modules below Input.Projects,
// which belong to others, are omitted from the other roots, which are replaced by folders of links.
func onDisk(in *sls.Input, dir string) (*sls.Input, error) {
	trees := filepath.Join(dir, "trees")
	for _, r := range in.Roots {
		if strings.HasPrefix(r.Dir, trees+"/") && r.Mount == "" {
			return in, nil // it was done already
		}
	}
	out := *in
	out.Roots = nil
	var mounts []string
	for _, r := range in.Roots {
		if r.Mount != "" {
			mounts = append(mounts, strings.Trim(r.Mount, "/"))
		}
	}
	for i, r := range in.Roots {
		to := filepath.Join(trees, strconv.Itoa(i))
		if r.Mount == "" && r.Dir != "" {
			// A root from which nothing is hidden is used as it is: Salt keeps no links (file.recurse's keep_symlinks) below a linked folder.
			if in.Projects != "" || len(mounts) > 0 {
				v := linkTree{projects: in.Projects, mounts: mounts}
				if err := v.root(r.Dir, to); err != nil {
					return nil, fmt.Errorf("show the file root %s to Salt: %w", r.Dir, err)
				}
				r = fileroot.OnDisk(to)
			}
			out.Roots = append(out.Roots, r)
			continue
		}
		if _, err := os.Stat(to); err == nil && r.Foreign {
			r.Dir = to
			out.Roots = append(out.Roots, r)
			continue
		}
		if r.Dir == "" {
			if err := os.RemoveAll(to); err != nil {
				return nil, err
			}
			switch err := copyRoot(r.FS, to); {
			case err != nil && r.Foreign: // one project must not prevent the deployment of another: it is treated as empty
				if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o700)); err != nil {
					return nil, err
				}
			case err != nil:
				return nil, fmt.Errorf("copy the file root %s: %w", r.Mount, err)
			}
			r.Dir = to
		}
		out.Roots = append(out.Roots, r)
		if r.Foreign {
			continue
		}
		own := to + "-modules"
		if some, err := linkModules(r.Dir, own, path.Base(r.Mount)); err != nil {
			return nil, fmt.Errorf("link the modules of %s: %w", r.Mount, err)
		} else if some {
			out.Roots = append(out.Roots, fileroot.OnDisk(own))
		}
	}
	return &out, nil
}

// linkTree makes a folder of links that replaces a file root.
type linkTree struct {
	// projects is the folder whose modules are omitted, "" for none; mounts are what other roots hide.
	projects string
	mounts   []string
}

func (v linkTree) root(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return v.folder(from, to, "")
}

// folder links the contents of the folder at of a root, except what is hidden.
func (v linkTree) folder(from, to, at string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(at, e.Name())
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case slices.Contains(v.mounts, name):
		case slices.ContainsFunc(v.mounts, func(m string) bool { return strings.HasPrefix(m, name+"/") }):
			err = v.folder(src, dst, name)
		case at == "" && strings.HasPrefix(name, "_"):
			err = v.modules(src, dst)
		default:
			err = os.Symlink(src, dst)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// modules links the modules of one kind that are not below the projects' folder.
func (v linkTree) modules(from, to string) error {
	if v.foreign(from) {
		return nil
	}
	entries, err := os.ReadDir(from)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	for _, e := range entries {
		if src := filepath.Join(from, e.Name()); err == nil && !v.foreign(src) {
			err = os.Symlink(src, filepath.Join(to, e.Name()))
		}
	}
	return err
}

// foreign reports whether a link points below the projects' folder, at its first step or at its end, since what is there can be changed by its
// owner.
func (v linkTree) foreign(p string) bool {
	if v.projects == "" {
		return false
	}
	below := func(p string) bool { return strings.HasPrefix(p+"/", filepath.Clean(v.projects)+"/") }
	for range 40 {
		if below(p) {
			return true
		}
		target, err := os.Readlink(p)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(p), target)
		}
		p = target
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	projects, err := filepath.EvalSymlinks(v.projects)
	return below(real) || err == nil && strings.HasPrefix(real+"/", projects+"/")
}

// linkModules makes a file root of a recipe's own Salt modules, named as a deployment links them: mod.py and <name>_mod.py.
// some is false if the recipe has none.
func linkModules(recipe, to, name string) (some bool, err error) {
	if err := os.RemoveAll(to); err != nil {
		return false, err
	}
	modules, err := filepath.Glob(filepath.Join(recipe, filepath.FromSlash(ownModulesGlob)))
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
		if err != nil && d.Type()&fs.ModeSymlink != 0 || errors.Is(err, fs.ErrNotExist) && p != "." {
			return nil // a dangling link, or one out of the root: Salt does not see it either
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
