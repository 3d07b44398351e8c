package checkout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/internal/testutil/gittest"
	"corpus-git/internal/vfs"
)

// snapshotOf walks a working copy as an archive does.
func snapshotOf(t testing.TB, dir string) *vfs.Snapshot {
	t.Helper()
	type one struct {
		path string
		f    vfs.FileFacts
	}
	begun := time.Now()
	var all []one
	require.NoError(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if p == dir || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, p)
		require.NoError(t, err)
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(p, &st))
		all = append(all, one{rel, vfs.FileFacts{
			Mode: st.Mode, UID: st.Uid, GID: st.Gid, Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
		}})
		return nil
	}))
	slices.SortFunc(all, func(a, b one) int { return strings.Compare(a.path, b.path) })
	return &vfs.Snapshot{Begun: begun, Each: func(yield func(string, vfs.FileFacts) bool) {
		for _, o := range all {
			if !yield(o.path, o.f) {
				return
			}
		}
	}}
}

// What happens to the tree after the walk is detected wherever the checkout has something to do, and by the next one everywhere else.
func TestChangesAfterTheWalk(t *testing.T) {
	r := newRepo(t)
	for _, n := range []string{"same/a", "same/b", "next/a", "next/b", "link/a", "gone/a", "gone/b"} {
		r.Write(n, n)
	}
	one := r.Commit("one")
	r.Write("next/a", "two")
	r.Write("link/a", "two")
	require.NoError(t, os.Remove(filepath.Join(r.Dir, "gone/b")))
	two := r.Commit("two")
	r.sync(one)
	r.age(one)
	req := r.request(two)
	req.Snapshot = snapshotOf(t, r.dir)

	elsewhere := t.TempDir()
	gittest.WriteFile(t, filepath.Join(elsewhere, "a"), "not to be touched")
	require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "link")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(r.dir, "link")))
	for _, n := range []string{"same/a", "next/a", "next/b", "gone/b"} {
		gittest.WriteFile(t, filepath.Join(r.dir, n), "edited")
	}
	gittest.WriteFile(t, filepath.Join(r.dir, "next/mine"), "untracked")
	gittest.WriteFile(t, filepath.Join(r.dir, "same/mine"), "untracked")

	st, err := Sync(context.Background(), req)
	require.NoError(t, err)
	require.Equal(t, []string{"gone/b", "link/a", "next/a"}, st.LocalChanges.First)
	require.Equal(t, []string{"link"}, st.Overwritten.First)
	text := func(name string) string {
		data, err := os.ReadFile(filepath.Join(r.dir, name))
		require.NoError(t, err)
		return string(data)
	}
	require.Equal(t, "two", text("next/a"))
	require.Equal(t, "two", text("link/a"))
	require.NoFileExists(t, filepath.Join(r.dir, "gone/b"))
	require.Equal(t, "edited", text("same/a"), "both commits have it alike, and the walk was before")
	untouched, err := os.ReadFile(filepath.Join(elsewhere, "a"))
	require.NoError(t, err)
	require.Equal(t, "not to be touched", string(untouched))

	// Nothing mistakes the edited files for those of the commit: git reports them, and the next checkout fixes them.
	require.Equal(t, " M next/b\n M same/a", gittest.Git(t, r.dir, "status", "--porcelain", "--untracked-files=no"))
	req = r.request(two)
	req.Snapshot = snapshotOf(t, r.dir)
	st, err = Sync(context.Background(), req)
	require.NoError(t, err)
	require.Equal(t, []string{"next/b", "same/a"}, st.LocalChanges.First)
	require.Equal(t, 2, st.Untracked)
	require.Empty(t, gittest.Git(t, r.dir, "status", "--porcelain", "--untracked-files=no"))
}

// A walk of another tree, or an empty one, only costs time.
func TestWalkOfAnotherTree(t *testing.T) {
	r := newRepo(t)
	r.Write("dir/a", "a")
	r.Write("dir-b/c", "c")
	r.Write("dir/sub/d", "d")
	one := r.Commit("one")
	r.sync(one)
	r.age(one)
	for name, dir := range map[string]string{"none": t.TempDir(), "the source": r.Dir} {
		t.Run(name, func(t *testing.T) {
			gittest.WriteFile(t, filepath.Join(r.dir, "dir/a"), "edited "+name)
			req := r.request(one)
			req.Snapshot = snapshotOf(t, dir)
			st, err := Sync(context.Background(), req)
			require.NoError(t, err)
			require.Equal(t, []string{"dir/a"}, st.LocalChanges.First)
			r.clean(one)
			r.age(one)
		})
	}
}

// Names are counted as of the scan, less what the file system's clock may be behind.
func TestCountedAt(t *testing.T) {
	dir := t.TempDir()
	begun := time.Unix(1000, 5e6)
	at := func(path string) time.Duration {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		defer func() { _ = unix.Close(fd) }()
		p := planner{snapshot: &vfs.Snapshot{Begun: begun}, fromSnapshot: true, scanned: true}
		got := p.countedAt(fd)
		return begun.Sub(time.Unix(got.sec, got.nsec))
	}
	require.Equal(t, secondSlack, at("/proc"), "nothing is known of this file system's times")
	var on unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &on))
	require.NoError(t, os.Chtimes(dir, begun, time.Unix(999, 1)))
	if on.Type == unix.EXT4_SUPER_MAGIC || on.Type == unix.TMPFS_MAGIC {
		require.Equal(t, vfs.LongestTick, at(dir))
	} else {
		require.Contains(t, []time.Duration{vfs.LongestTick, secondSlack}, at(dir))
	}
	require.NoError(t, os.Chtimes(dir, begun, time.Unix(999, 0)))
	require.Equal(t, secondSlack, at(dir), "it may store whole seconds")
	require.Zero(t, (&planner{scanned: true}).countedAt(-1), "the time after the walk")
}
