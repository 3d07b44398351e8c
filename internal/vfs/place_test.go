package vfs_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

// Operations on a place are done where the path led when it was opened.
func TestPlaceStaysWhereItWas(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir+"/a/b", 0o755))
	require.NoError(t, os.MkdirAll(dir+"/trap/b", 0o755))
	require.NoError(t, os.Symlink(dir+"/a", dir+"/way"))
	require.NoError(t, os.Symlink("f", dir+"/a/b/to-f"))
	p, err := vfs.OpenPlace(dir+"/way/b/f", false)
	require.NoError(t, err)
	require.NoError(t, os.Rename(dir+"/a", dir+"/moved"))
	require.NoError(t, os.Rename(dir+"/trap", dir+"/a"))
	require.NoError(t, os.WriteFile(p.Path(), []byte("x"), 0o600))
	require.NoFileExists(t, dir+"/a/b/f")
	require.FileExists(t, dir+"/moved/b/f")
	require.NoError(t, os.Remove(p.Path()))
	_, err = p.Open(os.O_RDONLY, 0)
	require.EqualError(t, err, "open "+dir+"/way/b/f: no such file or directory")
	require.NoError(t, p.Close())

	for path, want := range map[string][2]string{ // not followed, followed
		"moved/b/to-f": {"to-f", "f"}, "moved/b/to-f/": {"to-f", "f"}, "moved/b/./to-f/.": {"to-f", "f"}, "moved/b/...": {"...", "..."},
		"moved/b/..": {".", "."}, "moved//b": {"b", "b"}, "way/b/none": {"none", "none"},
	} {
		for i, follow := range []bool{false, true} {
			p, err := vfs.OpenPlace(dir+"/"+path, follow)
			require.NoError(t, err, path)
			require.Equal(t, want[i], filepath.Base(p.Path()), "%s %v", path, follow)
			require.NoError(t, p.Close())
		}
	}
	for path, want := range map[string]error{"": syscall.ENOENT, dir + "/none/f": syscall.ENOENT, dir + "/moved/b/to-f/x": syscall.ENOENT} {
		_, err := vfs.OpenPlace(path, true)
		require.ErrorIs(t, err, want, path)
	}
	before, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for range 50 {
		require.NoError(t, vfs.CheckLinks(dir+"/way/b/f", true))
	}
	after, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	require.Len(t, after, len(before), "no descriptor is left open")
}
