// Package recent reads, for lists of many projects, the results of the newest deployments of each: a few columns of pipeline's tables, by their indexes, without the facts and results.
//
// It owns nothing and changes nothing. A Table is safe for concurrent use.
package recent

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"corpus-git/pipeline/records"
	"corpus-git/project"
	"corpus-git/project/status"
)

// Table is pipeline's table of deployments.
type Table struct{ DB *sql.DB }

// waits is the condition for a request in the table approvals that can still be approved; an expired one is marked so when it is next read.
const waits = `state = 'open' AND expires > unixepoch() * 1000000000`

// Query reads the newest deployments (?2 at most) of each of a list of projects (?1, JSON). A test checks its query plan.
const Query = `SELECT d.project, d.id, d.at, d.trigger, d.state, d.id IN (SELECT id FROM approvals WHERE ` + waits + `) FROM json_each(?1) n JOIN deployments d ON d.rowid IN
		(SELECT o.rowid FROM deployments o WHERE o.project = n.value AND o.trigger NOT IN ('plan', 'check', 'converge') ORDER BY o.rowid DESC LIMIT ?2) ORDER BY d.rowid DESC`

// QueryFailed reads which of a list of projects (?1, JSON) have a newest final record that is not good; one that waits for approval is not final. A test checks its query plan.
const QueryFailed = `SELECT n.value FROM json_each(?1) n WHERE (SELECT d.state FROM deployments d WHERE d.rowid =
		(SELECT max(o.rowid) FROM deployments o WHERE o.project = n.value AND ` + records.IsEnded + `
		AND o.id NOT IN (SELECT id FROM approvals WHERE ` + waits + `))) NOT IN ('live', 'done')`

// QueryAsked counts the requests of each of a list of projects (?1, JSON) that wait for approval. A test checks its query plan.
const QueryAsked = `SELECT project, count(*) FROM approvals INDEXED BY approvals_open WHERE ` + waits + ` AND project IN (SELECT value FROM json_each(?1)) GROUP BY project`

// Asked returns how many deployments of each project wait for approval, without those that have none.
func (t Table) Asked(ctx context.Context, names []project.Name) (map[project.Name]int, error) {
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	rows, err := t.DB.QueryContext(ctx, QueryAsked, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[project.Name]int{}
	for rows.Next() {
		var name project.Name
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		out[name] = n
	}
	return out, rows.Err()
}

// Failed returns the projects whose newest ended deployment was not successful; plans, checks, converges and what waits for approval do not count.
func (t Table) Failed(ctx context.Context, names []project.Name) (map[project.Name]bool, error) {
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	rows, err := t.DB.QueryContext(ctx, QueryFailed, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[project.Name]bool{}
	for rows.Next() {
		var name project.Name
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out[name] = true
	}
	return out, rows.Err()
}

// Newest returns the newest deployments of each project that has any, at most n of each, the newest first. Plans and checks, which change nothing, and converges, which deploy nothing new, are not
// included.
func (t Table) Newest(ctx context.Context, names []project.Name, n int) (map[project.Name][]status.Mark, error) {
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	rows, err := t.DB.QueryContext(ctx, Query, string(list), n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[project.Name][]status.Mark{}
	for rows.Next() {
		var name project.Name
		var m status.Mark
		var at int64
		if err := rows.Scan(&name, &m.ID, &at, &m.Trigger, &m.State, &m.Asked); err != nil {
			return nil, err
		}
		m.At = time.Unix(0, at)
		out[name] = append(out[name], m)
	}
	return out, rows.Err()
}
