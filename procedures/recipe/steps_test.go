package recipe_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/procedures/recipe"
)

// files makes files; a name that begins with + is executable.
func files(names ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, f := range names {
		mode := fs.FileMode(0o644)
		if name, ok := strings.CutPrefix(f, "+"); ok {
			f, mode = name, 0o755
		}
		m[f] = &fstest.MapFile{Mode: mode, Data: []byte("x")}
	}
	return m
}

func stepNames(t *testing.T, list []recipe.Step, err error) []string {
	t.Helper()
	require.NoError(t, err)
	var out []string
	for _, s := range list {
		out = append(out, s.Name)
	}
	return out
}

func TestStepsRunInByteOrder(t *testing.T) {
	r := files("100_b.sls", "0_1.sls", "0100_a.sls", "000_dirs.sls", "a.sls", "a-b.sls", "task_backup.sls", "archive.sls", "fixperms.sls",
		"rollback.sls", "notify.sls", ".sls", "PILLAR.sample", "README.md", "files/x.sls", "+050_script.sh", "060_not_executable.sh", "+lib.sh")
	list, err := recipe.Steps(r)
	require.Equal(t, []string{"000_dirs", "0100_a", "050_script", "0_1", "100_b", "a", "a-b"}, stepNames(t, list, err))
	tasks, err := recipe.Tasks(r)
	require.Equal(t, []string{"task_backup"}, stepNames(t, tasks, err))
}

func TestStepsWhoseOrderWouldBeChanceAreRefused(t *testing.T) {
	_, err := recipe.Steps(files("010_a.sls", "+010_a.sh"))
	require.ErrorContains(t, err, "same place")
	require.Equal(t, fault.Failed, fault.KindOf(err))
	_, err = recipe.Steps(files("010.a.sls"))
	require.ErrorContains(t, err, "dot")
}

func TestNoRecipeHasNoSteps(t *testing.T) {
	list, err := recipe.Steps(nil)
	require.NoError(t, err)
	require.Empty(t, list)
}
