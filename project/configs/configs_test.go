package configs

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/project"
)

func store(t testing.TB) (*Store, *sql.DB) {
	t.Helper()
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	_, err = d.ExecContext(t.Context(), `CREATE TABLE deployments (id TEXT PRIMARY KEY)`)
	require.NoError(t, err)
	s, err := Open(t.Context(), d, func() time.Time { return time.Unix(7, 0) })
	require.NoError(t, err)
	return s, d
}

func TestConfigsNeverChange(t *testing.T) {
	s, d := store(t)
	c := Config{Group: "script", File: "010_a", Source: "#!/bin/sh\n"}
	for i := range 2 {
		var failed []string
		end := s.Begin(c, Deployment{Deployment: "one", Project: "app", Step: "010_a", Server: "web1", Action: Deploy, Inputs: json.RawMessage(`{"port":1}`)}, func(err error) { failed = append(failed, err.Error()) })
		if i == 0 {
			end(Complete, "", json.RawMessage(`{"v":"2"}`))
			s.Flush()
			require.Empty(t, failed)
			end(Failed, "", nil)
			s.Flush()
			require.Len(t, failed, 1)
			require.Contains(t, failed[0], "this deployment has ended")
		}
	}
	s.Flush()
	list, err := s.List(t.Context(), Filter{Server: "web1", Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, list[0].Config, list[1].Config, "the same content is the same config")
	require.Equal(t, InProgress, list[0].State)
	require.Equal(t, Complete, list[1].State)
	require.JSONEq(t, `{"v":"2"}`, string(list[1].Outputs))
	require.JSONEq(t, `{"port":1}`, string(list[1].Inputs))
	got, err := s.Get(t.Context(), list[0].Config[:8])
	require.NoError(t, err)
	require.Equal(t, c.Source, got.Source)

	for statement, want := range map[string]string{
		`UPDATE configs SET source = 'x'`:                                                                 "a config never changes",
		`UPDATE configs SET grp = grp`:                                                                    "a config never changes",
		`DELETE FROM configs`:                                                                             "refers to this config",
		`UPDATE config_deployments SET server = 'x' WHERE seq = 2`:                                        "never changes",
		`UPDATE config_deployments SET config = 'x' WHERE seq = 2`:                                        "never changes",
		`UPDATE config_deployments SET inputs = '{}' WHERE seq = 2`:                                       "never changes",
		`UPDATE config_deployments SET state = 'LOST' WHERE seq = 2`:                                      "CHECK",
		`INSERT OR REPLACE INTO configs SELECT id, grp, file, 'x', inputs, outputs, options FROM configs`: "a config never changes",
		`INSERT OR REPLACE INTO config_deployments SELECT seq, deployment, project, step, config, 'x', action, state, reason, inputs, outputs, began, ended FROM config_deployments`: "never changes",
	} {
		_, err := d.ExecContext(t.Context(), statement)
		require.ErrorContains(t, err, want, statement)
	}

	n, err := s.Abandon(t.Context(), "other", "one")
	require.NoError(t, err)
	require.Zero(t, n, "it continues")
	n, err = s.Abandon(t.Context(), "other")
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	list, err = s.List(t.Context(), Filter{Deployment: "one", Limit: 1})
	require.NoError(t, err)
	require.Equal(t, Failed, list[0].State)
	require.Equal(t, "the server ended before the step did", list[0].Reason)

	// A deployment that is forgotten also removes what it applied, and configs that nothing else refers to.
	_, err = d.ExecContext(t.Context(), `INSERT INTO deployments(id) VALUES('one')`)
	require.NoError(t, err)
	_, err = d.ExecContext(t.Context(), `DELETE FROM deployments`)
	require.NoError(t, err)
	list, err = s.List(t.Context(), Filter{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = s.Get(t.Context(), got.ID)
	require.ErrorContains(t, err, "no config")
}

func TestConfigsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []Config{{}, {Group: "a"}, {File: "a"}, {Source: "a"}, {Inputs: "a"}, {Outputs: "a"}, {Options: "a"}, {Group: "a", File: "b"}, {Group: "ab"}, {File: "ab"}} {
		require.False(t, seen[c.hash()], "%+v", c)
		seen[c.hash()] = true
	}
}

// TestListingIsIndexed: each way to list is a search of an index in its order; nothing is scanned or sorted, however many there are.
func TestListingIsIndexed(t *testing.T) {
	_, d := store(t)
	for _, f := range []Filter{{Server: "a"}, {Project: "a"}, {Deployment: "a"}, {}} {
		f.Limit = 20
		text, args := f.query()
		rows, err := d.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
		require.NoError(t, err)
		var plan []string
		for rows.Next() {
			var a, b, c int
			var detail string
			require.NoError(t, rows.Scan(&a, &b, &c, &detail))
			plan = append(plan, detail)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		require.NotContains(t, fmt.Sprint(plan), "TEMP B-TREE", "%+v", f)
		if f != (Filter{Limit: 20}) {
			require.NotContains(t, fmt.Sprint(plan), "SCAN", "%+v", f)
		}
	}
}

// BenchmarkList lists twenty of 100,000 by server; it should take less than 10 ms.
func BenchmarkList(b *testing.B) {
	s, d := store(b)
	_, err := d.ExecContext(b.Context(), `INSERT INTO configs VALUES('c', 'script', 'f', 's', '', '', '')`)
	require.NoError(b, err)
	_, err = d.ExecContext(b.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
		INSERT INTO config_deployments SELECT i, 'd' || i, 'app', '010_a', 'c', 'web' || (i % 10), 'DEPLOY', 'COMPLETE', '', '', '', i, i FROM n`)
	require.NoError(b, err)
	for b.Loop() {
		list, err := s.List(b.Context(), Filter{Server: "web3", Limit: 20})
		require.NoError(b, err)
		require.Len(b, list, 20)
		require.Equal(b, project.Name("app"), list[0].Project)
	}
}

// A step that another process continues is the same row.
func TestContinue(t *testing.T) {
	s, _ := store(t)
	c, of := Config{Group: "salt", File: "010.sls"}, Deployment{Deployment: "one", Project: "app", Step: "010", Action: Deploy}
	fails := func(err error) { t.Error(err) }
	s.Begin(c, of, fails)
	s.Begin(c, of, fails)(Complete, "", nil)
	other := of
	other.Action = Rollback
	s.Begin(c, other, fails)
	s.Flush()
	require.NoError(t, s.AbandonOf(t.Context(), "one"))
	list, err := s.List(t.Context(), Filter{Deployment: "one", Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, Failed, list[0].State)
	require.Equal(t, Complete, list[1].State)
}

// What many deployments record is in the order of their calls, whatever shares a transaction; what the tables refuse affects nothing else.
func TestWritesKeepTheirOrder(t *testing.T) {
	s, _ := store(t)
	var failed atomic.Int64
	var ends []func(State, string, json.RawMessage)
	for i := range 50 {
		d := Deployment{Deployment: project.ID(fmt.Sprint("d", i)), Project: "app", Step: "010_a", Action: Deploy}
		ends = append(ends, s.Begin(Config{Group: "salt", File: fmt.Sprint(i % 3)}, d, func(error) { failed.Add(1) }))
	}
	for i, end := range ends {
		end(Complete, fmt.Sprint(i), nil)
		end("LOST", "", nil) // refused: it has ended
	}
	s.Flush()
	require.EqualValues(t, len(ends), failed.Load())
	list, err := s.List(t.Context(), Filter{Limit: 100})
	require.NoError(t, err)
	require.Len(t, list, len(ends))
	for i, d := range list {
		n := len(ends) - 1 - i
		require.Equal(t, []any{project.ID(fmt.Sprint("d", n)), Complete, fmt.Sprint(n)}, []any{d.Deployment, d.State, d.Reason})
	}
}

// Without its database nothing is recorded, and each caller is told once.
func TestFailedWritesAreTold(t *testing.T) {
	s, d := store(t)
	require.NoError(t, d.Close())
	var failed []error
	s.Begin(Config{}, Deployment{}, func(err error) { failed = append(failed, err) })(Complete, "", nil)
	s.Flush()
	require.NotEmpty(t, failed)
	(*Store)(nil).Flush()
}
