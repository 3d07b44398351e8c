package machinecfg_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/procedures/machinecfg"
)

func write(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte(text), mode))
	require.NoError(t, os.Chmod(file, mode))
	return file
}

func TestImage(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
		err   string
	}{
		"none":                            {},
		"in order, by pattern":            {files: map[string]string{"20.yaml": "makina-projects.app: {b: 2}\n", "10.yaml": "makina-projects.*: {a: 1}\nmakina-projects.a?p: {c: 3}\nmakina-projects.b: {d: 4}\n", "x.yml": "no: 1\n", "30.yaml": "\n"}, want: []string{"10.yaml {'a': 1}", "10.yaml {'c': 3}", "20.yaml {'b': 2}"}},
		"a foreign key":                   {files: map[string]string{"10.yaml": "data: {a: 1}\n"}, err: "10.yaml: the key 'data' is not of the form  makina-projects.PROJECT"},
		"no mapping":                      {files: map[string]string{"10.yaml": "[1]\n"}, err: "10.yaml: must be a mapping, not list"},
		"a section that is not a mapping": {files: map[string]string{"10.yaml": "makina-projects.b: 1\n"}, err: "10.yaml: makina-projects.b must be a mapping, not int"},
		"a pattern that ends":             {files: map[string]string{"10.yaml": "'makina-projects.[': {}\n"}, err: "10.yaml: makina-projects.[: incomplete pattern"},
		"too large":                       {files: map[string]string{"10.yaml": strings.Repeat("#", 1<<20+1)}, err: "larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				write(t, dir, file, text, 0o644)
			}
			got, err := machinecfg.Image(dir, "app")
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var said []string
			for _, f := range got {
				said = append(said, filepath.Base(f.File)+" "+py.Str(f.Values))
			}
			require.Equal(t, c.want, said)
		})
	}
	got, err := machinecfg.Image(filepath.Join(t.TempDir(), "none"), "app")
	require.NoError(t, err)
	require.Empty(t, got)
}

// A project's user puts a file, a link or a pipe in place of local.yaml: it is not trusted, and nothing blocks.
func TestLocalOfSomebodyElse(t *testing.T) {
	dir := t.TempDir()
	good := write(t, dir, "good", "data: {a: 1}\n", 0o600)
	f, err := machinecfg.Local(good)
	require.NoError(t, err)
	require.Equal(t, "{'data': {'a': 1}}", py.Str(f.Values))
	f, err = machinecfg.Local(filepath.Join(dir, "none"))
	require.NoError(t, err)
	require.Nil(t, f)

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(good, link))
	for _, file := range []string{link, write(t, dir, "group", "", 0o620), write(t, dir, "others", "", 0o602), dir} {
		_, err = machinecfg.Local(file)
		require.Error(t, err, file)
	}
	_, err = machinecfg.Local(write(t, dir, "env", "env_defaults: {prod: {a: 1}}\n", 0o600))
	require.ErrorContains(t, err, "env_defaults is not allowed here")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(good, 1234, 1234))
		_, err = machinecfg.Local(good)
		require.ErrorContains(t, err, "it is writable for users other than root")
	}
}
