package worktree

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

func TestTree(t *testing.T) {
	r := newRepo(t)
	r.write(".salt/top.sls", "top")
	r.write(".salt/files/a.txt", "a")
	r.write("shared/b.txt", "b")
	r.write("run", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(r.src, "run"), 0o755))
	for name, to := range map[string]string{
		".salt/b": "../shared/b.txt", ".salt/dir": "../shared", ".salt/abs": "/etc/passwd", ".salt/out": "../../../etc/passwd", ".salt/loop": "loop",
		".salt/via": "dir/b.txt", ".salt/top": "../shared/../.salt/./top.sls",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(r.src, name)))
	}
	one := r.commit("one")
	ctx := context.Background()
	all, err := Tree(ctx, r.objs, one, "")
	require.NoError(t, err)
	salt, err := Tree(ctx, r.objs, one, ".salt")
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
	_, err = Tree(ctx, r.objs, one, "none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Tree(ctx, r.objs, one, "run")
	require.Error(t, err)
	_, err = Tree(ctx, r.objs, one, "../x")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = Tree(ctx, r.objs, plumbing.NewHash(strings.Repeat("1", 40)), "")
	require.Error(t, err)
	ended, cancel := context.WithCancel(ctx)
	late, err := Tree(ended, r.objs, one, "")
	require.NoError(t, err)
	cancel()
	_, err = fs.ReadFile(late, "run")
	require.ErrorIs(t, err, context.Canceled)

	// The standard library's own judge, on a tree whose links all lead somewhere.
	for _, n := range []string{"abs", "out", "loop"} {
		require.NoError(t, os.Remove(filepath.Join(r.src, ".salt", n)))
	}
	whole, err := Tree(ctx, r.objs, r.commit("two"), ".salt")
	require.NoError(t, err)
	require.NoError(t, fstest.TestFS(whole, "top.sls", "files/a.txt"))
}

func TestDiffAgreesWithGit(t *testing.T) {
	r := newRepo(t)
	for _, n := range []string{"a", "a.b", "dir/x", "dir/sub/y", "type", "mode", "swap/in"} {
		r.write(n, n)
	}
	one := r.commit("one")
	r.write("a", "changed")
	r.write("dir/new", "n")
	r.write("other/sub/z", "z")
	require.NoError(t, os.RemoveAll(filepath.Join(r.src, "dir/sub")))
	require.NoError(t, os.Remove(filepath.Join(r.src, "type")))
	require.NoError(t, os.Symlink("a", filepath.Join(r.src, "type")))
	require.NoError(t, os.Chmod(filepath.Join(r.src, "mode"), 0o755))
	require.NoError(t, os.RemoveAll(filepath.Join(r.src, "swap")))
	r.write("swap", "now a file")
	two := r.commit("two")
	check := func(old, next plumbing.Hash, gitOld string) {
		t.Helper()
		c, err := Diff(context.Background(), r.objs, old, next, 0)
		require.NoError(t, err)
		var b strings.Builder
		for _, p := range c.Paths {
			b.WriteString(string(p.Status) + "\t" + p.Path + "\n")
		}
		require.Equal(t, git(t, r.src, "diff-tree", "-r", "--no-renames", "--name-status", gitOld, next.String()), strings.TrimSuffix(b.String(), "\n"))
		require.Equal(t, len(c.Paths), c.Files())
	}
	check(one, two, one.String())
	check(two, one, two.String())
	check(one, one, one.String())
	check(plumbing.ZeroHash, two, gitIn(t, r.src, nil, "hash-object", "-t", "tree", "/dev/null"))
	c, err := Diff(context.Background(), r.objs, one, two, 2)
	require.NoError(t, err)
	require.Len(t, c.Paths, 2)
	require.Equal(t, 8, c.Files())
}

func TestDescribeAndCompare(t *testing.T) {
	r := newRepo(t)
	r.write("a", "1")
	one := r.commit("one\nline\n\nbody")
	f, err := Describe(r.objs, one)
	require.NoError(t, err)
	require.Equal(t, "one line", f.Subject)
	require.Equal(t, "Ann Author", f.Author.Name)
	require.Equal(t, "ann@example.org", f.Author.Email)
	require.Equal(t, "2023-11-14T23:43:20+01:30", f.Author.When.Format(time.RFC3339))
	require.Equal(t, "Carl", f.Committer.Name)
	git(t, r.src, "tag", "-a", "-m", "t", "v1")
	tagged, err := Describe(r.objs, plumbing.NewHash(git(t, r.src, "rev-parse", "v1")))
	require.NoError(t, err)
	require.Equal(t, f, tagged)

	var last plumbing.Hash
	for range 5 {
		last = r.commit("more")
	}
	git(t, r.src, "checkout", "-q", "-b", "side", one.String())
	r.write("side", "s")
	side := r.commit("side")
	git(t, r.src, "merge", "-q", "-m", "merge", "master")
	merged := plumbing.NewHash(git(t, r.src, "rev-parse", "HEAD"))
	git(t, r.src, "checkout", "-q", "--orphan", "alone")
	alone := r.commit("alone")
	for _, c := range []struct {
		name      string
		old, next plumbing.Hash
		want      Advance
	}{
		{"new", plumbing.ZeroHash, last, Advance{Commits: 6, FastForward: true}},
		{"same", last, last, Advance{FastForward: true}},
		{"forward", one, last, Advance{Commits: 5, FastForward: true}},
		{"back", last, one, Advance{Lost: 5}},
		{"aside", last, side, Advance{Commits: 1, Lost: 5}},
		{"merge", last, merged, Advance{Commits: 2, FastForward: true}},
		{"merge of the other", side, merged, Advance{Commits: 6, FastForward: true}},
		{"unrelated", last, alone, Advance{Commits: 1, Lost: 6}},
	} {
		got, err := Compare(context.Background(), r.objs, c.old, c.next)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
	_, err = Compare(context.Background(), r.objs, one, plumbing.NewHash(strings.Repeat("1", 40)))
	require.Error(t, err)
}

func TestWildmatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.c", "a.c", true}, {"*.c", "a.h", false}, {"a/*", "a/b", true}, {"a/*", "a/b/c", false}, {"a/**", "a/b/c", true}, {"a/**", "a", false},
		{"**/b", "b", true}, {"**/b", "x/y/b", true}, {"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"a/**/b", "a/x/c", false},
		{"[!a]x", "bx", true}, {"[!a]x", "ax", false}, {"[", "[", false}, {"[a", "a", false}, {"??", "é", true},
		{strings.Repeat("**/x/", 50) + "y", strings.Repeat("x/", 400) + "z", false},
	} {
		require.Equal(t, c.want, wildmatch(c.pattern, c.name), "%q %q", c.pattern, c.name)
	}
}
