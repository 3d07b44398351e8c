// Package recent reads, for lists of many projects, the results of the newest deployments of each: a few columns of pipeline's table, by its index, without the facts and results.
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

// Query reads the newest deployments (?2 at most) of each of a list of projects (?1, JSON). A test checks its query plan.
const Query = `SELECT d.project, d.id, d.at, d.trigger, d.state FROM json_each(?1) n JOIN deployments d ON d.rowid IN
		(SELECT o.rowid FROM deployments o WHERE o.project = n.value AND o.trigger NOT IN ('plan', 'check', 'converge') ORDER BY o.rowid DESC LIMIT ?2) ORDER BY d.rowid DESC`

// QueryFailed reads which of a list of projects (?1, JSON) have a newest final record that is not good. A test checks its query plan.
const QueryFailed = `SELECT n.value FROM json_each(?1) n WHERE (SELECT d.state FROM deployments d WHERE d.rowid =
		(SELECT max(o.rowid) FROM deployments o WHERE o.project = n.value AND ` + records.IsEnded + `)) NOT IN ('live', 'done')`

// Failed returns the projects whose newest ended deployment was not successful; plans, checks and converges do not count.
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
		if err := rows.Scan(&name, &m.ID, &at, &m.Trigger, &m.State); err != nil {
			return nil, err
		}
		m.At = time.Unix(0, at)
		out[name] = append(out[name], m)
	}
	return out, rows.Err()
}
