package checkout

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/git/index"
	"corpus-git/git/object"
	"corpus-git/git/tree"
	"corpus-git/internal/testutil/gittest"
	"corpus-git/internal/vfs"
)

// sides lists a working copy for a checkout of c in both ways, collapsed if possible, and does nothing.
func (r *repo) sides(c plumbing.Hash, seen *vfs.Snapshot) (collapsed, whole *planner, ok bool) {
	r.T.Helper()
	_, g, in, end := r.open()
	defer end()
	to, err := tree.ReadCommit(r.objs, c)
	require.NoError(r.T, err)
	encoded := func(collapse bool) (*planner, []byte) {
		p := &planner{ctx: context.Background(), objs: r.objs, snapshot: seen}
		trees := newTreeLister(context.Background(), r.objs, 2, 0)
		old := p.begin(g, in, trees, to.Tree)
		if !collapse {
			old = p.expand(g, in)
		}
		next, err := p.lists(trees, old, to.Tree)
		require.NoError(r.T, err)
		require.Equal(r.T, to.Tree, next.tree.Hash)
		require.Equal(r.T, next.tree.Count, files(next.entries))
		var b bytes.Buffer
		require.NoError(r.T, next.write(func(parts [][]byte) error {
			for _, part := range parts {
				b.Write(part)
			}
			return nil
		}))
		return p, b.Bytes()
	}
	collapsed, a := encoded(true)
	whole, b := encoded(false)
	require.Equal(r.T, b, a)
	return collapsed, whole, collapsed.collapsed
}

// A collapsed list represents everything that the whole one has: nothing that must be examined is in a folder of it.
func requireCollapsed(t *testing.T, collapsed, whole *planner) (folders int) {
	t.Helper()
	for _, side := range [][2][]entry{{collapsed.old, whole.old}, {collapsed.new, whole.new}} {
		rest := side[1]
		for _, e := range side[0] {
			if e.Mode != object.ModeTree {
				require.Equal(t, rest[0], e)
				rest = rest[1:]
				continue
			}
			folders++
			for _, in := range rest[:e.Count()] {
				require.True(t, strings.HasPrefix(in.Path, e.Path))
				require.NotEqual(t, object.ModeGitlink, in.Mode)
				require.False(t, in.attrs)
			}
			require.False(t, anyIn(whole.dirty, int(e.was)-1, int(e.was)-1+e.Count()))
			rest = rest[e.Count():]
		}
		require.Empty(t, rest)
	}
	require.Len(t, collapsed.dirty, len(whole.dirty))
	for i, d := range collapsed.dirty {
		require.Equal(t, whole.old[whole.dirty[i]], collapsed.old[d])
	}
	return folders
}

func TestCollapsedIsWhole(t *testing.T) {
	rnd := rand.New(rand.NewSource(7))
	folders := 0
	for range 4 {
		r := newRepo(t)
		var commits []plumbing.Hash
		for range 5 {
			for range 8 {
				mutate(t, r.Dir, rnd)
			}
			commits = append(commits, r.Commit("c"))
		}
		for range 12 {
			c := commits[rnd.Intn(len(commits))]
			if _, err := os.Lstat(filepath.Join(r.dir, gitDir, "index")); err == nil {
				collapsed, whole, ok := r.sides(c, snapshotOf(t, r.dir))
				require.True(t, ok)
				folders += requireCollapsed(t, collapsed, whole)
				// A snapshot and a scan yield the same.
				looked, ok := r.notSkipped()
				require.True(t, ok)
				var fromSnapshot []string
				for _, i := range whole.dirty {
					fromSnapshot = append(fromSnapshot, whole.old[i].Path)
				}
				require.Equal(t, looked, fromSnapshot)
			}
			require.NoError(t, os.RemoveAll(r.dir))
			r.sync(c)
			r.age(c)
			for range rnd.Intn(3) {
				mutate(t, r.dir, rnd)
			}
		}
	}
	require.Greater(t, folders, 20)
}

