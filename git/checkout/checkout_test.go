package checkout

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/testutil/gittest"
)

func TestFirstAndSecondCheckout(t *testing.T) {
	r := newRepo(t)
	r.durable = true
	r.Write("a", "one\n")
	r.Write("bin/run", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(r.Dir, "bin/run"), 0o755))
	require.NoError(t, os.Symlink("../a", filepath.Join(r.Dir, "bin/link")))
	r.Write("deep/er/and/deeper/x", "x")
	one := r.Commit("first")
	st := r.sync(one)
	require.Equal(t, Stats{Commit: one, Files: 4, Written: 4, Bytes: 4 + 10 + 4 + 1, Touched: []string{"a", "bin/link", "bin/run", "deep/er/and/deeper/x"}}, st)
	r.clean(one)
	require.Equal(t, "master", gittest.Git(t, r.dir, "symbolic-ref", "--short", "HEAD"))
	require.Equal(t, "first", gittest.Git(t, r.dir, "log", "--format=%s"))
	require.Equal(t, r.Bare(), gittest.Git(t, r.dir, "config", "remote.origin.url"))
	require.Equal(t, "origin/master", gittest.Git(t, r.dir, "rev-parse", "--abbrev-ref", "@{upstream}"))
	gittest.Git(t, r.dir, "fsck", "--strict")

	gittest.WriteFile(t, filepath.Join(r.dir, "venv/bin/python"), "untracked")
	gittest.WriteFile(t, filepath.Join(r.dir, "deep/er/built.css"), "untracked")
	r.Write("a", "two\n")
	r.Write("new/file", "n")
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir, "deep/er/and")))
	two := r.Commit("second")
	st = r.sync(two)
	require.Equal(t, Stats{Commit: two, Previous: one, Files: 4, Written: 2, Removed: 1, Unchanged: 2, Untracked: 2, Bytes: 5, Touched: []string{"a", "new/file"}}, st)
	require.NoDirExists(t, filepath.Join(r.dir, "deep/er/and"))
	require.FileExists(t, filepath.Join(r.dir, "deep/er/built.css"))
	require.FileExists(t, filepath.Join(r.dir, "venv/bin/python"))
	require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "venv")))
	require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "deep")))
	r.clean(two)
	require.Contains(t, gittest.Git(t, r.dir, "reflog"), "deploy: "+two.String())

	// Back, as a rollback or a forced push does.
	st = r.sync(one)
	require.Equal(t, 2, st.Written)
	require.Equal(t, 1, st.Removed)
	r.clean(one)
	require.Equal(t, Stats{Commit: one, Previous: one, Files: 4, Unchanged: 4, Touched: []string{}}, r.sync(one))
}

// Random histories with every change of type, against git's own checkout.
func TestRandomHistories(t *testing.T) {
	for seed := range int64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewSource(seed))
			r := newRepo(t)
			var commits []plumbing.Hash
			for range 12 {
				for range 6 {
					mutate(t, r.Dir, rnd)
				}
				commits = append(commits, r.Commit("c"))
			}
			if seed%2 == 0 {
				r.Git("gc", "-q")
			}
			for range 12 {
				c := commits[rnd.Intn(len(commits))]
				st := r.sync(c)
				require.Zero(t, st.LocalChanges.Count, "%v", st)
				require.Zero(t, st.Overwritten.Count)
				require.Zero(t, st.Untracked)
				require.Equal(t, st.Files, st.Written+st.Unchanged)
				r.clean(c)
			}
		})
	}
}

// mutate makes one random path below dir a file, an executable, a link, or nothing.
func mutate(t *testing.T, dir string, rnd *rand.Rand) {
	p := dir
	for range 1 + rnd.Intn(3) {
		if fi, err := os.Lstat(p); err == nil && !fi.IsDir() {
			require.NoError(t, os.Remove(p))
		}
		require.NoError(t, os.MkdirAll(p, 0o755))
		p = filepath.Join(p, []string{"a", "b", "a.x", "a-", "c0"}[rnd.Intn(5)])
	}
	require.NoError(t, os.RemoveAll(p))
	switch rnd.Intn(6) {
	case 0:
	case 1:
		require.NoError(t, os.Symlink([]string{"a", "../b", "/etc/passwd", "none"}[rnd.Intn(4)], p))
	case 2:
		require.NoError(t, os.WriteFile(p, []byte{byte('0' + rnd.Intn(3))}, 0o755))
	default:
		require.NoError(t, os.WriteFile(p, fmt.Appendf(nil, "%d\n", rnd.Intn(9)), 0o644))
	}
}

func TestLocalChangesAreOverwrittenAndCounted(t *testing.T) {
	r := newRepo(t)
	for _, n := range []string{"same", "edited", "deleted", "dir/x", "linked", "gone", "chmod"} {
		r.Write(n, n+"\n")
	}
	require.NoError(t, os.Chmod(filepath.Join(r.Dir, "chmod"), 0o755))
	one := r.Commit("one")
	r.sync(one)
	gittest.WriteFile(t, filepath.Join(r.dir, "edited"), "EDITED\n") // same size
	gittest.WriteFile(t, filepath.Join(r.dir, "gone"), "changed, then removed by the commit")
	require.NoError(t, os.Remove(filepath.Join(r.dir, "deleted")))
	require.NoError(t, os.Remove(filepath.Join(r.dir, "linked")))
	require.NoError(t, os.Symlink("same", filepath.Join(r.dir, "linked")))
	require.NoError(t, os.Chmod(filepath.Join(r.dir, "chmod"), 0o644))
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir, "gone")))
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(r.dir, "same"), later, later))
	two := r.Commit("two")
	st := r.sync(two)
	require.Equal(t, Paths{5, []string{"chmod", "deleted", "edited", "gone", "linked"}}, st.LocalChanges)
	require.Equal(t, 4, st.Written)
	require.Equal(t, 1, st.Removed)
	r.clean(two)
	require.Zero(t, r.sync(two).LocalChanges.Count)
}

