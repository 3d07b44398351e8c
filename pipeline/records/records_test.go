package records

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/project"
)

// A clock that jumps back changes nothing about which deployment was the last one.
func TestRecordsKeepTheOrderInWhichTheyCame(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	r, err := Open(t.Context(), d)
	require.NoError(t, err)
	for i, year := range []int{2030, 2020, 2025} {
		rec := project.Record{State: project.Waiting}
		rec.ID, rec.Project = project.ID(string(rune('a'+i))), "app"
		rec.At = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		require.NoError(t, r.Put(t.Context(), rec))
	}
	// A later change of the first one does not make it the last.
	first, err := r.Get(t.Context(), "a")
	require.NoError(t, err)
	first.State = project.Live
	require.NoError(t, r.Put(t.Context(), first))
	list, err := r.List(t.Context(), "app", 10)
	require.NoError(t, err)
	var got string
	for _, rec := range list {
		got += string(rec.ID)
	}
	require.Equal(t, "cba", got)
	last, err := r.Find(t.Context(), "app", "")
	require.NoError(t, err)
	require.Equal(t, project.ID("c"), last.ID)
}

// The newest final records of many projects are read by one query, which only searches the index for each project.
func TestLastRecords(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	r, err := Open(t.Context(), d)
	require.NoError(t, err)
	for i, x := range []struct {
		name  project.Name
		state project.State
	}{{"a", project.Live}, {"b", project.Live}, {"a", project.RolledBack}, {"c", project.Live}, {"a", project.Running}, {"a", project.Waiting}, {"d", project.Running}, {"b", project.Refused}} {
		rec := project.Record{State: x.state}
		rec.ID, rec.Project = project.ID(string(rune('1'+i))), x.name
		require.NoError(t, r.Put(t.Context(), rec))
	}
	list, err := r.Last(t.Context(), []project.Name{"b", "a", "d", "nobody"})
	require.NoError(t, err)
	got := map[project.Name]project.ID{}
	for _, rec := range list {
		got[rec.Project] = rec.ID
	}
	require.Equal(t, map[project.Name]project.ID{"a": "3", "b": "8"}, got)
	list, err = r.Last(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, list)
	rows, err := d.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+recordColumns+whereLast, `["a"]`)
	require.NoError(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var line string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &line))
		plan = append(plan, line)
	}
	require.NoError(t, rows.Err())
	require.Contains(t, plan, "SEARCH d USING INDEX deployments_order (project=?)")
	require.NotContains(t, strings.Join(plan, "\n"), "SCAN d")
}

// What a dead server left open is found without reading all records.
func TestUnfinishedRecordsHaveAnIndex(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	r, err := Open(t.Context(), d)
	require.NoError(t, err)
	for i, state := range []project.State{project.Live, project.Waiting, project.Failed, project.Running, project.Refused} {
		rec := project.Record{State: state}
		rec.ID, rec.Project = project.ID(string(rune('a'+i))), "app"
		require.NoError(t, r.Put(t.Context(), rec))
	}
	open, err := r.Unfinished(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 2)
	require.Equal(t, project.ID("b"), open[0].ID)
	require.Equal(t, project.ID("d"), open[1].ID)
	var id, parent, unused int
	var plan string
	require.NoError(t, d.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN `+recordColumns+`WHERE `+isOpen).Scan(&id, &parent, &unused, &plan))
	require.Contains(t, plan, "deployments_open")
}
