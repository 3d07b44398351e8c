package recipe_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/layout"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// What a deployment brought is used by the next one if it is the same and nobody touched it. Whatever happened, the copy is that of the commit.
func TestKept(t *testing.T) {
	file := func(text string, mode fs.FileMode) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(text), Mode: mode}
	}
	first := fstest.MapFS{"010_a.sls": file("a", 0o644), "020_run": file("#!/bin/sh", 0o755), "files/b": file("b", 0o644), "files/empty": file("", 0o644)}
	with := func(name string, f *fstest.MapFile) fstest.MapFS {
		m := maps.Clone(first)
		if m[name] = f; f == nil {
			delete(m, name)
		}
		return m
	}
	for name, c := range map[string]struct {
		next fstest.MapFS                       // the recipe of the next deployment; nil is the same
		did  func(t *testing.T, dir string)     // what a step does to the copy
		last func(t *testing.T, k *recipe.Kept) // what happens between the deployments
		used bool
	}{
		"the same":                 {used: true},
		"a file changed":           {next: with("files/b", file("c", 0o644))},
		"a file came":              {next: with("files/c", file("c", 0o644))},
		"a folder came":            {next: with("more/c", file("c", 0o644))},
		"a file went":              {next: with("files/b", nil)},
		"the last file went":       {next: fstest.MapFS{}},
		"a file became executable": {next: with("files/b", file("b", 0o755))},
		"a file became a link":     {next: with("files/b", file("empty", fs.ModeSymlink|0o777))},
		"a file became a folder":   {next: with("files/b", file("", fs.ModeDir|0o755))},
		"a step wrote a file": {did: func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "files/c"), nil, 0o600))
		}},
		"a step changed a file": {did: func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "files/b"), []byte("x"), 0o600))
		}},
		"a step removed a file":  {did: func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "files/b"))) }},
		"a step changed a mode":  {did: func(t *testing.T, dir string) { require.NoError(t, os.Chmod(filepath.Join(dir, "files/b"), 0o666)) }},
		"a step opened a folder": {did: func(t *testing.T, dir string) { require.NoError(t, os.Chmod(filepath.Join(dir, "files"), 0o777)) }},
		"a step linked a file": {did: func(t *testing.T, dir string) {
			require.NoError(t, os.Link(filepath.Join(dir, "files/b"), filepath.Join(t.TempDir(), "b")))
		}},
		"a step removed everything": {did: func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) }},
		"a step keeps a file open": {did: func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, "files/b"), os.O_RDWR, 0)
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
		}},
		"another copy beside it": {used: true, did: func(t *testing.T, dir string) {
			require.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(dir), "live", "files"), 0o700))
		}},
		"the project was removed": {last: func(t *testing.T, k *recipe.Kept) { require.NoError(t, k.Forget("app")) }},
	} {
		t.Run(name, func(t *testing.T) {
			k := &recipe.Kept{State: layout.State(t.TempDir())}
			to := func(id string) string { return k.State.Recipe(id, "brought") }
			_, err := k.Copy(t.Context(), "app", first, to("one"), "/live")
			require.NoError(t, err)
			kept, err := os.Open(to("one")) // so that its inode's number is not used again
			require.NoError(t, err)
			defer kept.Close()
			was, err := kept.Stat()
			require.NoError(t, err)
			if c.did != nil {
				c.did(t, to("one"))
			}
			require.NoError(t, k.Keep("one"))
			if c.last != nil {
				c.last(t, k)
			}
			next := c.next
			if next == nil {
				next = first
			}
			r, err := k.Copy(t.Context(), "app", next, to("two"), "/live")
			require.NoError(t, err)
			if len(next) == 0 {
				require.Nil(t, r)
				require.NoDirExists(t, to("two"))
			} else {
				is, err := os.Stat(to("two"))
				require.NoError(t, err)
				require.Equal(t, c.used, os.SameFile(was, is))
				require.Equal(t, contents(t, next), contents(t, os.DirFS(to("two"))))
			}
			require.NoError(t, k.Keep("two"))
			require.NoError(t, k.Forget("app"))
			left, err := os.ReadDir(k.State.Recipes())
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// contents are the files and folders of a file system, with their modes.
func contents(t *testing.T, files fs.FS) map[string]string {
	out := map[string]string{}
	require.NoError(t, fs.WalkDir(files, ".", func(p string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		if out[p] = "a folder"; e.Type()&fs.ModeSymlink != 0 {
			out[p] = "a link"
		} else if !e.IsDir() {
			text, err := fs.ReadFile(files, p)
			require.NoError(t, err)
			fi, err := e.Info()
			require.NoError(t, err)
			out[p] = fi.Mode().String() + string(text)
		}
		return nil
	}))
	return out
}

// Few are kept, and none that was copied for a project meanwhile.
func TestKeptOfManyProjects(t *testing.T) {
	k := &recipe.Kept{State: layout.State(t.TempDir())}
	files := fstest.MapFS{"010_a.sls": {Data: []byte("a")}}
	for i := range 40 {
		name := string(rune('a'+i%20)) + "pp"
		id := project.ID(name + string(rune('a'+i)))
		_, err := k.Copy(t.Context(), project.Name(name), files, k.State.Recipe(string(id), "brought"), "/live")
		require.NoError(t, err)
		if i == 20 { // a deployment of the first project that ends while another one runs
			other := project.ID("other")
			_, err := k.Copy(t.Context(), project.Name(name), files, k.State.Recipe(string(other), "brought"), "/live")
			require.NoError(t, err)
			require.NoError(t, k.Keep(other))
		}
		require.NoError(t, k.Keep(id))
	}
	left, err := os.ReadDir(k.State.Recipes())
	require.NoError(t, err)
	require.Len(t, left, 16)
	k.Close()
	left, err = os.ReadDir(k.State.Recipes())
	require.NoError(t, err)
	require.Empty(t, left)
	var none *recipe.Kept
	r, err := none.Copy(t.Context(), "app", files, k.State.Recipe("none", "brought"), "/live")
	require.NoError(t, err)
	require.NotNil(t, r)
}
