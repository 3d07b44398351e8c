package trap_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/trap"
	"corpus-git/internal/vfs"
)

// newDisk makes a disk if the machine allows it.
func newDisk(t *testing.T) *trap.Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts file systems")
	}
	d, err := trap.NewDisk(t.TempDir(), 16)
	if err != nil {
		t.Skipf("no loop mounts here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// A cut keeps what was synced, and of the rest at most names.
func TestACutForgetsWhatWasNotSynced(t *testing.T) {
	d := newDisk(t)
	put := func(name string) { require.NoError(t, os.WriteFile(filepath.Join(d.Dir, name), []byte(name), 0o600)) }
	look := func(names bool) (found map[string]string) {
		image, err := d.Cut(names)
		require.NoError(t, err)
		dir, end, err := d.Mount(image)
		require.NoError(t, err)
		found = map[string]string{}
		for _, n := range []string{"synced", "not"} {
			if b, err := os.ReadFile(filepath.Join(dir, n)); err == nil {
				found[n] = string(b)
			}
		}
		require.NoError(t, end())
		return found
	}
	put("synced")
	require.NoError(t, vfs.OS{}.SyncFS(d.Dir))
	put("not")
	require.Equal(t, map[string]string{"synced": "synced"}, look(false))
	require.Equal(t, map[string]string{"synced": "synced", "not": ""}, look(true))
	require.NoError(t, vfs.OS{}.SyncFS(d.Dir))
	require.Equal(t, map[string]string{"synced": "synced", "not": "not"}, look(false))
}
