package checkout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
	"corpus-git/git/tree"
	"corpus-git/internal/testutil/gittest"
)

// library is a second repository, and the first one's module for it at vendor/lib.
func library(t *testing.T) (commit func(files map[string]string) tree.Submodule) {
	dir := filepath.Join(t.TempDir(), "lib")
	require.NoError(t, os.Mkdir(dir, 0o755))
	gittest.Git(t, dir, "init", "-q")
	db, err := store.Open(filepath.Join(dir, ".git"), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return func(files map[string]string) tree.Submodule {
		for name, text := range files {
			path := filepath.Join(dir, name)
			if text == "" {
				require.NoError(t, os.Remove(path))
				continue
			}
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		gittest.Git(t, dir, "add", "-A")
		gittest.Git(t, dir, "commit", "-q", "-m", "lib")
		return tree.Submodule{Path: "vendor/lib", Name: "lib", Commit: plumbing.NewHash(gittest.Git(t, dir, "rev-parse", "HEAD")), Objects: db, Repo: filepath.Join(dir, ".git")}
	}
}

// gitlink makes a commit that names a module.
func (r *repo) gitlink(m tree.Submodule) plumbing.Hash {
	r.Write(".gitmodules", "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../lib\n")
	r.Git("add", ".gitmodules")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+m.Commit.String()+","+m.Path)
	r.Git("commit", "-q", "--allow-empty", "-m", "module")
	return plumbing.NewHash(r.Git("rev-parse", "HEAD"))
}

func TestSubmodule(t *testing.T) {
	r := newRepo(t)
	lib := library(t)
	r.Write("a", "a")
	r.Commit("one")
	m := lib(map[string]string{"x": "1\n", "dir/y": "y\n"})
	one := r.gitlink(m)
	sync := func(c plumbing.Hash, m ...tree.Submodule) Stats {
		q := r.request(c)
		q.Modules = m
		st, err := Sync(t.Context(), q)
		require.NoError(t, err)
		return st
	}
	clean := func(c plumbing.Hash) {
		require.Empty(t, gittest.Git(t, r.dir, "status", "--porcelain"))
		require.Equal(t, c.String(), gittest.Git(t, r.dir, "rev-parse", "HEAD"))
	}
	at := func(name string) string { return filepath.Join(r.dir, "vendor/lib", name) }
	status := func() string { return gittest.Git(t, r.dir, "submodule", "status") }

	st := sync(one, m)
	require.Equal(t, 5, st.Written) // a, .gitmodules, the folder, x and dir/y
	require.Empty(t, st.Notes)
	clean(one)
	require.True(t, strings.HasPrefix(status(), " "+m.Commit.String()+" vendor/lib"), status())

	// The same once more writes nothing.
	st = sync(one, m)
	require.Zero(t, st.Written+st.Removed)

	// Changed on the machine: the deployment wins, and reports it; what git does not track stays.
	require.NoError(t, os.WriteFile(at("x"), []byte("mine\n"), 0o644))
	require.NoError(t, os.WriteFile(at("upload"), []byte("u"), 0o644))
	st = sync(one, m)
	require.Equal(t, []string{"vendor/lib/x"}, st.LocalChanges.First)
	require.FileExists(t, at("upload"))

	// Another commit: what differs is written.
	m2 := lib(map[string]string{"x": "2\n", "dir/y": "", "z": "z\n"})
	two := r.gitlink(m2)
	st = sync(two, m2)
	require.Equal(t, 2, st.Written)
	require.Equal(t, 1, st.Removed)
	require.NoFileExists(t, at("dir/y"))
	require.NoError(t, os.Remove(at("upload")))
	clean(two)

	// A tree contains its files, also through links.
	tree, err := tree.FSWith(t.Context(), r.objs, two, "", []tree.Submodule{m2})
	require.NoError(t, err)
	f, err := tree.Open("vendor/lib/x")
	require.NoError(t, err)
	require.NoError(t, f.Close())

	// Its folder is swapped for a link to somewhere else: nothing is written there.
	outside := t.TempDir()
	require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "vendor")))
	require.NoError(t, os.MkdirAll(filepath.Join(outside, "lib"), 0o755))
	require.NoError(t, os.Symlink(outside, filepath.Join(r.dir, "vendor")))
	sync(two, m2)
	list, err := os.ReadDir(filepath.Join(outside, "lib"))
	require.NoError(t, err)
	require.Empty(t, list)
	clean(two)

	// What "git submodule update" left gets its own folder.
	require.NoError(t, os.RemoveAll(at(".git")))
	require.NoError(t, os.WriteFile(at(".git"), []byte("gitdir: ../../.git/modules/lib\n"), 0o644))
	sync(two, m2)
	clean(two)

	// Without it: an empty folder, and a note.
	st = sync(two)
	require.Contains(t, strings.Join(st.Notes, "\n"), "submodules left as empty folders: vendor/lib")
	list, err = os.ReadDir(at(""))
	require.NoError(t, err)
	require.Empty(t, list)
	clean(two)

	// A submodule that somebody else cloned there is left alone.
	gittest.Git(t, r.dir, "-c", "protocol.file.allow=always", "clone", "-q", filepath.Dir(m2.Repo), at("")+"/")
	sync(two)
	require.FileExists(t, at("x"))
}
