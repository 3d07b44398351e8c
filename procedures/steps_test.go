package procedures_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/procedures"
)

// recipe makes files; a name that begins with + is executable.
func recipe(files ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, f := range files {
		mode := fs.FileMode(0o644)
		if name, ok := strings.CutPrefix(f, "+"); ok {
			f, mode = name, 0o755
		}
		m[f] = &fstest.MapFile{Mode: mode, Data: []byte("x")}
	}
	return m
}

func stepNames(t *testing.T, list []procedures.Step, err error) []string {
	t.Helper()
	require.NoError(t, err)
	var out []string
	for _, s := range list {
		out = append(out, s.Name)
	}
	return out
}

func TestStepsRunInByteOrder(t *testing.T) {
	r := recipe("100_b.sls", "0_1.sls", "0100_a.sls", "000_dirs.sls", "a.sls", "a-b.sls", "task_backup.sls", "archive.sls", "fixperms.sls",
		"rollback.sls", "notify.sls", ".sls", "PILLAR.sample", "README.md", "files/x.sls", "+050_script.sh", "060_not_executable.sh", "+lib.sh")
	list, err := procedures.ListSteps(r)
	require.Equal(t, []string{"000_dirs", "0100_a", "050_script", "0_1", "100_b", "a", "a-b"}, stepNames(t, list, err))
	tasks, err := procedures.ListTasks(r)
	require.Equal(t, []string{"task_backup"}, stepNames(t, tasks, err))
}

func TestStepsWhoseOrderWouldBeChanceAreRefused(t *testing.T) {
	_, err := procedures.ListSteps(recipe("010_a.sls", "+010_a.sh"))
	require.ErrorContains(t, err, "same place")
	require.Equal(t, fault.Failed, fault.KindOf(err))
	_, err = procedures.ListSteps(recipe("010.a.sls"))
	require.ErrorContains(t, err, "dot")
}

func TestNoRecipeHasNoSteps(t *testing.T) {
	list, err := procedures.ListSteps(nil)
	require.NoError(t, err)
	require.Empty(t, list)
}
