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

// A rollback finds the undo logs of the deployments that it reverts through their records, which are kept as long as the logs.
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

// Beyond a limit the oldest undo logs are removed; a rollback past those deployments reports that, others do not.
func TestUndoLogsAreBounded(t *testing.T) {
	m := newMachine(t)
	dir := t.TempDir()
	var last project.Commit
	for i := range 4 {
		next := m.commit(project.Code, last, map[string]string{
			".salt/010_site.sls": fmt.Sprintf("site%d:\n  file.managed:\n    - name: %s/site%d\n    - contents: x\n", i, dir, i), "page": fmt.Sprint(i),
		})
		res, out := m.push(project.Code, last, next)
		require.Equal(t, project.Live, res.State, out)
		last = next
	}
	var done project.Pruned
	require.Eventually(t, func() bool {
		var err error
		done, err = m.p.PruneHistory(t.Context(), "app", project.History{UndoLogs: 1})
		return err == nil && done.UndoLogs == 3
	}, time.Minute, 10*time.Millisecond)
	logs, err := os.ReadDir(m.root.DefaultState().LiveUndo("app"))
	require.NoError(t, err)
	require.Len(t, logs, 2, "one log, and the note of what is gone")
	done, err = m.p.PruneHistory(t.Context(), "app", project.History{UndoLogs: 1})
	require.NoError(t, err)
	require.Zero(t, done.UndoLogs)

	list, err := m.p.Deployments(t.Context(), "app", 10)
	require.NoError(t, err)
	back := func(to project.ID) string {
		id, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerRollback, Restore: to, Pusher: project.Pusher{Key: "ops"}}, nil)
		require.NoError(t, err)
		res, out := m.follow(id)
		require.Equal(t, project.Live, res.State, out)
		return out
	}
	out := back(list[1].ID)
	require.NotContains(t, out, "their undo logs were removed")
	require.NoFileExists(t, filepath.Join(dir, "site3"))
	out = back(list[2].ID)
	require.Contains(t, out, "changes of deployment "+list[1].ID.Short()+" and earlier ones outside of the tree are kept")
	require.FileExists(t, filepath.Join(dir, "site2"), "nobody knows any more that it was made")
}
