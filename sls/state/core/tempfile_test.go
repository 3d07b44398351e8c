package core

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	es, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	c := &Call{Env: &Env{Cache: map[string]any{}}}
	path := filepath.Join(dir, "f")
	for _, text := range []string{"new", "old replaced", ""} {
		require.NoError(t, c.ReplaceFile(path, []byte(text), 0o640, -1, -1))
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), st.Mode())
		require.Equal(t, []string{"f"}, names(t, dir))
	}
	require.ErrorIs(t, c.ReplaceFile(filepath.Join(dir, "no", "f"), nil, 0o600, -1, -1), os.ErrNotExist)
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	require.NoError(t, c.ReplaceFile(filepath.Join(dir, "link"), []byte("x"), 0o600, -1, -1))
	require.Equal(t, []string{"f", "link"}, names(t, dir))
	require.FileExists(t, filepath.Join(dir, "link"))
}

// A run that was killed between its two system calls left the file under its other name.
func TestReplaceFileTakesOverWhatAKillLeft(t *testing.T) {
	dir := t.TempDir()
	c := &Call{Env: &Env{Cache: map[string]any{}}}
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	p, err := vfs.OpenPlace(path, false)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	f, _, err := c.openNew(p, path)
	require.NoError(t, err)
	if f.name != "" {
		t.Skip("the file system of the temporary folder has no unnamed files")
	}
	// link stops at the rename: its target is a folder that is not empty.
	blocked := filepath.Join(dir, "d")
	require.NoError(t, os.MkdirAll(filepath.Join(blocked, "x"), 0o700))
	require.Error(t, f.link(blocked))
	f.Discard()
	require.Equal(t, []string{"d", "f"}, names(t, dir))

	f, _, err = c.openNew(p, path)
	require.NoError(t, err)
	require.NoError(t, f.link(filepath.Join(dir, ".corpus-252f10c83610ebca")), "the name that follows from f")
	f.Discard()
	require.NoError(t, c.ReplaceFile(path, []byte("new"), 0o600, -1, -1))
	require.Equal(t, []string{"d", "f"}, names(t, dir))
}

// Where files have names from the start, and for scripts, the next run removes what nobody holds.
func TestScratchIsSwept(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	c := &Call{Env: &Env{Cache: map[string]any{}}}
	require.NoError(t, os.MkdirAll(filepath.Join(tmp, "corpus-script-1", "script"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(tmp, "corpus-check-1"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(tmp, "other"), nil, 0o600))
	dir, discard, err := c.NewTempDir("corpus-script-")
	require.NoError(t, err)
	f, err := c.NewTempFile("", "corpus-check-", ".txt")
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Base(f.Name()), filepath.Base(dir), "other"}, names(t, tmp))

	// Another run leaves alone what is in use.
	other := &Call{Env: &Env{Cache: map[string]any{}}}
	_, discardOther, err := other.NewTempDir("corpus-script-")
	require.NoError(t, err)
	require.DirExists(t, dir)
	discardOther()
	discard()
	f.Discard()
	require.Equal(t, []string{"other"}, names(t, tmp))
}