func TestUntrackedInTheWay(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	one := r.Commit("one")
	r.sync(one)
	r.Write("file", "tracked")
	r.Write("dir/in/file", "tracked")
	r.Write("equal", "equal")
	two := r.Commit("two")
	gittest.WriteFile(t, filepath.Join(r.dir, "file"), "untracked")
	gittest.WriteFile(t, filepath.Join(r.dir, "dir"), "an untracked file where a folder must be")
	gittest.WriteFile(t, filepath.Join(r.dir, "equal"), "equal")
	st := r.sync(two)
	require.Equal(t, Paths{2, []string{"dir", "file"}}, st.Overwritten)
	require.Equal(t, 2, st.Written)
	r.clean(two)

	r.Write("thing", "a file")
	three := r.Commit("three")
	gittest.WriteFile(t, filepath.Join(r.dir, "thing/uploads/photo"), "precious")
	r.Write("a", "changed")
	four := r.Commit("four")
	before := manifest(t, r.dir)
	_, err := Sync(context.Background(), r.request(four))
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "thing/uploads/photo")
	require.NotEmpty(t, fault.HintOf(err))
	require.Equal(t, before, manifest(t, r.dir), "nothing was written")
	require.NoFileExists(t, filepath.Join(r.dir, ".git/index.lock"))
	// Empty folders are not kept.
	require.NoError(t, os.Remove(filepath.Join(r.dir, "thing/uploads/photo")))
	r.sync(three)
	r.clean(three)
	r.sync(four)
	r.clean(four)
}

// A tracked file that somebody replaced by a folder with untracked files is in the way; a folder with tracked files only is not.
func TestFolderBecomesFile(t *testing.T) {
	r := newRepo(t)
	r.Write("x/a", "a")
	r.Write("x/b/c", "c")
	one := r.Commit("one")
	r.sync(one)
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir, "x")))
	r.Write("x", "file")
	two := r.Commit("two")
	gittest.WriteFile(t, filepath.Join(r.dir, "x/b/__pycache__/m.pyc"), "kept")
	_, err := Sync(context.Background(), r.request(two))
	require.ErrorContains(t, err, "x/b/__pycache__/m.pyc")
	require.FileExists(t, filepath.Join(r.dir, "x/a"))
	require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "x/b/__pycache__")))
	st := r.sync(two)
	require.Equal(t, 2, st.Removed)
	r.clean(two)
	// And back, with the file replaced by a link to a folder elsewhere.
	outside := t.TempDir()
	require.NoError(t, os.Remove(filepath.Join(r.dir, "x")))
	require.NoError(t, os.Symlink(outside, filepath.Join(r.dir, "x")))
	st = r.sync(one)
	require.Equal(t, 1, st.LocalChanges.Count)
	r.clean(one)
	require.Empty(t, manifest(t, outside))
}

// Somebody swaps a tracked folder for a link to a place outside: nothing is written, read or removed there.
func TestNeverFollowsLinks(t *testing.T) {
	r := newRepo(t)
	r.Write("dir/a", "a")
	r.Write("dir/b", "b")
	one := r.Commit("one")
	r.sync(one)
	outside := t.TempDir()
	gittest.WriteFile(t, filepath.Join(outside, "a"), "theirs")
	gittest.WriteFile(t, filepath.Join(outside, "b"), "theirs")
	before := manifest(t, outside)
	require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "dir")))
	require.NoError(t, os.Symlink(outside, filepath.Join(r.dir, "dir")))
	r.Write("dir/a", "changed")
	require.NoError(t, os.Remove(filepath.Join(r.Dir, "dir/b")))
	two := r.Commit("two")
	st := r.sync(two)
	require.Equal(t, 2, st.LocalChanges.Count+st.Overwritten.Count)
	require.Equal(t, before, manifest(t, outside))
	r.clean(two)

	for name, swap := range map[string]string{".git is a link": ".git", "the index is a link": ".git/index", "refs is a link": ".git/refs"} {
		t.Run(name, func(t *testing.T) {
			there := filepath.Join(t.TempDir(), "there")
			require.NoError(t, os.Rename(filepath.Join(r.dir, swap), there))
			require.NoError(t, os.Symlink(there, filepath.Join(r.dir, swap)))
			_, err := Sync(context.Background(), r.request(one))
			require.Error(t, err)
			require.NoError(t, os.Remove(filepath.Join(r.dir, swap)))
			require.NoError(t, os.Rename(there, filepath.Join(r.dir, swap)))
			r.sync(one)
			r.sync(two)
			r.clean(two)
		})
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(r.dir, link))
	req := r.request(one)
	req.Dir = link
	_, err := Sync(context.Background(), req)
	require.Equal(t, fault.Refused, fault.KindOf(err))
}
