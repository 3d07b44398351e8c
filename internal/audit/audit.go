package audit

import (
	"context"
	"database/sql"
	"math"
	"time"

	"corpus-git/internal/db"
)

// Entry is one thing that a principal did, or was refused.
type Entry struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	// Actor is the name of the key, or the local user's name; "" if nobody was authenticated.
	Actor       string `json:"actor"`
	Fingerprint string `json:"fingerprint,omitempty"`
	// From is the remote address, or "local".
	From string `json:"from"`
	// Action is a short verb phrase such as "push", "key add", "access grant".
	Action  string `json:"action"`
	Project string `json:"project,omitempty"`
	// Object is what the action applied to: a ref with commits, a key's name, a permission.
	Object string `json:"object,omitempty"`
	// Outcome is "ok", "refused" or "failed"; Detail is the reason, in one line.
	Outcome    string `json:"outcome"`
	Detail     string `json:"detail,omitempty"`
	Deployment string `json:"deployment,omitempty"`
}

// Log is the audit log.
type Log struct {
	DB  *sql.DB
	Now func() time.Time
	// OnEntry is called with each entry except those of Note, with its Seq, in the transaction that writes it; it may be nil.
	OnEntry func(ctx context.Context, tx db.Execer, e Entry) error
}

// Open prepares the table.
func Open(ctx context.Context, d *sql.DB, now func() time.Time) (*Log, error) {
	err := db.Migrate(ctx, d, "audit", []string{
		`CREATE TABLE audit (seq INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, actor TEXT NOT NULL, fingerprint TEXT NOT NULL,
			origin TEXT NOT NULL, action TEXT NOT NULL, project TEXT NOT NULL, object TEXT NOT NULL, outcome TEXT NOT NULL, detail TEXT NOT NULL, deployment TEXT NOT NULL)`,
		`CREATE INDEX audit_project ON audit(project, seq)`,
	})
	return &Log{DB: d, Now: now}, err
}

// Record adds e; Seq is ignored, and so is Time if it is zero. Durable on return.
func (l *Log) Record(ctx context.Context, e Entry) error {
	if l.OnEntry != nil {
		return l.RecordAll(ctx, []Entry{e})
	}
	_, err := l.insert(ctx, l.DB, e)
	return err
}

// Note is Record that is durable only with the next transaction (db.Flush, at the latest).
func (l *Log) Note(ctx context.Context, e Entry) error {
	return db.WithoutSync(ctx, l.DB, func(c *sql.Conn) error {
		_, err := l.insert(ctx, c, e)
		return err
	})
}

// record writes an entry in a transaction, and reports it.
func (l *Log) record(ctx context.Context, tx *sql.Tx, e Entry) (err error) {
	if e.Time.IsZero() {
		e.Time = l.Now()
	}
	if e.Seq, err = l.insert(ctx, tx, e); err == nil && l.OnEntry != nil {
		err = l.OnEntry(ctx, tx, e)
	}
	return err
}

func (l *Log) insert(ctx context.Context, d db.Execer, e Entry) (seq int64, err error) {
	if e.Time.IsZero() {
		e.Time = l.Now()
	}
	res, err := d.ExecContext(ctx, `INSERT INTO audit(time, actor, fingerprint, origin, action, project, object, outcome, detail, deployment) VALUES (?,?,?,?,?,?,?,?,?,?)`,
		e.Time.UnixNano(), e.Actor, e.Fingerprint, e.From, e.Action, e.Project, e.Object, e.Outcome, e.Detail, e.Deployment)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Count returns the number of entries.
func (l *Log) Count(ctx context.Context) (n int64, err error) {
	err = l.DB.QueryRowContext(ctx, `SELECT count(*) FROM audit`).Scan(&n)
	return n, err
}

// Prune removes the entries that were recorded before a time, and returns how many.
func (l *Log) Prune(ctx context.Context, before time.Time) (int64, error) {
	res, err := l.DB.ExecContext(ctx, `DELETE FROM audit WHERE time < ?`, before.UnixNano())
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// RecordAll is Record for several entries: all are durable on return, or none is recorded.
func (l *Log) RecordAll(ctx context.Context, all []Entry) error {
	tx, err := l.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, e := range all {
		if err := l.record(ctx, tx, e); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// RecordOnce is Record, unless the deployment that e names already has an entry for this action.
func (l *Log) RecordOnce(ctx context.Context, e Entry) error {
	var there bool
	err := l.DB.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM audit WHERE project = ? AND deployment = ? AND action = ?)`, e.Project, e.Deployment, e.Action).Scan(&there)
	if err != nil || there {
		return err
	}
	return l.Record(ctx, e)
}

// List returns the newest entries first, at most limit; project "" means all.
func (l *Log) List(ctx context.Context, project string, limit int) ([]Entry, error) {
	return l.Before(ctx, project, math.MaxInt64, limit)
}

// Before is List of entries older than the entry seq.
func (l *Log) Before(ctx context.Context, project string, seq int64, limit int) ([]Entry, error) {
	of := `?1 = ''`
	if project != "" {
		of = `project = ?1` // by the index
	}
	rows, err := l.DB.QueryContext(ctx, `SELECT seq, time, actor, fingerprint, origin, action, project, object, outcome, detail, deployment
		FROM audit WHERE `+of+` AND seq < ?2 ORDER BY seq DESC LIMIT ?3`, project, seq, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Entry
	for rows.Next() {
		var e Entry
		var ns int64
		if err := rows.Scan(&e.Seq, &ns, &e.Actor, &e.Fingerprint, &e.From, &e.Action, &e.Project, &e.Object, &e.Outcome, &e.Detail, &e.Deployment); err != nil {
			return nil, err
		}
		e.Time = time.Unix(0, ns)
		out = append(out, e)
	}
	return out, rows.Err()
}
