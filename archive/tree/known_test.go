package tree_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// listing notes which folders are listed.
type listing struct {
	vfs.Dir
	path string
	all  *listed
}

type listed struct {
	mu   sync.Mutex
	dirs []string
}

func (l listing) OpenDir(path string) (vfs.Dir, error) {
	d, err := l.Dir.OpenDir(path)
	return listing{d, path, l.all}, err
}

func (l listing) ReadDir(path string) ([]string, error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.all.dirs = append(l.all.dirs, l.path)
	return l.Dir.ReadDir(path)
}

// Only folders that are not as they were, or changed just before they were looked at, are listed again.
func TestKnownNames(t *testing.T) {
	dir := t.TempDir()
	at := func(p string) string { return filepath.Join(dir, "project", p) }
	for _, d := range []string{"a/b", "a-b", "c", "d", "e"} {
		require.NoError(t, os.MkdirAll(at(d), 0o755))
		for i := range 3 {
			require.NoError(t, os.WriteFile(at(fmt.Sprintf("%s/f%d", d, i)), []byte(d), 0o644))
		}
	}
	require.NoError(t, os.Symlink("f1", at("c/link")))
	time.Sleep(2 * tree.RacyWindow)
	src, err := vfs.OS{}.OpenDir(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, src.Close()) }()
	begun := vfs.FileTime()
	require.NoError(t, os.WriteFile(at("e/f3"), nil, 0o644)) // too late
	was, err := tree.Scan(context.Background(), src, []string{"project"}, 2)
	require.NoError(t, err)
	tree.MarkRacy(was.Entries, begun)
	known := tree.KnownFrom(&tree.Manifest{Entries: was.Entries})

	require.NoError(t, os.WriteFile(at("a/b/f1"), []byte("other content"), 0o644)) // no other name
	require.NoError(t, os.Remove(at("a-b/f0")))
	require.NoError(t, os.Remove(at("c/link")))
	require.NoError(t, os.Symlink("f2", at("c/link")))
	require.NoError(t, os.Rename(at("d"), at("a/moved")))
	all := &listed{}
	got, err := tree.ScanKnown(context.Background(), listing{src, ".", all}, []string{"project", "pillar"}, 2, func() *tree.Known { return known })
	require.NoError(t, err)
	want, err := tree.Scan(context.Background(), src, []string{"project"}, 2)
	require.NoError(t, err)
	require.Equal(t, want, got)
	slices.Sort(all.dirs)
	require.Equal(t, []string{"project", "project/a", "project/a-b", "project/a/moved", "project/c", "project/e"}, all.dirs)
	require.Nil(t, tree.KnownFrom(nil))
}
