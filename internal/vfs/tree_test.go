package vfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

// hostile is a folder as its owner may prepare it for a server that reads it with more permissions.
func hostile(t *testing.T) (dir string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "tree")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "d"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "d", "file"), []byte("text"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(top, "outside"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink("d/file", filepath.Join(dir, "inside")))
	require.NoError(t, os.Symlink("../outside", filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink(filepath.Join(top, "outside"), filepath.Join(dir, "absolute")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	f, err := os.Create(filepath.Join(dir, "sparse"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(3<<40))
	require.NoError(t, f.Close())
	return dir
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := hostile(t)
	for name, want := range map[string]error{
		"fifo": vfs.ErrNotRegular, "d": vfs.ErrNotRegular, "inside": syscall.ELOOP, "out": syscall.ELOOP, "none": fs.ErrNotExist,
	} {
		_, err := vfs.OpenRegular(filepath.Join(dir, name))
		require.ErrorIs(t, err, want, name)
	}
	_, err := vfs.ReadFollowed(filepath.Join(dir, "sparse"), 1<<20)
	require.ErrorIs(t, err, vfs.ErrTooLarge)
	text, err := vfs.ReadFollowed(filepath.Join(dir, "d", "file"), 4)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	_, err = vfs.ReadFollowed(filepath.Join(dir, "d", "file"), 3)
	require.ErrorIs(t, err, vfs.ErrTooLarge)
	text, err = vfs.ReadFollowed(filepath.Join(dir, "out"), 100)
	require.NoError(t, err)
	require.Equal(t, "secret", string(text))
	_, err = vfs.ReadFollowed(filepath.Join(dir, "fifo"), 100)
	require.ErrorIs(t, err, vfs.ErrNotRegular)
}

// A file whose size is not known before it is read, as in /proc, is read to its end.
func TestFilesOfUnknownSizeAreRead(t *testing.T) {
	text, err := vfs.ReadFollowed("/proc/self/status", 1<<20)
	require.NoError(t, err)
	require.Contains(t, string(text), "Pid:")
}

func TestTreesReadRegularFilesOnly(t *testing.T) {
	dir := hostile(t)
	beneath, err := vfs.Beneath(dir)
	require.NoError(t, err)
	for name, tree := range map[string]fs.FS{"files": vfs.Files(dir), "beneath": beneath} {
		_, err := fs.ReadFile(tree, "fifo")
		require.ErrorIs(t, err, vfs.ErrNotRegular, name)
		_, err = tree.Open("fifo")
		require.ErrorIs(t, err, vfs.ErrNotRegular, name)
		_, err = fs.ReadFile(tree, "sparse")
		require.ErrorIs(t, err, vfs.ErrTooLarge, name)
		text, err := fs.ReadFile(tree, "inside")
		require.NoError(t, err, name)
		require.Equal(t, "text", string(text), name)
		_, err = fs.ReadFile(tree, "../outside")
		require.ErrorIs(t, err, fs.ErrInvalid, name)
	}
	_, err = fs.ReadFile(vfs.Files(dir), "out")
	require.NoError(t, err)
	for _, name := range []string{"out", "absolute"} {
		_, err = fs.ReadFile(beneath, name)
		require.Error(t, err, name)
		_, err = fs.Stat(beneath, name)
		require.Error(t, err, name)
	}
	clean := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(clean, "d"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(clean, "d", "f"), []byte("x"), 0o644))
	require.NoError(t, fstest.TestFS(vfs.Files(clean), "d/f"))
}
