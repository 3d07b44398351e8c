package tree

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

func TestTree(t *testing.T) {
	r, objs := newStore(t)
	r.Write(".salt/top.sls", "top")
	r.Write(".salt/files/a.txt", "a")
	r.Write("shared/b.txt", "b")
	r.Write("run", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(r.Dir, "run"), 0o755))
	for name, to := range map[string]string{
		".salt/b": "../shared/b.txt", ".salt/dir": "../shared", ".salt/abs": "/etc/passwd", ".salt/out": "../../../etc/passwd", ".salt/loop": "loop",
		".salt/via": "dir/b.txt", ".salt/top": "../shared/../.salt/./top.sls",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(r.Dir, name)))
	}
	one := r.Commit("one")
	ctx := context.Background()
	all, err := FS(ctx, objs, one, "")
	require.NoError(t, err)
	salt, err := FS(ctx, objs, one, ".salt")
	require.NoError(t, err)
	for name, want := range map[string]string{"top.sls": "top", "files/a.txt": "a", "b": "b", "dir/b.txt": "b", "via": "b", "top": "top"} {
		got, err := fs.ReadFile(salt, name)
		require.NoError(t, err, name)
		require.Equal(t, want, string(got))
		got[0] = '!' // the bytes are the caller's
		fi, err := fs.Stat(salt, name)
		require.NoError(t, err)
		require.Equal(t, int64(len(want)), fi.Size())
		require.True(t, fi.Mode().IsRegular())
		require.True(t, fi.ModTime().Equal(time.Unix(1700000060, 0)))
	}
	for _, name := range []string{"abs", "out", "nothing", "top.sls/x", "files/nothing"} {
		_, err := fs.ReadFile(salt, name)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
	}
	_, err = fs.ReadFile(salt, "loop")
	require.ErrorIs(t, err, errLinks)
	for _, name := range []string{"../run", "/run", "", "a//b"} {
		_, err := fs.ReadFile(salt, name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
	}
	fi, err := fs.Stat(all, "run")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), fi.Mode())
	list, err := fs.ReadDir(all, ".")
	require.NoError(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{".salt", "run", "shared"}, names)
	_, err = FS(ctx, objs, one, "none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = FS(ctx, objs, one, "run")
	require.Error(t, err)
	_, err = FS(ctx, objs, one, "../x")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = FS(ctx, objs, plumbing.NewHash(strings.Repeat("1", 40)), "")
	require.Error(t, err)
	ended, cancel := context.WithCancel(ctx)
	late, err := FS(ended, objs, one, "")
	require.NoError(t, err)
	cancel()
	_, err = fs.ReadFile(late, "run")
	require.ErrorIs(t, err, context.Canceled)

	// The standard library's own test, on a tree whose links all resolve.
	for _, n := range []string{"abs", "out", "loop"} {
		require.NoError(t, os.Remove(filepath.Join(r.Dir, ".salt", n)))
	}
	whole, err := FS(ctx, objs, r.Commit("two"), ".salt")
	require.NoError(t, err)
	require.NoError(t, fstest.TestFS(whole, "top.sls", "files/a.txt"))
}

func TestDiffAgreesWithGit(t *testing.T) {
	r, objs := newStore(t)
	for _, n := range []string{"a", "a.b", "dir/x", "dir/sub/y", "type", "mode", "swap/in"} {
		r.Write(n, n)
	}
	one := r.Commit("one")
	r.Write("a", "changed")
	r.Write("dir/new", "n")
	r.Write("other/sub/z", "z")
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir, "dir/sub")))
	require.NoError(t, os.Remove(filepath.Join(r.Dir, "type")))
	require.NoError(t, os.Symlink("a", filepath.Join(r.Dir, "type")))
	require.NoError(t, os.Chmod(filepath.Join(r.Dir, "mode"), 0o755))
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir, "swap")))
	r.Write("swap", "now a file")
	two := r.Commit("two")
	check := func(old, next plumbing.Hash, gitOld string) {
		t.Helper()
		c, err := Diff(context.Background(), objs, old, next, 0)
		require.NoError(t, err)
		var b strings.Builder
		for _, p := range c.Paths {
			b.WriteString(string(p.Status) + "\t" + p.Path + "\n")
		}
		require.Equal(t, r.Git("diff-tree", "-r", "--no-renames", "--name-status", gitOld, next.String()), strings.TrimSuffix(b.String(), "\n"))
		require.Equal(t, len(c.Paths), c.Files())
	}
	check(one, two, one.String())
	check(two, one, two.String())
	check(one, one, one.String())
	check(plumbing.ZeroHash, two, gittest.GitIn(t, r.Dir, nil, "hash-object", "-t", "tree", "/dev/null"))
	c, err := Diff(context.Background(), objs, one, two, 2)
	require.NoError(t, err)
	require.Len(t, c.Paths, 2)
	require.Equal(t, 8, c.Files())
}
