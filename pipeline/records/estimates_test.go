package records

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/project"
)

// Estimates are those of the good deployments in the table, whatever was asked before and whichever way the table changes.
func TestEstimates(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	r, err := Open(t.Context(), d)
	require.NoError(t, err)
	at := time.Unix(1000, 0)
	deployed := func(id, name string, took time.Duration, state project.State, change func(*project.Record)) project.Record {
		rec := project.Record{State: state, Result: &project.Result{State: state, Started: at, Ended: at.Add(took), Timings: []project.Timing{{Name: "install", Duration: took / 2}}}}
		rec.ID, rec.Project, rec.Trigger = project.ID(id), project.Name(name), project.TriggerPush
		if change != nil {
			change(&rec)
		}
		return rec
	}
	usual := func(name string) (whole project.Estimate) {
		t.Helper()
		got, err := r.Estimates(t.Context(), project.Name(name))
		require.NoError(t, err)
		require.True(t, r.Estimated(project.Name(name)))
		fresh, err := (&Store{db: d}).Estimates(t.Context(), project.Name(name))
		require.NoError(t, err)
		require.Equal(t, fresh, got, "what is remembered is what the table says")
		live, err := r.Live(t.Context(), []project.Name{project.Name(name)})
		require.NoError(t, err)
		again, err := r.Live(t.Context(), []project.Name{project.Name(name)})
		require.NoError(t, err)
		table, err := (&Store{db: d}).Live(t.Context(), []project.Name{project.Name(name)})
		require.NoError(t, err)
		require.Equal(t, table, live)
		require.Equal(t, table, again)
		require.Equal(t, got[""].Median/2, got["install"].Median)
		return got[""]
	}
	require.Zero(t, usual("app"))
	require.NoError(t, r.Put(t.Context(), deployed("1", "app", 2*time.Second, project.Live, nil)))
	require.False(t, r.Estimated("app"))
	require.Equal(t, project.Estimate{Median: 2 * time.Second, P90: 2 * time.Second, Runs: 1}, usual("app"))

	require.NoError(t, r.Note(t.Context(), deployed("2", "app", time.Hour, project.Running, nil)))
	require.True(t, r.Estimated("app"), "what runs is no run yet")
	require.NoError(t, r.Note(t.Context(), deployed("2", "app", 4*time.Second, project.Live, nil)))
	require.Equal(t, project.Estimate{Median: 3 * time.Second, P90: 4 * time.Second, Runs: 2}, usual("app"))

	for id, change := range map[string]func(*project.Record){
		"skips":     func(rec *project.Record) { rec.Select.Skip = []string{"install"} },
		"resumes":   func(rec *project.Record) { rec.Resume = "1" },
		"unhealthy": func(rec *project.Record) { rec.Result.Unhealthy = "check http" },
		"rollback":  func(rec *project.Record) { rec.Trigger = project.TriggerRollback },
		"failed":    func(rec *project.Record) { rec.State = project.RolledBack },
		"other":     func(rec *project.Record) { rec.Project = "other" },
	} {
		require.NoError(t, r.Put(t.Context(), deployed(id, "app", time.Minute, project.Live, change)))
		require.Equal(t, 2, usual("app").Runs, id)
	}
	require.Equal(t, 1, usual("other").Runs)

	require.NoError(t, r.Remove(t.Context(), []string{"1"}))
	require.Equal(t, project.Estimate{Median: 4 * time.Second, P90: 4 * time.Second, Runs: 1}, usual("app"))
	for i := range 2 * project.EstimateRuns {
		require.NoError(t, r.Put(t.Context(), deployed(fmt.Sprint("n", i), "app", time.Second, project.Live, nil)))
	}
	require.Equal(t, project.Estimate{Median: time.Second, P90: time.Second, Runs: project.EstimateRuns}, usual("app"))
	require.NoError(t, r.Forget(t.Context(), "app"))
	require.Zero(t, usual("app"))
	require.Equal(t, 1, usual("other").Runs)

	// What was found before a change is not kept.
	_, since, _ := r.usual.get("app")
	r.usual.forget("other")
	r.usual.keep("other", nil, since)
	require.False(t, r.Estimated("other"))
	for i := range 2 * maxRemembered {
		_, err := r.Estimates(t.Context(), project.Name(fmt.Sprint("p", i)))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(r.usual.of), maxRemembered)
}
