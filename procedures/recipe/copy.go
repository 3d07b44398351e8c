package recipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/hooks"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/sls/fileroot"
)

// Recipe is the .salt of one commit as it runs: a private copy below the state folder, which only the server's user can write. The working
// copy belongs to the project's user, so nothing in it is run with the server's privileges. A nil Recipe is empty.
type Recipe struct {
	// dir holds the copy, live is the folder of the working copy that it replaces.
	dir, live string
}

// maxRecipe and maxRecipeFiles limit the size of a private copy.
const (
	maxRecipe      = 4 << 30
	maxRecipeFiles = 200_000
)

// Copy makes the private copy of a recipe; nil for a recipe without anything that can run. Links within the recipe stay links; targets
// elsewhere in the commit are copied in their place; links that leave the commit point to the same target as from the working copy. The
// copy is not durable: it is removed with its deployment.
func Copy(ctx context.Context, from fs.FS, to, live string) (*Recipe, error) {
	if from == nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(from, ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.KindOf(err), "read "+layout.SaltDir, "%w", err)
	}
	if len(entries) == 0 || len(entries) == 1 && entries[0].Name() == layout.PillarSample {
		return nil, nil
	}
	c := copier{ctx: ctx, from: from, to: to, live: live}
	err = os.RemoveAll(to)
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	if err == nil {
		err = c.entries(".", ".", entries, 0)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if fault.KindOf(err) == fault.Internal {
			err = fault.New(fault.Internal, "copy "+layout.SaltDir, "%w", err)
		}
		return nil, errors.Join(err, os.RemoveAll(to))
	}
	return &Recipe{dir: to, live: live}, nil
}

// copier copies a recipe.
type copier struct {
	ctx      context.Context
	from     fs.FS
	to, live string
	files    int
	bytes    int64
}

// maxFollowed is the number of links that a copy follows on the path to a file.
const maxFollowed = 8

// folder copies the folder from of the recipe into the folder to of the copy.
func (c *copier) folder(from, to string, followed int) error {
	entries, err := fs.ReadDir(c.from, from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(c.to, to), 0o755); err != nil {
		return err
	}
	return c.entries(from, to, entries, followed)
}

