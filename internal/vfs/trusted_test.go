package vfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

func TestOpenTrusted(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(base, "a", "b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(base, "a", "b", "f"), nil, 0o644))
	require.NoError(t, os.Symlink("a", filepath.Join(base, "mine")))
	require.NoError(t, os.Symlink(filepath.Join(base, "mine"), filepath.Join(base, "absolute")))
	require.NoError(t, os.Symlink("../a/b", filepath.Join(base, "a", "up")))
	require.NoError(t, os.Symlink("loop", filepath.Join(base, "loop")))
	for _, way := range []string{"a/b", "mine/b", "absolute/b/", "a/./b", "mine/up"} {
		d, err := vfs.OpenTrusted(base + "/" + way)
		require.NoError(t, err, way)
		names, err := d.ReadDir(".")
		require.NoError(t, err)
		require.Equal(t, []string{"f"}, names, way)
		require.NoError(t, d.Close())
	}
	for _, way := range []string{"none", "a/b/f", "a/b/f/g", "loop"} {
		_, err := vfs.OpenTrusted(base + "/" + way)
		require.Error(t, err, way)
	}
	_, err = vfs.OpenTrusted(base + "/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = vfs.OpenTrusted("a")
	require.Error(t, err)
	if os.Geteuid() == 0 {
		require.NoError(t, os.Lchown(filepath.Join(base, "mine"), 12345, 12345))
		for _, way := range []string{"mine/b", "absolute/b"} {
			_, err := vfs.OpenTrusted(base + "/" + way)
			require.ErrorIs(t, err, vfs.ErrUntrusted)
		}
	}
}
