package worktree

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
)

// git runs the real git, the oracle of these tests.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return gitIn(t, dir, nil, args...)
}

func gitIn(t testing.TB, dir string, in []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=Ann Author", "GIT_AUTHOR_EMAIL=ann@example.org",
		"GIT_COMMITTER_NAME=Carl", "GIT_COMMITTER_EMAIL=carl@example.org", "GIT_AUTHOR_DATE=1700000000 +0130", "GIT_COMMITTER_DATE=1700000060 +0000", "GIT_OPTIONAL_LOCKS=0")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "git %s: %s", strings.Join(args, " "), errs.String())
	return strings.TrimSuffix(out.String(), "\n")
}

// repo is a source repository with a work tree, its store, and a working copy to sync to.
type repo struct {
	t    testing.TB
	src  string
	dir  string
	objs *store.DB

	durable bool
}

func newRepo(t testing.TB) *repo {
	t.Helper()
	top := t.TempDir()
	r := &repo{t: t, src: filepath.Join(top, "src"), dir: filepath.Join(top, "project")}
	require.NoError(t, os.Mkdir(r.src, 0o755))
	git(t, r.src, "init", "-q", "-b", "master")
	var err error
	r.objs, err = store.Open(r.bare(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.objs.Close() })
	return r
}

func (r *repo) bare() string { return filepath.Join(r.src, ".git") }

func (r *repo) write(name, text string) {
	r.t.Helper()
	write(r.t, filepath.Join(r.src, name), text)
}

func write(t testing.TB, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// commit commits everything in src.
func (r *repo) commit(msg string) plumbing.Hash {
	r.t.Helper()
	git(r.t, r.src, "add", "-A")
	git(r.t, r.src, "commit", "-q", "--allow-empty", "-m", msg)
	return plumbing.NewHash(git(r.t, r.src, "rev-parse", "HEAD"))
}

func (r *repo) request(c plumbing.Hash) Request {
	// Durability is tested once, in TestFirstAndSecondCheckout: syncfs waits for whatever else the machine writes.
	return Request{Objects: r.objs, Repo: r.bare(), Commit: c, Dir: r.dir, Branch: "refs/heads/master", NoSync: !r.durable}
}

func (r *repo) sync(c plumbing.Hash) Stats {
	r.t.Helper()
	st, err := Sync(context.Background(), r.request(c))
	require.NoError(r.t, err)
	return st
}

// clean proves with git that the working copy is what a checkout of c is.
func (r *repo) clean(c plumbing.Hash) {
	r.t.Helper()
	require.Empty(r.t, git(r.t, r.dir, "status", "--porcelain", "--untracked-files=no"))
	require.Equal(r.t, c.String(), git(r.t, r.dir, "rev-parse", "HEAD"))
	require.Equal(r.t, git(r.t, r.src, "rev-parse", c.String()+"^{tree}"), git(r.t, r.dir, "write-tree"))
	want := r.fresh(c)
	require.Equal(r.t, manifest(r.t, want), manifest(r.t, r.dir))
}

// fresh is git's own checkout of c.
func (r *repo) fresh(c plumbing.Hash) string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "fresh")
	git(r.t, r.src, "clone", "-q", "-s", "-n", r.bare(), dir)
	git(r.t, dir, "checkout", "-q", c.String())
	return dir
}

// manifest lists type, executable bit and content of everything but .git.
func manifest(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		if err != nil || rel == "." {
			return err
		}
		if rel == ".git" {
			return filepath.SkipDir
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			fmt.Fprintf(&b, "l %q -> %q\n", rel, to)
			return err
		case fi.IsDir():
			fmt.Fprintf(&b, "d %q\n", rel)
		default:
			data, err := os.ReadFile(p)
			fmt.Fprintf(&b, "f %q %v %q\n", rel, fi.Mode()&0o100 != 0, data)
			return err
		}
		return nil
	}))
	return b.String()
}
