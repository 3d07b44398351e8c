package vfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// No change after a call gets an earlier time, whether the file was looked at or not.
func TestFileTime(t *testing.T) {
	p := filepath.Join(t.TempDir(), "f")
	for i := range 2000 {
		at := FileTime()
		require.NoError(t, os.WriteFile(p, []byte{byte(i)}, 0o600))
		st, err := OS{}.Lstat(p)
		require.NoError(t, err)
		require.GreaterOrEqual(t, st.Ctime, at.UnixNano())
		require.GreaterOrEqual(t, st.Mtime, at.UnixNano())
	}
}
