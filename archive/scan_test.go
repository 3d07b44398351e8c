package archive_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

// A folder's content follows "name/", so names with bytes below the slash stand between a folder and what lies in it.
func TestScanIsInByteOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	pieces := []string{"a", "b", "-", ".", "!", "0", " ", "\xff", "~", "/"}
	for range 20 {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "project"), 0o755))
		var want []string
		for range 150 {
			var p strings.Builder
			for range 1 + rnd.IntN(7) {
				p.WriteString(pieces[rnd.IntN(len(pieces))])
			}
			full := filepath.Join(dir, "project", p.String())
			if strings.HasPrefix(full, filepath.Join(dir, "project")+"/") {
				_ = os.MkdirAll(full, 0o755)
			}
		}
		require.NoError(t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
			if p != dir {
				want = append(want, strings.TrimPrefix(p, dir+"/"))
			}
			return err
		}))
		slices.Sort(want)
		m, err := archive.Describe(t.Context(), vfs.OS{}, dir, false, "project")
		require.NoError(t, err)
		var got []string
		for _, e := range m.Entries {
			got = append(got, e.Path)
		}
		require.Equal(t, want, got)
	}
}

// A file system tells of a block that could not be written once: to whoever syncs first. Where that is the sync beside
// the copying, the archive must fail all the same.
func TestEarlySyncFails(t *testing.T) {
	s := newSite(t)
	for i := range 40 {
		s.write("f"+string(rune('A'+i)), strings.Repeat("x", 100<<10))
	}
	bad := vfstest.New(vfs.OS{}, vfstest.FailNth("syncfs", 1, syscall.EIO))
	s.use(archive.Config{FS: bad, SyncEvery: 1 << 20, Reserve: noReserve})
	_, err := s.s.Make(t.Context(), archive.MakeRequest{Facts: s.facts()})
	require.ErrorIs(t, err, syscall.EIO)
	require.NoError(t, s.s.Wait())
	all, err := s.s.List()
	require.NoError(t, err)
	require.Empty(t, all)
	s.requireExact(s.make())
}
