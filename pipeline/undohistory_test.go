package pipeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// A rollback finds the undo logs that it goes back over by the records of their deployments: those stay as long as the logs do.
func TestRecordsOfKeptUndoLogsStay(t *testing.T) {
	m := newMachine(t)
	outside := filepath.Join(t.TempDir(), "site")
	last := m.commit(project.Code, "", map[string]string{".salt/010_site.sls": "site:\n  file.managed:\n    - name: " + outside + "\n    - contents: one\n"})
	res, out := m.push(project.Code, "", last)
	require.Equal(t, project.Live, res.State, out)
	logs, err := os.ReadDir(m.root.DefaultState().LiveUndo("app"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	for i := range 12 {
		next := m.commit(project.Code, last, map[string]string{".salt/010_site.sls": "{}\n", "page": fmt.Sprint(i)})
		res, out = m.push(project.Code, last, next)
		require.Equal(t, project.Live, res.State, out)
		last = next
	}
	// A spare tree is made there in the background.
	require.Eventually(t, func() bool { return os.RemoveAll(m.root.Project("app").Archives()) == nil }, time.Minute, 10*time.Millisecond)
	done, err := m.p.PruneHistory(t.Context(), "app", project.History{Deployments: 1})
	require.NoError(t, err)
	require.Equal(t, 2, done.Deployments)
	list, err := m.p.Deployments(t.Context(), "app", 100)
	require.NoError(t, err)
	require.Len(t, list, 11)
	require.Contains(t, logs[0].Name(), string(list[10].ID), "its undo log is kept")
}
