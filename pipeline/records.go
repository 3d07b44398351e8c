package pipeline

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// records is the table of all deployments. It is an index for people: what a deployment did to a project
// is in the journal. A put record is durable. Their order is that in which they came: a clock may jump back.
type records struct {
	db *sql.DB
	// tell adds a notification to the transaction of a record; nil tells nobody.
	tell func(ctx context.Context, tx db.Execer, n project.Notification) error
}

func openRecords(ctx context.Context, d *sql.DB) (*records, error) {
	err := db.Migrate(ctx, d, "pipeline", []string{
		`CREATE TABLE deployments (id TEXT PRIMARY KEY, project TEXT NOT NULL, at INTEGER NOT NULL, trigger TEXT NOT NULL,
			state TEXT NOT NULL, facts TEXT NOT NULL, result TEXT NOT NULL)`,
		`CREATE INDEX deployments_project ON deployments(project, at)`,
		`CREATE INDEX deployments_order ON deployments(project)`,
		`CREATE INDEX deployments_open ON deployments(state) WHERE ` + isOpen,
	})
	return &records{db: d}, err
}

// isOpen is true of a record that is not final. It stands in the index and in the queries with the same words, or the one would not serve the other.
const isOpen = `state IN ('waiting', 'running')`

// put writes a record, and what is told of it in the same transaction.
func (r *records) put(ctx context.Context, rec project.Record, news ...project.Notification) error {
	return r.write(ctx, r.db, rec, news)
}

// note is put of a record that may be lost in a power cut: the journal has what counts, or nothing has begun. Every later put makes it durable.
func (r *records) note(ctx context.Context, rec project.Record, news ...project.Notification) error {
	return db.Lazily(ctx, r.db, func(c *sql.Conn) error { return r.write(ctx, c, rec, news) })
}

// beginner is the database, or one connection to it.
type beginner interface {
	db.Execer
	BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error)
}

