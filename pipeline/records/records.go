// Package records is the table of all deployments: an index for people, written in one transaction with notifications.
//
// It owns the table and its queries. It does not decide what a deployment did: the journal does.
//
// A crash leaves records of deployments unfinished; recovery ends them.
package records

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Store is the table of all deployments. It is an index for people: the journal is the authority on what a deployment did to a project. Records are
// ordered by insertion, since the clock may be set back.
type Store struct {
	db *sql.DB
	// Notify adds a notification to the transaction of a record; nil notifies nobody.
	Notify func(ctx context.Context, tx db.Execer, n project.Notification) error

	usual remembered[map[string]project.Estimate]
	live  remembered[[]project.Record]
}

// Open creates the table in a database if it is missing.
func Open(ctx context.Context, d *sql.DB) (*Store, error) {
	err := db.Migrate(ctx, d, "pipeline", []string{
		`CREATE TABLE deployments (id TEXT PRIMARY KEY, project TEXT NOT NULL, at INTEGER NOT NULL, trigger TEXT NOT NULL,
			state TEXT NOT NULL, facts TEXT NOT NULL, result TEXT NOT NULL)`,
		`CREATE INDEX deployments_project ON deployments(project, at)`,
		`CREATE INDEX deployments_order ON deployments(project)`,
		`CREATE INDEX deployments_open ON deployments(state) WHERE ` + isOpen,
		`CREATE INDEX deployments_ended ON deployments(project) WHERE ` + IsEnded,
	})
	return &Store{db: d}, err
}

// isOpen is the condition for a record that is not final. The index and the queries must use the same text.
const isOpen = `state IN ('waiting', 'running')`

// IsEnded is the condition for a final record of something that a person requested and that changes something. The index and the queries must use the
// same text.
const IsEnded = `state NOT IN ('waiting', 'running') AND trigger NOT IN ('plan', 'check', 'converge')`

// Put writes a record, and its notifications in the same transaction.
func (r *Store) Put(ctx context.Context, rec project.Record, news ...project.Notification) error {
	return r.write(ctx, r.db, rec, news)
}

// Note is Put for a record that a power cut may lose: the journal has the facts, or nothing has begun. Every later Put makes it durable.
func (r *Store) Note(ctx context.Context, rec project.Record, news ...project.Notification) error {
	return db.WithoutSync(ctx, r.db, func(c *sql.Conn) error { return r.write(ctx, c, rec, news) })
}

// txBeginner is the database, or one connection to it.
type txBeginner interface {
	db.Execer
	BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error)
}

