package vfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

func TestSweepTempsTakesWhatTempNameNames(t *testing.T) {
	dir := t.TempDir()
	keep := []string{".tmp-", ".tmp-0123456789abcde", ".tmp-0123456789abcdefff", ".tmp-0123456789abcdeg", "a.tmp-0123456789abcdef", "top.sls"}
	for _, n := range append(keep, filepath.Base(vfs.TempName("x")), filepath.Base(vfs.TempName("y"))) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, n), nil, 0o600))
	}
	require.NoError(t, os.Symlink("nowhere", vfs.TempName(filepath.Join(dir, "link"))))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".tmp-0123456789abcdef"), 0o700))
	require.NoError(t, vfs.SweepTemps(vfs.OS{}, dir))
	left, err := vfs.OS{}.ReadDir(dir)
	require.NoError(t, err)
	require.ElementsMatch(t, append(keep, ".tmp-0123456789abcdef"), left)
	require.NoError(t, vfs.SweepTemps(vfs.OS{}, filepath.Join(dir, "missing")))
}