// Folders that affect every file below them, or that have a note themselves, are listed.
func TestNeverCollapsed(t *testing.T) {
	r := newRepo(t)
	for _, n := range []string{"top", "plain/a", "plain/sub/b", "attr/a", "attr/deep/b", "link/a"} {
		r.Write(n, n+"\n")
	}
	r.Write("attr/.gitattributes", "# nothing\n")
	one := r.Commit("one")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+one.String()+",link/module")
	r.Git("commit", "-q", "-m", "a gitlink")
	linked := plumbing.NewHash(r.Git("rev-parse", "HEAD"))
	r.Write("top", "two\n")
	two := r.Commit("two")
	r.Write("attr/.gitattributes", "* eol=crlf\n")
	crlf := r.Commit("crlf")
	r.Write("attr/.gitattributes", "* filter=lfs\n")
	r.Write(".gitattributes", "plain/** filter=other\n")
	filtered := r.Commit("filtered")
	r.Write(".gitattributes", "plain/sub/x* filter=other\n")
	r.Write("plain/other/xb", "b")
	narrow := r.Commit("narrow")

	fromSnapshot, untold := *r, *r
	fromSnapshot.dir, untold.dir = filepath.Join(t.TempDir(), "with"), filepath.Join(t.TempDir(), "untold")
	listed := func(c plumbing.Hash) (paths []string) {
		collapsed, whole, ok := fromSnapshot.sides(c, snapshotOf(t, fromSnapshot.dir))
		require.True(t, ok)
		requireCollapsed(t, collapsed, whole)
		for _, e := range collapsed.old {
			paths = append(paths, e.Path)
		}
		return paths
	}
	for _, x := range []*repo{&fromSnapshot, &untold} {
		x.sync(one)
		x.age(one)
	}
	require.Equal(t, []string{"attr/.gitattributes", "attr/a", "attr/deep/", "link/a", "plain/", "top"}, listed(linked))
	for _, c := range []plumbing.Hash{linked, two, linked, crlf, crlf, two, filtered, filtered, one, filtered, narrow, narrow, filtered, crlf, one} {
		req := fromSnapshot.request(c)
		req.Snapshot = snapshotOf(t, fromSnapshot.dir)
		got, err := Sync(context.Background(), req)
		require.NoError(t, err)
		require.Equal(t, untold.sync(c), got)
		for _, x := range []*repo{&fromSnapshot, &untold} {
			require.Empty(t, gittest.Git(t, x.dir, "status", "--porcelain", "--untracked-files=no"))
			require.Equal(t, r.Git("rev-parse", c.String()+"^{tree}"), gittest.Git(t, x.dir, "write-tree"))
			x.age(c)
		}
		if c == linked {
			require.Contains(t, listed(two), "link/module")
		}
	}
}

// Facts that equal those of the index prove nothing for a file that is as new as the index, or that lost its executable bit.
func TestSnapshotAndNotSkipped(t *testing.T) {
	r := newRepo(t)
	for _, n := range []string{"top", "dir/a", "dir/run", "other/x"} {
		r.Write(n, n)
	}
	require.NoError(t, os.Chmod(filepath.Join(r.Dir, "dir/run"), 0o755))
	one := r.Commit("one")
	r.Write("top", "two")
	two := r.Commit("two")
	r.sync(one)
	r.age(one)
	require.NoError(t, os.Chmod(filepath.Join(r.dir, "dir/run"), 0o644))
	_, err := Refresh(context.Background(), r.dir)
	require.NoError(t, err)
	dirty := func() (paths []string) {
		collapsed, whole, ok := r.sides(two, snapshotOf(t, r.dir))
		require.True(t, ok)
		requireCollapsed(t, collapsed, whole)
		for _, i := range whole.dirty {
			paths = append(paths, whole.old[i].Path)
		}
		return paths
	}
	require.Equal(t, []string{"dir/run"}, dirty())
	fi, err := os.Lstat(filepath.Join(r.dir, "other/x"))
	require.NoError(t, err)
	// Of the same size and time, so that only the change time differs.
	var before, after unix.Stat_t
	require.NoError(t, unix.Lstat(filepath.Join(r.dir, "other/x"), &before))
	for after = before; after.Ctim == before.Ctim; { // a file system's clock ticks
		gittest.WriteFile(t, filepath.Join(r.dir, "other/x"), "OTHER/X")
		require.NoError(t, os.Chtimes(filepath.Join(r.dir, "other/x"), fi.ModTime(), fi.ModTime()))
		require.NoError(t, unix.Lstat(filepath.Join(r.dir, "other/x"), &after))
	}
	require.Equal(t, []string{"dir/run", "other/x"}, dirty())
	require.NoError(t, os.Chtimes(filepath.Join(r.dir, gitDir, "index"), fi.ModTime(), fi.ModTime()))
	require.Equal(t, []string{"dir/a", "dir/run", "other/x", "top"}, dirty())
	req := r.request(two)
	req.Snapshot = snapshotOf(t, r.dir)
	st, err := Sync(context.Background(), req)
	require.NoError(t, err)
	require.Equal(t, []string{"dir/run", "other/x"}, st.LocalChanges.First)
	r.clean(two)
}

