package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
)

// FuzzChange: a fix changes one word of one line, and nothing else of the file, whatever is in it; what Lines says is what Change does.
func FuzzChange(f *testing.F) {
	f.Add("a:\n  file.manged:\n    - name: /x\n", 2, "file.manged", "file.managed")
	f.Add("a: b", 1, "b", "")
	f.Add("a\r\nb a b\r\n", 2, "a", "c")
	f.Add("", 1, "", "x")
	f.Add("\xff\n\n", 2, "", "y")
	f.Fuzz(func(t *testing.T, text string, line int, old, with string) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, ".salt"), 0o700))
		path := filepath.Join(dir, ".salt", "010_a.sls")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		fixes := []Fix{{at: fault.Pos{File: ".salt/010_a.sls", Line: line}, Fix: fault.Fix{Old: old, New: with}}}
		said := Lines(dir, fixes)
		made, err := Change(dir, fixes)
		require.NoError(t, err)
		require.Equal(t, said, made)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		if len(made) == 0 {
			require.Equal(t, text, string(got))
			return
		}
		before := strings.SplitAfter(text, "\n")
		at := len(strings.Join(before[:line-1], ""))
		require.Equal(t, text[:at], string(got[:at]))
		rest := strings.Join(before[line:], "")
		require.True(t, strings.HasSuffix(string(got), rest))
		require.Equal(t, strings.Replace(before[line-1], old, with, 1), string(got[at:len(got)-len(rest)]))
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	})
}

// What a project links to in the place of a file of its recipe is not read as one, and not changed.
func TestChangeLeavesLinksAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".salt"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "outside"), []byte("a: b\n"), 0o600))
	require.NoError(t, os.Symlink("../outside", filepath.Join(dir, ".salt", "a.sls")))
	fixes := []Fix{{at: fault.Pos{File: ".salt/a.sls", Line: 1}, Fix: fault.Fix{Old: "b", New: "c"}}}
	require.Empty(t, Lines(dir, fixes))
	made, err := Change(dir, fixes)
	require.NoError(t, err)
	require.Empty(t, made)
}
