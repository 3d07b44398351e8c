package permissions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Reset is what projects call as salt['mc_locations.settings']().resetperms: one owner, group and mode for folders
// and one for files, below some paths. Symbolic links are neither followed nor changed, and excluded paths are skipped with everything
// below them. It sets no POSIX ACLs.
// Source: makina-states, _scripts/reset-perms.py.
type Reset struct {
	UID, GID          int
	DirMode, FileMode uint32
	Paths             []string
	Excludes          []*regexp.Regexp // matched anywhere in the path
	OneLevel          bool             // the paths themselves and nothing below them
	// Changed is the number of changed paths, after Run.
	Changed int
}

// Run fixes what differs. A path that does not exist is skipped; the error names the first that could not be changed.
func (r *Reset) Run(ctx context.Context) error {
	for _, p := range r.Paths {
		p = filepath.Clean(p)
		dir, err := openParent(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(r.one(ctx, dir, filepath.Base(p), p), dir.Close())
		}
		if err != nil {
			return fault.New(fault.Failed, "reset permissions", "%w", err)
		}
	}
	return nil
}

// openParent opens the folder that holds a path. The caller has more privileges than the owners of the folders on the path.
func openParent(path string) (vfs.Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return vfs.OpenTrusted(filepath.Dir(path))
}

func (r *Reset) one(ctx context.Context, d vfs.Dir, name, path string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	st, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !st.IsDir() && !st.IsRegular() || r.excluded(path) {
		return nil
	}
	mode := r.FileMode
	if st.IsDir() {
		mode = r.DirMode
	}
	owned := int(st.UID) == r.UID && int(st.GID) == r.GID
	if !owned {
		if err := d.Lchown(name, r.UID, r.GID); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if !owned || st.Perm() != mode {
		if err := d.Chmod(name, mode); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.Changed++
	}
	if !st.IsDir() || r.OneLevel {
		return nil
	}
	sub, err := d.OpenDir(name)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer sub.Close()
	names, err := sub.ReadDir(".")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, n := range names {
		if err := r.one(ctx, sub, n, filepath.Join(path, n)); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reset) excluded(path string) bool {
	for _, e := range r.Excludes {
		if e.MatchString(path) {
			return true
		}
	}
	return false
}

// WriteProgram writes the program that mc_locations.settings names as resetperms: program with the verb reset-perms. It is replaced by a
// rename, and only if it differs.
func WriteProgram(state layout.State, program string) error {
	text := "#!/bin/sh\nexec '" + strings.ReplaceAll(program, "'", `'\''`) + "' reset-perms \"$@\"\n"
	path := state.ResetPerms()
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(text), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil && !errors.Is(err, syscall.EPERM) {
		return err
	}
	return os.Rename(tmp, path)
}
