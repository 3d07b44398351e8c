package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/pipeline/records"
	"corpus-git/pipeline/retention"
	"corpus-git/project"
)

func TestHistoryIsBounded(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	r, err := records.Open(t.Context(), d)
	require.NoError(t, err)
	put := func(name project.Name, id string, state project.State) {
		rec := project.Record{State: state}
		rec.ID, rec.Project = project.ID(id), name
		require.NoError(t, r.Put(t.Context(), rec))
	}
	put("app", "open", project.Running)
	for i := range 30 {
		put("app", fmt.Sprint("a", i), project.Live)
		put("other", fmt.Sprint("o", i), project.Live)
	}
	old, err := r.Beyond(t.Context(), "app", 20, map[string]bool{"a3": true})
	require.NoError(t, err)
	require.Equal(t, []string{"a9", "a8", "a7", "a6", "a5", "a4", "a2", "a1", "a0"}, old, "nothing that runs, is kept, or belongs to others")
	require.NoError(t, r.Remove(t.Context(), old))
	list, err := r.List(t.Context(), "app", 100)
	require.NoError(t, err)
	require.Len(t, list, 22)
	list, err = r.List(t.Context(), "other", 100)
	require.NoError(t, err)
	require.Len(t, list, 30)
}

func TestTheOldestLogsGo(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for i := range 6 {
		path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", i))
		require.NoError(t, os.WriteFile(path, make([]byte, 100), 0o600))
		at := now.Add(time.Duration(i-10) * time.Hour)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "note"), make([]byte, 1000), 0o600))
	n, err := retention.PruneLogs(dir, 350, map[string]bool{"0": true})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	left, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Equal(t, []string{"0.jsonl", "4.jsonl", "5.jsonl"}, []string{filepath.Base(left[0]), filepath.Base(left[1]), filepath.Base(left[2])})
	n, err = retention.PruneLogs(filepath.Join(dir, "none"), 1, nil)
	require.NoError(t, err)
	require.Zero(t, n)
}