func (r *records) write(ctx context.Context, to beginner, rec project.Record, news []project.Notification) error {
	if r.tell == nil || len(news) == 0 {
		return writeRecord(ctx, to, rec)
	}
	tx, err := to.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := writeRecord(ctx, tx, rec); err != nil {
		return err
	}
	for _, n := range news {
		if err := r.tell(ctx, tx, n); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func writeRecord(ctx context.Context, to db.Execer, rec project.Record) error {
	facts, err := json.Marshal(rec.Deployment)
	if err != nil {
		return err
	}
	result := []byte("null")
	if rec.Result != nil {
		if result, err = json.Marshal(rec.Result); err != nil {
			return err
		}
	}
	_, err = to.ExecContext(ctx, `INSERT INTO deployments(id, project, at, trigger, state, facts, result) VALUES(?,?,?,?,?,?,?)
		ON CONFLICT(id) DO UPDATE SET state = excluded.state, facts = excluded.facts, result = excluded.result`,
		rec.ID, rec.Project, rec.At.UnixNano(), rec.Trigger, rec.State, facts, result)
	return err
}

const recordColumns = `SELECT state, facts, result FROM deployments `

func scanRecord(row interface{ Scan(...any) error }) (rec project.Record, err error) {
	var facts, result []byte
	if err := row.Scan(&rec.State, &facts, &result); err != nil {
		return rec, err
	}
	if err := json.Unmarshal(facts, &rec.Deployment); err != nil {
		return rec, err
	}
	return rec, json.Unmarshal(result, &rec.Result)
}

func (r *records) query(ctx context.Context, where string, args ...any) ([]project.Record, error) {
	rows, err := r.db.QueryContext(ctx, recordColumns+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []project.Record
	for rows.Next() {
		rec, err := scanRecord(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, rows.Err()
}

func (r *records) get(ctx context.Context, id project.ID) (project.Record, error) {
	rec, err := scanRecord(r.db.QueryRowContext(ctx, recordColumns+`WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return rec, fault.New(fault.Usage, "deployment", "no deployment %s", id.Short())
	}
	return rec, err
}

// find resolves what a person typed: an ID or its beginning; "" is the newest that is no plan.
func (r *records) find(ctx context.Context, name project.Name, prefix string) (project.Record, error) {
	if prefix == "" {
		list, err := r.query(ctx, `WHERE project = ? AND trigger <> 'plan' ORDER BY rowid DESC LIMIT 1`, name)
		if err == nil && len(list) == 0 {
			err = fault.New(fault.Usage, "deployment", "%s has no deployments yet", name).WithHint("push to it, or  corpus-git deploy %s", name)
		}
		if err != nil {
			return project.Record{}, err
		}
		return list[0], nil
	}
	prefix, err := project.ParseIDPrefix(prefix)
	if err != nil {
		return project.Record{}, err
	}
	list, err := r.query(ctx, `WHERE project = ? AND substr(id, 1, length(?2)) = ?2 ORDER BY rowid DESC LIMIT 2`, name, prefix)
	switch {
	case err != nil:
		return project.Record{}, err
	case len(list) == 0:
		return project.Record{}, fault.New(fault.Usage, "deployment", "%s has no deployment %s", name, prefix).WithHint("corpus-git deployments %s  lists them", name)
	case len(list) > 1:
		return project.Record{}, fault.New(fault.Usage, "deployment", "%s is the beginning of more than one ID", prefix).WithHint("type more digits: %s, %s, …", list[0].ID[:min(13, len(list[0].ID))], list[1].ID[:min(13, len(list[1].ID))])
	}
	return list[0], nil
}

func (r *records) list(ctx context.Context, name project.Name, limit int) ([]project.Record, error) {
	return r.query(ctx, `WHERE project = ? ORDER BY rowid DESC LIMIT ?`, name, limit)
}

// before lists those that are older than one.
func (r *records) before(ctx context.Context, name project.Name, id project.ID, limit int) ([]project.Record, error) {
	return r.query(ctx, `WHERE project = ?1 AND rowid < (SELECT rowid FROM deployments WHERE id = ?2 AND project = ?1) ORDER BY rowid DESC LIMIT ?3`, name, id, limit)
}

const whereLast = `WHERE rowid IN (SELECT (SELECT d.rowid FROM deployments d WHERE d.project = n.value AND NOT d.` + isOpen + ` ORDER BY d.rowid DESC LIMIT 1)
	FROM json_each(?) n)`

// whereLive finds the newest record of each of a list of projects that went live.
const whereLive = `WHERE rowid IN (SELECT (SELECT d.rowid FROM deployments d WHERE d.project = n.value AND d.state = 'live' ORDER BY d.rowid DESC LIMIT 1)
	FROM json_each(?) n)`

// last are the newest final records of the projects that have one.
func (r *records) last(ctx context.Context, names []project.Name) ([]project.Record, error) {
	return r.each(ctx, whereLast, names)
}

// live are the newest records of the projects that went live.
func (r *records) live(ctx context.Context, names []project.Name) ([]project.Record, error) {
	return r.each(ctx, whereLive, names)
}

// each runs a query over a list of projects.
func (r *records) each(ctx context.Context, where string, names []project.Name) ([]project.Record, error) {
	if len(names) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	return r.query(ctx, where, string(list))
}

// TrimRecords removes from a copy of the database the records of each project that came after one of its deployments, or all for "".
func TrimRecords(ctx context.Context, d *sql.DB, last map[project.Name]project.ID) error {
	for name, id := range last {
		_, err := d.ExecContext(ctx, `DELETE FROM deployments WHERE project = ?1 AND (?2 = '' OR rowid > (SELECT rowid FROM deployments WHERE id = ?2))`, name, id)
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *records) forget(ctx context.Context, name project.Name) error {
	_, err := r.db.ExecContext(ctx, `DELETE FROM deployments WHERE project = ?`, name)
	return err
}

// unfinished are the records that a dead server left open.
func (r *records) unfinished(ctx context.Context) ([]project.Record, error) {
	return r.query(ctx, `WHERE `+isOpen+` ORDER BY rowid`)
}

// ended are the newest records of all projects that are final.
func (r *records) ended(ctx context.Context, limit int) ([]project.Record, error) {
	return r.query(ctx, `WHERE NOT `+isOpen+` ORDER BY rowid DESC LIMIT ?`, limit)
}

// usual is how long the parts of the newest live deployment took.
func (r *records) usual(ctx context.Context, name project.Name) map[string]time.Duration {
	out := map[string]time.Duration{}
	list, err := r.query(ctx, `WHERE project = ? AND state = ? AND trigger <> ? ORDER BY rowid DESC LIMIT 1`, name, project.Live, project.TriggerRollback)
	if err != nil || len(list) == 0 || list[0].Result == nil {
		return out
	}
	for _, t := range list[0].Result.Timings {
		out[t.Name] = t.Duration
	}
	return out
}
