package fileroot

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func walked(t *testing.T, r Roots, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, r.Walk(dir, func(rel string, f File, d fs.DirEntry) error {
		line := rel
		if d.IsDir() {
			line += "/"
		}
		if f.Link != "" {
			line += " -> " + f.Link
		}
		out = append(out, line)
		return nil
	}))
	return out
}

func TestWalkFollowsLinks(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "root")
	for _, d := range []string{"root/tree/d", "root/other", "outside"} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, d), 0o755))
	}
	for _, f := range []string{"root/tree/d/f", "root/other/o", "outside/x"} {
		require.NoError(t, os.WriteFile(filepath.Join(top, f), nil, 0o644))
	}
	for name, target := range map[string]string{"file": "d/f", "dir": "d", "loop": "../tree", "d/up": "..", "out": filepath.Join(top, "outside"),
		"none": "nothing", "sideways": "../other", "far": "/nowhere"} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, "tree", name)))
	}
	second := filepath.Join(top, "second")
	require.NoError(t, os.MkdirAll(filepath.Join(second, "tree", "d"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(second, "tree", "d", "more"), nil, 0o644))
	require.Equal(t, []string{"d/", "d/f", "dir/ -> d", "dir/f", "far", "file -> d/f", "none -> nothing",
		"out/", "out/x", "sideways/ -> ../other", "sideways/o", "d/more"}, walked(t, Roots{OnDisk(root), OnDisk(second)}, "salt://tree"))
	require.Equal(t, []string{"a"}, walked(t, Roots{{FS: fstest.MapFS{"t/a": {}}}}, "t"))
	require.ErrorIs(t, Roots{OnDisk(root)}.Walk("tree/none", nil), fs.ErrNotExist)
	require.ErrorIs(t, Roots{OnDisk(root)}.Walk("../x", nil), fs.ErrInvalid)
}