// A list that would be nearly whole is not collapsed.
func TestCollapsingThatDoesNotPay(t *testing.T) {
	r := newRepo(t)
	for i := range 3 * collapseAnyway {
		r.Write(fmt.Sprintf("one/%03d", i), "x")
	}
	one := r.Commit("one")
	r.Write("one/000", "y")
	two := r.Commit("two")
	r.sync(one)
	r.age(one)
	seen := snapshotOf(t, r.dir)
	_, _, ok := r.sides(two, seen)
	require.False(t, ok)
	_, _, ok = r.sides(one, seen)
	require.True(t, ok)
	req := r.request(two)
	req.Snapshot = seen
	st, err := Sync(context.Background(), req)
	require.NoError(t, err)
	require.Equal(t, 1, st.Written)
	r.clean(two)
}

// A damaged index with intact folder counts, or the other way round, is detected: the counts belong to exactly its bytes.
func TestMemoProvesTheIndex(t *testing.T) {
	r := newRepo(t)
	for _, n := range []string{"top", "dir/a", "dir/b", "dir/sub/c", "other/x"} {
		r.Write(n, n)
	}
	one := r.Commit("one")
	r.Write("top", "two")
	two := r.Commit("two")
	r.sync(one)
	r.age(one)
	indexFile, memo := filepath.Join(r.dir, gitDir, "index"), filepath.Join(r.dir, gitDir, countsFile)
	good, err := os.ReadFile(indexFile)
	require.NoError(t, err)
	goodMemo, err := os.ReadFile(memo)
	require.NoError(t, err)
	fromSnapshot := func(c plumbing.Hash) Stats {
		req := r.request(c)
		req.Snapshot = snapshotOf(t, r.dir)
		st, err := Sync(context.Background(), req)
		require.NoError(t, err)
		return st
	}
	rnd := rand.New(rand.NewSource(3))
	flipped := func(b []byte) []byte {
		b = append([]byte(nil), b...)
		b[rnd.Intn(len(b))] ^= 1 << rnd.Intn(8)
		return b
	}
	for range 200 {
		data := flipped(good)
		require.Nil(t, parseFolderCounts(goodMemo, index.Identify(data)))
		_, err := readList(data, false)
		require.ErrorIs(t, err, index.ErrUnusable)
		require.Nil(t, parseFolderCounts(flipped(goodMemo), index.Identify(good)))
	}
	require.NotNil(t, parseFolderCounts(goodMemo, index.Identify(good)))
	for _, c := range []plumbing.Hash{two, one} {
		data, err := os.ReadFile(indexFile)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(indexFile, flipped(data), 0o644))
		require.Contains(t, fromSnapshot(c).Notes, "the working copy's index was unusable; every file was compared")
		r.clean(c)
	}
	// Anything but a file does not block a checkout, and is replaced.
	for _, name := range []string{"index", "HEAD", "config"} {
		at := filepath.Join(r.dir, gitDir, name)
		require.NoError(t, os.Remove(at))
		require.NoError(t, unix.Mkfifo(at, 0o644))
	}
	require.Contains(t, fromSnapshot(two).Notes, "the working copy's index was unusable; every file was compared")
	r.clean(two)
	fromSnapshot(one)
	// The file of an older version, with another name, is removed.
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, gitDir, oldCountFile), []byte("x"), 0o644))
	require.Empty(t, fromSnapshot(two).Notes)
	require.NoFileExists(t, filepath.Join(r.dir, gitDir, oldCountFile))
	r.clean(two)
}