func (r *Store) write(ctx context.Context, to txBeginner, rec project.Record, news []project.Notification) error {
	if rec.State != project.Waiting && rec.State != project.Running {
		defer r.changed(rec.Project)
	}
	if r.Notify == nil || len(news) == 0 {
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
		if err := r.Notify(ctx, tx, n); err != nil {
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

func (r *Store) query(ctx context.Context, where string, args ...any) ([]project.Record, error) {
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

// Get returns one record; fault.Usage if there is none.
func (r *Store) Get(ctx context.Context, id project.ID) (project.Record, error) {
	rec, err := scanRecord(r.db.QueryRowContext(ctx, recordColumns+`WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return rec, fault.New(fault.Usage, "deployment", "no deployment %s", id.Short())
	}
	return rec, err
}

// Find resolves what a person typed: an ID or a prefix of one; "" means the newest that is not a plan.
func (r *Store) Find(ctx context.Context, name project.Name, prefix string) (project.Record, error) {
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
	// By the index of id; the plus signs keep the others out of it (SQLite documentation, "Disqualifying WHERE Clause Terms Using Unary +").
	list, err := r.query(ctx, `WHERE id >= ?2 AND id < ?2 || '~' AND +project = ?1 ORDER BY +rowid DESC LIMIT 2`, name, prefix)
	switch {
	case err != nil:
		return project.Record{}, err
	case len(list) == 0:
		return project.Record{}, fault.New(fault.Usage, "deployment", "%s has no deployment %s", name, prefix).WithHint("corpus-git deployments %s  lists them", name)
	case len(list) > 1:
		return project.Record{}, fault.New(fault.Usage, "deployment", "%s is ambiguous: it matches more than one ID", prefix).WithHint("give more digits: %s, %s, …", list[0].ID[:min(13, len(list[0].ID))], list[1].ID[:min(13, len(list[1].ID))])
	}
	return list[0], nil
}

// List returns a project's newest records, the newest first.
func (r *Store) List(ctx context.Context, name project.Name, limit int) ([]project.Record, error) {
	return r.query(ctx, `WHERE project = ? ORDER BY rowid DESC LIMIT ?`, name, limit)
}

// Undeployed reports whether the last thing that happened to a project is that it was undeployed.
func (r *Store) Undeployed(ctx context.Context, name project.Name) (is bool, err error) {
	err = r.db.QueryRowContext(ctx, `SELECT trigger = 'undeploy' FROM deployments WHERE project = ? AND (state = 'live' OR state = 'done' AND trigger = 'undeploy') ORDER BY rowid DESC LIMIT 1`, name).Scan(&is)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return is, err
}

// Before lists the records of a project that are older than one of them.
func (r *Store) Before(ctx context.Context, name project.Name, id project.ID, limit int) ([]project.Record, error) {
	return r.query(ctx, `WHERE project = ?1 AND rowid < (SELECT rowid FROM deployments WHERE id = ?2 AND project = ?1) ORDER BY rowid DESC LIMIT ?3`, name, id, limit)
}

const whereLast = `WHERE rowid IN (SELECT (SELECT d.rowid FROM deployments d WHERE d.project = n.value AND NOT d.` + isOpen + ` ORDER BY d.rowid DESC LIMIT 1)
	FROM json_each(?) n)`

// whereLive finds the newest record of each of a list of projects that went live.
const whereLive = `WHERE rowid IN (SELECT (SELECT d.rowid FROM deployments d WHERE d.project = n.value AND d.state = 'live' ORDER BY d.rowid DESC LIMIT 1)
	FROM json_each(?) n)`

// Last returns the newest final records of the projects that have one.
func (r *Store) Last(ctx context.Context, names []project.Name) ([]project.Record, error) {
	return r.each(ctx, whereLast, names)
}

// each runs a query over a list of projects.
func (r *Store) each(ctx context.Context, where string, names []project.Name) ([]project.Record, error) {
	if len(names) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	return r.query(ctx, where, string(list))
}

// Trim removes from a copy of the database the records of each project that came after one of its deployments, or all for "".
func Trim(ctx context.Context, d *sql.DB, last map[project.Name]project.ID) error {
	for name, id := range last {
		_, err := d.ExecContext(ctx, `DELETE FROM deployments WHERE project = ?1 AND (?2 = '' OR rowid > (SELECT rowid FROM deployments WHERE id = ?2))`, name, id)
		if err != nil {
			return err
		}
	}
	return nil
}

// Forget removes all records of a project. It is durable on return.
func (r *Store) Forget(ctx context.Context, name project.Name) error {
	defer r.changed(name)
	_, err := r.db.ExecContext(ctx, `DELETE FROM deployments WHERE project = ?`, name)
	return err
}

// Unfinished returns the records that a dead server left open.
func (r *Store) Unfinished(ctx context.Context) ([]project.Record, error) {
	return r.query(ctx, `WHERE `+isOpen+` ORDER BY rowid`)
}

// Ended returns the newest records of all projects that are final.
func (r *Store) Ended(ctx context.Context, limit int) ([]project.Record, error) {
	return r.query(ctx, `WHERE NOT `+isOpen+` ORDER BY rowid DESC LIMIT ?`, limit)
}

// Beyond returns the IDs of a project's final records that are older than its newest n, without those in keep.
func (r *Store) Beyond(ctx context.Context, name project.Name, n int, keep map[string]bool) (ids []string, err error) {
	rows, err := r.db.QueryContext(ctx, `SELECT id FROM deployments WHERE project = ? AND NOT `+isOpen+` ORDER BY rowid DESC LIMIT -1 OFFSET ?`, name, n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		if !keep[id] {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}

// Remove deletes records, all or none.
func (r *Store) Remove(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	defer r.changed("")
	_, err = r.db.ExecContext(ctx, `DELETE FROM deployments WHERE id IN (SELECT value FROM json_each(?))`, string(list))
	return err
}
