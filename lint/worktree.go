package lint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
)

// worktree is a folder to be committed as git would do it, without changing the repository that it may be the work tree of: index and
// objects are written to tmp.
type worktree struct {
	dir, tmp string
	env      []string
	// check checks the pack as the server checks that of a push; what it refuses is reported.
	check   func(pack io.Reader) error
	refused error
	// untracked are the files below .salt that git does not track yet; none if the folder is not a work tree.
	untracked []string
}

// commitTo stores all files of the folder that git does not ignore as a commit without parents in the bare repository to.
func (w *worktree) commitTo(ctx context.Context, to string) (project.Commit, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return "", fault.New(fault.Refused, "", "git is not installed").WithHint("what would be pushed is what git adds; install git")
	}
	objects := filepath.Join(w.tmp, "objects")
	if err := os.MkdirAll(objects, 0o700); err != nil {
		return "", err
	}
	env, err := w.repository(ctx, objects)
	if err != nil {
		return "", err
	}
	if _, err := w.git(ctx, env, nil, "add", "--all"); err != nil {
		return "", err
	}
	tree, err := w.git(ctx, env, nil, "write-tree")
	if err != nil {
		return "", err
	}
	commit, err := w.git(ctx, env, nil, "commit-tree", "-m", "lint", tree)
	if err != nil {
		return "", err
	}
	pack, err := w.git(ctx, env, strings.NewReader(commit+"\n"), "pack-objects", "--revs", "-q", filepath.Join(w.tmp, "pack"))
	if err != nil {
		return "", err
	}
	file, err := os.Open(filepath.Join(w.tmp, "pack-"+pack+".pack"))
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := w.check(file); fault.KindOf(err) == fault.Refused {
		w.refused = err // other problems are reported, too
	} else if err != nil {
		return "", err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := w.git(ctx, w.clean("GIT_DIR="+to), file, "index-pack", "--stdin"); err != nil {
		return "", err
	}
	return project.Commit(commit), nil
}

// repository returns the environment in which git sees the folder: as the work tree that it is, with a copy of its index, or otherwise as the
// work tree of an empty repository.
func (w *worktree) repository(ctx context.Context, objects string) ([]string, error) {
	index := filepath.Join(w.tmp, "index")
	who := []string{"GIT_INDEX_FILE=" + index, "GIT_OBJECT_DIRECTORY=" + objects, "GIT_WORK_TREE=" + w.dir,
		"GIT_AUTHOR_NAME=lint", "GIT_AUTHOR_EMAIL=lint@localhost", "GIT_COMMITTER_NAME=lint", "GIT_COMMITTER_EMAIL=lint@localhost"}
	top, err := w.git(ctx, w.clean(), nil, "rev-parse", "--show-prefix", "--absolute-git-dir", "--git-path", "objects", "--git-path", "index")
	lines := strings.Split(top, "\n")
	if err != nil || len(lines) != 4 || lines[0] != "" { // not a work tree, or a folder within one
		dir := filepath.Join(w.tmp, "repository")
		if _, err := w.git(ctx, w.clean(), nil, "init", "-q", "--bare", dir); err != nil {
			return nil, err
		}
		return w.clean(append(who, "GIT_DIR="+dir)...), nil
	}
	at := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(w.dir, p)
	}
	data, err := os.ReadFile(at(lines[3]))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if err := os.WriteFile(index, data, 0o600); err != nil {
			return nil, err
		}
	}
	env := w.clean(append(who, "GIT_DIR="+lines[1], "GIT_ALTERNATE_OBJECT_DIRECTORIES="+at(lines[2]))...)
	list, err := w.git(ctx, env, nil, "ls-files", "-z", "--others", "--exclude-standard", "--", layout.SaltDir+"/")
	if err != nil {
		return nil, err
	}
	w.untracked = strings.FieldsFunc(list, func(r rune) bool { return r == 0 })
	return env, nil
}

// clean returns the environment without git's own variables, and with more.
func (w *worktree) clean(more ...string) []string {
	var out []string
	for _, v := range w.env {
		if !strings.HasPrefix(v, "GIT_") {
			out = append(out, v)
		}
	}
	return append(out, more...)
}

// git runs git in the folder and returns its output, without the last line feed.
func (w *worktree) git(ctx context.Context, env []string, in io.Reader, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // words of this file
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = w.dir, env, in, &out, &errs
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(errs.String()); text != "" {
			err = errors.New(text)
		}
		return "", fault.New(fault.Failed, "git "+args[0], "%w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
