package salt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/salt"
)

// TestOutputsOfSalt: in Salt, too, corpus.output writes to the file of the step, and so do its commands.
func TestOutputsOfSalt(t *testing.T) {
	dir := t.TempDir()
	recipe, file := filepath.Join(dir, "recipe"), filepath.Join(dir, "outputs")
	require.NoError(t, os.Mkdir(recipe, 0o755))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(recipe, "010_a.sls"), []byte(`
version:
  corpus.output:
    - value: '1.10'
several:
  corpus.output:
    - values: {a: [1], b: null}
command:
  cmd.run:
    - name: echo c=2 >> $CORPUS_OUTPUTS
`), 0o600))
	h := host.New(execx.OS{})
	h.Environ = append(h.Environ, "CORPUS_OUTPUTS="+file)
	driver := salt.Driver{Bin: saltCall(t), NewDir: func() string { return filepath.Join(dir, "salt") }}
	res, err := driver.Apply(t.Context(), &sls.Input{
		SLS: "makina-projects.app.010_a", Host: h, Grains: py.NewDict("id", "box"), Pillar: py.NewDict(), Cfg: py.NewDict("name", "app"),
		Roots: fileroot.Roots{{FS: os.DirFS(recipe), Dir: recipe, Mount: "makina-projects/app", Label: ".salt"}},
	}, sls.Discard{})
	require.NoError(t, err)
	require.True(t, res.OK(), "%+v", res.Failed())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "\n{\"version\": \"1.10\"}\n\n{\"a\": [1], \"b\": null}\nc=2\n", string(text))
}

// TestWaitsOfSalt: in Salt, too, corpus.wait waits in the server, with the arguments of the state; a wait that fails fails the state.
func TestWaitsOfSalt(t *testing.T) {
	dir := t.TempDir()
	recipe := filepath.Join(dir, "recipe")
	require.NoError(t, os.Mkdir(recipe, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(recipe, "010_a.sls"), []byte(`
workers:
  corpus.wait:
    - from: [web1, web2]
    - timeout: 10m
late:
  corpus.wait: []
`), 0o600))
	var asked []string
	driver := salt.Driver{Bin: saltCall(t), NewDir: func() string { return filepath.Join(dir, "salt") }}
	res, err := driver.Apply(t.Context(), &sls.Input{
		SLS: "makina-projects.app.010_a", Host: host.New(execx.OS{}), Grains: py.NewDict("id", "box"), Pillar: py.NewDict(), Cfg: py.NewDict("name", "app"),
		Roots: fileroot.Roots{{FS: os.DirFS(recipe), Dir: recipe, Mount: "makina-projects/app", Label: ".salt"}},
		Wait: func(_ context.Context, id string, args *py.Dict, _ func() sls.Done) (string, error) {
			asked = append(asked, id+" "+py.Str(args))
			if id == "late" {
				return "", errors.New("not signalled within 1h")
			}
			return "all signals have come", nil
		},
	}, sls.Discard{})
	require.NoError(t, err)
	require.Equal(t, []string{"workers {'timeout': '10m', 'from': ['web1', 'web2']}", "late {}"}, asked)
	require.Len(t, res.States, 2)
	require.Equal(t, "all signals have come", res.States[0].Comment)
	require.Equal(t, sls.Succeeded, res.States[0].Outcome)
	require.Equal(t, "not signalled within 1h", res.States[1].Comment)
	require.Equal(t, sls.FailedState, res.States[1].Outcome)
}
