package vfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/internal/vfs"
)

// A writer is seen as long as its descriptor, or a mapping, is there; readers are not.
func TestUnwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	w, err := os.Create(path)
	require.NoError(t, err)
	_, err = w.WriteString("text")
	require.NoError(t, err)
	is := func(want bool, says string) {
		t.Helper()
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		require.Equal(t, want, vfs.Unwritten(int(f.Fd())), says)
	}
	is(false, "open for writing")
	require.NoError(t, w.Close())
	is(true, "closed")
	r, err := os.Open(path)
	require.NoError(t, err)
	defer r.Close()
	is(true, "open for reading")
	w, err = os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	text, err := unix.Mmap(int(w.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	is(false, "mapped")
	require.NoError(t, unix.Munmap(text))
	is(true, "no longer mapped")
}
