package tree_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// A regular file keeps its inode and gets the content, of whatever length; anything else under the name, and a file with another name, gets a file of its own.
func TestRewrite(t *testing.T) {
	for name, c := range map[string]struct {
		before func(p string) error
		same   bool
	}{
		"nothing": {func(string) error { return nil }, false},
		"empty":   {func(p string) error { return os.WriteFile(p, nil, 0o600) }, true},
		"shorter": {func(p string) error { return os.WriteFile(p, []byte("ab"), 0o600) }, true},
		"longer":  {func(p string) error { return os.WriteFile(p, make([]byte, 100_000), 0o600) }, true},
		"a file with another name": {func(p string) error {
			if err := os.WriteFile(p+".backup", []byte("kept"), 0o600); err != nil {
				return err
			}
			return os.Link(p+".backup", p)
		}, false},
		"a link": {func(p string) error {
			if err := os.WriteFile(p+".backup", []byte("kept"), 0o600); err != nil {
				return err
			}
			return os.Symlink(p+".backup", p)
		}, false},
		"a fifo": {func(p string) error { return unix.Mkfifo(p, 0o600) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "f")
			require.NoError(t, c.before(at))
			was, _ := vfs.OS{}.Lstat(at)
			d, err := vfs.OS{}.OpenDir(filepath.Dir(at))
			require.NoError(t, err)
			defer func() { require.NoError(t, d.Close()) }()
			require.NoError(t, tree.Rewrite(d, "f", []byte("content"), 0o600))
			got, err := os.ReadFile(at)
			require.NoError(t, err)
			require.Equal(t, "content", string(got))
			now, err := vfs.OS{}.Lstat(at)
			require.NoError(t, err)
			require.Equal(t, uint32(syscall.S_IFREG), now.Type())
			if c.same {
				require.Equal(t, was.Ino, now.Ino)
			}
			if kept, err := os.ReadFile(at + ".backup"); err == nil {
				require.Equal(t, "kept", string(kept))
			}
		})
	}
}
