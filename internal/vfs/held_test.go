package vfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestHeldFilesStayUntilRelease(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) os.FileInfo {
		st, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		return st
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o644))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()

	var h Held
	h.Keep(OS{}, filepath.Join(dir, "missing"))
	h.KeepAt(fd, "missing")
	require.Empty(t, h.files)
	h.Keep(OS{}, filepath.Join(dir, "a"))
	h.KeepAt(fd, "a")
	h.KeepAt(fd, "link")
	require.Len(t, h.files, 3)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), []byte("new"), 0o644))
	was := open("a")
	require.NoError(t, os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "a")))
	var st unix.Stat_t
	held, ok := h.files[1].(descriptor)
	require.True(t, ok)
	require.NoError(t, unix.Fstat(int(held), &st))
	require.Zero(t, st.Nlink, "the file without a name is still there")
	require.Equal(t, was.Size(), st.Size)

	for i := range 2 * maxHeld {
		name := fmt.Sprint(i)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		h.KeepAt(fd, name)
		h.Keep(OS{}, filepath.Join(dir, name))
	}
	require.Len(t, h.files, maxHeld, "descriptors stay few")
	h.Release()
	require.Empty(t, h.files)
	h.Release()
}
