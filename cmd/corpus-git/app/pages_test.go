package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/access"
	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/internal/redact"
	"corpus-git/pipeline/recent"
	"corpus-git/project"
)

// manyDeployments writes records of that many projects, with long texts that are even longer in HTML. It returns the newest of the first project, which has a log.
func manyDeployments(t testing.TB, s *server, projects, each int) project.Record {
	t.Helper()
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	text := strings.Repeat(`<"&'>`, 60)
	var newest project.Record
	begun := time.Now().Add(-time.Duration(each) * time.Hour)
	for i := range projects {
		name := project.Name(fmt.Sprintf("project-with-a-name-%04d", i))
		_, err := tx.ExecContext(t.Context(), `INSERT INTO projects(name, env, remote_less, linked, created) VALUES (?, 'prod', 1, 0, 1)`, name)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(s.root.Project(string(name)).Live(), 0o755))
		for j := range each {
			at := begun.Add(time.Duration(j) * time.Hour)
			rec := project.Record{Deployment: project.Deployment{ID: project.NewID(), Project: name, Trigger: project.TriggerPush, At: at, Pusher: project.Pusher{Key: "marie" + text[:40]}},
				State: project.Live, Result: &project.Result{State: project.Live, Reason: text, Unhealthy: text, Started: at, Ended: at.Add(time.Second)}}
			if j%7 == 0 {
				rec.State, rec.Result.State = project.RolledBack, project.RolledBack
			}
			for k := range 30 {
				rec.Result.Timings = append(rec.Result.Timings, project.Timing{Name: fmt.Sprintf("install/%04d_a_step_with_a_name", k), Duration: time.Second})
			}
			facts, err := json.Marshal(rec.Deployment)
			require.NoError(t, err)
			result, err := json.Marshal(rec.Result)
			require.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), `INSERT INTO deployments(id, project, at, trigger, state, facts, result) VALUES (?,?,?,?,?,?,?)`, rec.ID, name, at.UnixNano(), rec.Trigger, rec.State, facts, result)
			require.NoError(t, err)
			if i == 0 {
				newest = rec
			}
		}
	}
	require.NoError(t, tx.Commit())
	path := s.state.EventLog(string(newest.Project), string(newest.ID))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	log, err := event.Create(path, time.Now, redact.New(nil))
	require.NoError(t, err)
	for i := range 3000 {
		log.Append(event.Event{Kind: event.Output, Step: fmt.Sprintf("%04d", i/100), Text: fmt.Sprint(i, text[:i%300])})
	}
	require.NoError(t, log.Close())
	return newest
}

// audited writes so many entries into the audit log.
func audited(t testing.TB, s *server, n int) {
	t.Helper()
	list := make([]audit.Entry, n)
	for i := range list {
		list[i] = audit.Entry{Actor: "marie", Action: "push", Project: fmt.Sprintf("project-with-a-name-%04d", i%1000), Object: strings.Repeat(`<"&'>`, 20), Outcome: "ok", Detail: strings.Repeat("why ", 50)}
	}
	require.NoError(t, s.audit.RecordAll(t.Context(), list))
}

// administrator makes a token that may do everything.
func administrator(t testing.TB, s *server) string {
	t.Helper()
	local := access.Local("root")
	_, err := s.access.AddPrincipal(t.Context(), local, access.Principal{Name: "boss", Kind: access.Person, Admin: true})
	require.NoError(t, err)
	_, secret, err := s.access.AddToken(t.Context(), local, access.Token{Name: "pages", Principal: "boss", Expires: s.web.Now().Add(3600e9)})
	require.NoError(t, err)
	return secret
}

// visit reads a page, and returns its size.
func visit(t testing.TB, s *server, token, path string) int {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.webAddr.Addr().String()+path, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s\n%s", path, body)
	return len(body)
}

// pagesOf are the pages that show lists.
func pagesOf(rec project.Record) map[string]string {
	at := "/projects/" + string(rec.Project)
	log := at + "/deployments/" + string(rec.ID)
	return map[string]string{
		"home": "/", "home-page-2": "/?page=2", "home-search": "/?q=7", "home-failed": "/?show=failed", "project": at, "archives": at + "/archives", "statistics": at + "/statistics",
		"cfg": at + "/cfg", "access": at + "/access", "notifications": at + "/notifications", "units": at + "/units", "project-audit": at + "/audit", "deploy-form": at + "/deploy", "rollback-form": at + "/rollback",
		"task-form": at + "/tasks", "home-approval": "/?show=approval", "keys": "/keys", "audit": "/audit", "system": "/system", "deployment": log, "deployment-part": log + "?part=1", "deployment-search": log + "?q=7",
	}
}

// No page grows with the number of records.
func TestPagesAreBounded(t *testing.T) {
	s := running(t, t.TempDir(), map[string]string{"listen": "127.0.0.1:0", "http-listen": "127.0.0.1:0"})
	rec, token := manyDeployments(t, s, 60, 40), administrator(t, s)
	audited(t, s, 200)
	for name, path := range pagesOf(rec) {
		if name == "home-page-2" || name == "home" || name == "project" || name == "deployment" {
			require.Greater(t, visit(t, s, token, path), 5000, path)
		}
		require.Less(t, visit(t, s, token, path), 100_000, path)
	}
}

