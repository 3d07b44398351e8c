package checkout

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
	"corpus-git/internal/testutil/gittest"
)

// repo is a source repository with a work tree, its store, and a working copy to sync to.
type repo struct {
	*gittest.Repo
	dir  string
	objs *store.DB

	durable bool
}

func newRepo(t testing.TB) *repo {
	t.Helper()
	r := &repo{Repo: gittest.NewRepo(t)}
	r.dir = filepath.Join(filepath.Dir(r.Dir), "project")
	var err error
	r.objs, err = store.Open(r.Bare(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.objs.Close() })
	return r
}

func (r *repo) request(c plumbing.Hash) Request {
	// Durability is tested once, in TestFirstAndSecondCheckout: syncfs waits for anything else that the machine writes.
	return Request{Objects: r.objs, Repo: r.Bare(), Commit: c, Dir: r.dir, Branch: "refs/heads/master", NoSync: !r.durable}
}

func (r *repo) sync(c plumbing.Hash) Stats {
	r.T.Helper()
	st, err := Sync(context.Background(), r.request(c))
	require.NoError(r.T, err)
	return st
}

// clean proves with git that the working copy is what a checkout of c is.
func (r *repo) clean(c plumbing.Hash) {
	r.T.Helper()
	require.Empty(r.T, gittest.Git(r.T, r.dir, "status", "--porcelain", "--untracked-files=no"))
	require.Equal(r.T, c.String(), gittest.Git(r.T, r.dir, "rev-parse", "HEAD"))
	require.Equal(r.T, r.Git("rev-parse", c.String()+"^{tree}"), gittest.Git(r.T, r.dir, "write-tree"))
	want := r.fresh(c)
	require.Equal(r.T, manifest(r.T, want), manifest(r.T, r.dir))
}

// fresh is git's own checkout of c.
func (r *repo) fresh(c plumbing.Hash) string {
	r.T.Helper()
	dir := filepath.Join(r.T.TempDir(), "fresh")
	r.Git("clone", "-q", "-s", "-n", r.Bare(), dir)
	gittest.Git(r.T, dir, "checkout", "-q", c.String())
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
