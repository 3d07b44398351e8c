package permissions

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// A walk collects the inodes of everything below the tree for those who compare with them, and for nobody else: in large trees they are many.
func TestInodesOnlyIfAsked(t *testing.T) {
	p := layout.Root(t.TempDir()).Project("app")
	var want []uint64
	for _, name := range []string{"", "a", "sub/b", "sub/deep/c"} {
		path := filepath.Join(p.Live(), name)
		if name == "" {
			require.NoError(t, os.MkdirAll(filepath.Join(path, "sub", "deep"), 0o755))
			for _, d := range []string{"sub", "sub/deep"} {
				want = append(want, inodeOf(t, filepath.Join(path, d)))
			}
			continue
		}
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		want = append(want, inodeOf(t, path))
	}
	trees, err := Trees(p, nil, nil, Accounts{})
	require.NoError(t, err)
	i := slices.IndexFunc(trees, func(t Tree) bool { return t.Dir == p.Live() })
	for _, dry := range []bool{true, false} {
		w, err := trees[i].Walk(t.Context(), vfs.OS{}, nil, How{Dry: dry})
		require.NoError(t, err)
		require.Nil(t, w.Inodes)
		w, err = trees[i].Walk(t.Context(), vfs.OS{}, nil, How{Dry: dry, Inodes: true})
		require.NoError(t, err)
		require.ElementsMatch(t, want, w.Inodes)
	}
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	st, err := os.Stat(path)
	require.NoError(t, err)
	return st.Sys().(*syscall.Stat_t).Ino
}