// The strips of all projects are read by index: a page takes as long with a hundred thousand records as with a thousand.
func TestRecentIsReadByIndex(t *testing.T) {
	s := running(t, t.TempDir(), map[string]string{"listen": "127.0.0.1:0"})
	rec := manyDeployments(t, s, 3, 30)
	got, err := recent.Table{DB: s.db}.Newest(t.Context(), []project.Name{rec.Project, "none"}, 20)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Len(t, got[rec.Project], 20)
	require.Equal(t, rec.ID, got[rec.Project][0].ID, "the newest first")
	failed, err := recent.Table{DB: s.db}.Failed(t.Context(), []project.Name{rec.Project, "none"})
	require.NoError(t, err)
	require.Empty(t, failed)
	second := project.Name("project-with-a-name-0001")
	_, err = s.db.ExecContext(t.Context(), `UPDATE deployments SET state = 'rolled back' WHERE rowid = (SELECT max(rowid) FROM deployments WHERE project = ?)`, second)
	require.NoError(t, err)
	for i, later := range []string{"plan', 'done", "push', 'running"} { // neither shows the result of the newest one
		_, err = s.db.ExecContext(t.Context(), `INSERT INTO deployments(id, project, at, trigger, state, facts, result) VALUES (?, ?, 1, '`+later+`', '{}', 'null')`, i, second)
		require.NoError(t, err)
	}
	failed, err = recent.Table{DB: s.db}.Failed(t.Context(), []project.Name{rec.Project, second, "none"})
	require.NoError(t, err)
	require.Equal(t, map[project.Name]bool{second: true}, failed)

	// What waits for approval has not failed, and what failed before it has; an expired request counts as refused.
	expires := time.Now().Add(time.Hour).UnixNano()
	_, err = s.db.ExecContext(t.Context(), `INSERT INTO deployments(id, project, at, trigger, state, facts, result) VALUES ('asked', ?, 1, 'push', 'refused', '{}', 'null')`, rec.Project)
	require.NoError(t, err)
	_, err = s.db.ExecContext(t.Context(), `INSERT INTO approvals(id, project, at, expires, need, plan, facts, state) VALUES ('asked', ?, 1, ?, 1, '', '{}', 'open')`, rec.Project, expires)
	require.NoError(t, err)
	all := []project.Name{rec.Project, second, "none"}
	failed, err = recent.Table{DB: s.db}.Failed(t.Context(), all)
	require.NoError(t, err)
	require.Equal(t, map[project.Name]bool{second: true}, failed)
	asked, err := recent.Table{DB: s.db}.Asked(t.Context(), all)
	require.NoError(t, err)
	require.Equal(t, map[project.Name]int{rec.Project: 1}, asked)
	marks, err := recent.Table{DB: s.db}.Newest(t.Context(), all, 2)
	require.NoError(t, err)
	require.True(t, marks[rec.Project][0].Asked)
	require.False(t, marks[rec.Project][1].Asked)
	_, err = s.db.ExecContext(t.Context(), `UPDATE approvals SET expires = 1`)
	require.NoError(t, err)
	failed, err = recent.Table{DB: s.db}.Failed(t.Context(), all)
	require.NoError(t, err)
	require.Equal(t, map[project.Name]bool{rec.Project: true, second: true}, failed)
	asked, err = recent.Table{DB: s.db}.Asked(t.Context(), all)
	require.NoError(t, err)
	require.Empty(t, asked)

	readsByIndex(t, s, recent.Query, `["a"]`, 20)
	readsByIndex(t, s, recent.QueryFailed, `["a"]`)
	readsByIndex(t, s, recent.QueryAsked, `["a"]`)
}

// readsByIndex fails for a query that reads the whole table of deployments.
func readsByIndex(t *testing.T, s *server, query string, args ...any) {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		require.NotRegexp(t, `SCAN (d|o|deployments)\b`, detail)
	}
	require.NoError(t, rows.Err())
}

// BenchmarkPages reads each page at 1,000 projects and 100,000 deployments. cpu-ms/op is the CPU time that it takes, server and reader together, whatever
// else the machine does.
func BenchmarkPages(b *testing.B) {
	s := running(b, b.TempDir(), map[string]string{"listen": "127.0.0.1:0", "http-listen": "127.0.0.1:0"})
	rec, token := manyDeployments(b, s, 1000, 100), administrator(b, s)
	audited(b, s, 100_000)
	for name, path := range pagesOf(rec) {
		b.Run(name, func(b *testing.B) {
			before, n := processors(b), 0
			for b.Loop() {
				b.ReportMetric(float64(visit(b, s, token, path)), "bytes")
				n++
			}
			b.ReportMetric((processors(b)-before).Seconds()*1000/float64(n), "cpu-ms/op")
		})
	}
}

// processors returns the CPU time of this process so far.
func processors(t testing.TB) time.Duration {
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
