package tree_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// A folder's content follows "name/", so names with bytes below the slash are between a folder and what is in it.
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
		m, err := tree.Describe(t.Context(), vfs.OS{}, dir, false, "project")
		require.NoError(t, err)
		var got []string
		for _, e := range m.Entries {
			got = append(got, e.Path)
		}
		require.Equal(t, want, got)
	}
}
