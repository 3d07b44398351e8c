package hooks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/hooks"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
)

var env = []string{"PATH=/usr/bin:/bin"}

func put(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), mode))
	return path
}

// The server's hooks and the project's run in the byte order of their names, the server's first of two with one name; the first that fails ends the
// run.
func TestOrderAndFailure(t *testing.T) {
	state, own := layout.State(t.TempDir()), t.TempDir()
	dir := state.Hooks(string(hooks.PreDeploy))
	put(t, filepath.Join(dir, "20_b"), "echo server 20", 0o755)
	put(t, filepath.Join(dir, "0_c"), "echo server 0", 0o755)
	put(t, filepath.Join(dir, ".hidden"), "echo hidden", 0o755)
	put(t, filepath.Join(dir, "not-executable"), "echo no", 0o644)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	list := []hooks.Hook{
		{Name: "20_b", Path: put(t, filepath.Join(own, "20_b"), "echo own 20 >&2", 0o755), File: "20_b"},
		{Name: "30_fails", Path: put(t, filepath.Join(own, "30_fails"), "exit 3", 0o755), File: ".salt/30_fails"},
		{Name: "40_never", Path: put(t, filepath.Join(own, "40_never"), "echo never", 0o755), File: "40_never"},
	}
	r := &hooks.Runner{Exec: execx.OS{}, State: state}
	var got []string
	n, err := r.Run(t.Context(), list, env, hooks.Description{Point: hooks.PreDeploy, ProjectDir: own}, func(hook, stream, line string) {
		got = append(got, hook+" "+stream+" "+line)
	})
	require.Equal(t, []string{"0_c stdout server 0", "20_b stdout server 20", "20_b stderr own 20"}, got)
	require.Equal(t, 3, n)
	require.ErrorContains(t, err, "pre-deploy hook 30_fails: exit status 3")
	require.Equal(t, fault.Failed, fault.KindOf(err))
	require.Contains(t, fault.HintOf(err), ".salt/30_fails")
}

// A hook reads the deployment as JSON and in its environment.
func TestDescription(t *testing.T) {
	dir := t.TempDir()
	h := hooks.Hook{Name: "x", Path: put(t, filepath.Join(dir, "x"), `cat; echo; echo "$CORPUS_POINT $CORPUS_PROJECT $CORPUS_STATE"`, 0o755)}
	d := hooks.Description{Point: hooks.Notify, ProjectDir: dir, Deployment: project.Deployment{Project: "app"}, Result: &project.Result{State: project.RolledBack}}
	var lines []string
	_, err := (&hooks.Runner{Exec: execx.OS{}, State: layout.State(t.TempDir())}).Run(t.Context(), []hooks.Hook{h}, env, d, func(_, _, line string) { lines = append(lines, line) })
	require.NoError(t, err)
	require.Len(t, lines, 2)
	var got hooks.Description
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &got))
	require.Equal(t, 1, got.Version)
	require.Equal(t, project.RolledBack, got.Result.State)
	require.Equal(t, "notify app rolled back", lines[1])
}