func (c *copier) entries(from, to string, entries []fs.DirEntry, followed int) error {
	for _, e := range entries {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		if c.files++; c.files > maxRecipeFiles {
			return fault.New(fault.Refused, "copy "+layout.SaltDir, "it has more than %d files", maxRecipeFiles).
				WithHint("%s is for the files that deploy the project; keep data elsewhere", layout.SaltDir)
		}
		if err := c.entry(path.Join(from, e.Name()), path.Join(to, e.Name()), e.Type(), followed); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) entry(from, to string, kind fs.FileMode, followed int) error {
	switch {
	case kind.IsDir():
		return c.folder(from, to, followed)
	case kind&fs.ModeSymlink != 0:
		return c.link(from, to, followed)
	case kind.IsRegular():
		return c.file(from, to)
	}
	return nil // a fifo, socket or device of a remote-less project
}

func (c *copier) link(from, to string, followed int) error {
	target, err := fs.ReadLink(c.from, from)
	if err != nil {
		return err
	}
	at := filepath.Join(c.to, to)
	if !path.IsAbs(target) && fs.ValidPath(path.Join(path.Dir(from), target)) && followed == 0 {
		return os.Symlink(target, at)
	}
	st, err := fs.Stat(c.from, from)
	switch {
	case err != nil, above(path.Join(path.Dir(from), target)):
		// It leaves the commit, is dangling, or points to a folder that contains the recipe itself.
		if !path.IsAbs(target) {
			target = filepath.Join(c.live, path.Dir(from), target)
		}
		return os.Symlink(target, at)
	case followed == maxFollowed:
		return nil // probably a loop
	}
	return c.entry(from, to, st.Mode().Type(), followed+1)
}

// above reports whether a path from the recipe is one of its parent folders.
func above(p string) bool { return strings.Trim(p, "./") == "" }

func (c *copier) file(from, to string) (err error) {
	r, err := c.from.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	st, err := r.Stat()
	if err != nil {
		return err
	}
	if c.bytes += st.Size(); c.bytes > maxRecipe {
		return fault.New(fault.Refused, "copy "+layout.SaltDir, "it is larger than %d GiB", maxRecipe>>30).
			WithPos(fault.Pos{File: path.Join(layout.SaltDir, from)}).WithHint("%s is for the files that deploy the project; keep data elsewhere", layout.SaltDir)
	}
	mode := modeOf(st.Mode())
	w, err := os.OpenFile(filepath.Join(c.to, to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	n, err := io.Copy(w, io.LimitReader(r, st.Size()+1))
	if err == nil && n > st.Size() {
		err = fmt.Errorf("%s grew while it was copied", from)
	}
	if err != nil {
		return err
	}
	return w.Chmod(mode) // whatever the umask is
}

// modeOf returns the mode that the copy of a file has.
func modeOf(mode fs.FileMode) fs.FileMode {
	if mode&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// Files returns the copy as a file system; nil if there is none. Targets of links outside it are not visible.
func (r *Recipe) Files() (fs.FS, error) {
	if r == nil {
		return nil, nil
	}
	return vfs.Beneath(r.dir)
}

// Root returns the copy as a file root that replaces the working copy's recipe.
func (r *Recipe) Root() fileroot.Root {
	root := fileroot.OnDisk(r.dir)
	root.Public = r.live
	return root
}

// Script returns the path from which an executable of the recipe is run.
func (r *Recipe) Script(file string) string { return filepath.Join(r.dir, filepath.FromSlash(file)) }

// Own finds the project's own file for a procedure.
func (r *Recipe) Own(procedure string) (s Step, own bool, err error) {
	files, err := r.Files()
	if err != nil || files == nil {
		return s, false, err
	}
	return OwnFile(files, procedure)
}

// Hooks returns the recipe's executables for a point.
func (r *Recipe) Hooks(p hooks.Point) ([]hooks.Hook, error) {
	files, err := r.Files()
	if err != nil || files == nil {
		return nil, err
	}
	dir := path.Join(layout.HooksDir, string(p)+".d")
	names, err := hooks.Executables(files, dir)
	if err != nil {
		return nil, err
	}
	var out []hooks.Hook
	for _, name := range names {
		file := path.Join(dir, name)
		out = append(out, hooks.Hook{Name: name, Path: r.Script(file), File: path.Join(layout.SaltDir, file)})
	}
	return out, nil
}

// HookSteps returns the executables for all points, as steps that are never run as such: to check them.
func HookSteps(files fs.FS) (out []Step, err error) {
	for _, p := range hooks.Points() {
		dir := path.Join(layout.HooksDir, string(p)+".d")
		names, err := hooks.Executables(files, dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out = append(out, Step{Name: name, File: path.Join(dir, name), Script: true})
		}
	}
	return out, nil
}

// RunsAround reports whether a recipe contains anything that runs while it is replaced: hooks, or its own procedures.
func RunsAround(files fs.FS) (bool, error) {
	if files == nil {
		return false, nil
	}
	if Has(files, layout.HooksDir) {
		return true, nil
	}
	own, err := OwnIn(files)
	return len(own) > 0, err
}

// ReadsArchive reports whether something of a recipe may read the archive of its deployment by path: hooks, procedures of the project's own, or a
// file that names its folder (cfg.current_archive_dir, CORPUS_ARCHIVE_DIR, archives/).
func ReadsArchive(files fs.FS) bool {
	if files == nil {
		return false
	}
	if runs, err := RunsAround(files); err != nil || runs {
		return true
	}
	return slices.ContainsFunc(TextsOf(files), func(text string) bool {
		text = strings.ToLower(text)
		return strings.Contains(text, "archive_dir") || strings.Contains(text, "archives/")
	})
}

// Drop removes the private copies of a deployment that has ended.
func Drop(s layout.State, id project.ID) error {
	if id == "" || strings.ContainsAny(string(id), "/.") {
		return nil
	}
	return os.RemoveAll(s.RecipesOf(string(id)))
}
