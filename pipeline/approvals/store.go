package approvals

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/approval"
)

// Store is the table. Its fields are set before use.
type Store struct {
	// May reports whether somebody has a permission on a project now.
	May   func(ctx context.Context, who project.Pusher, name project.Name, want project.Right) (bool, error)
	Audit Audit
	// Notify notifies others; nil notifies nobody.
	Notify func(ctx context.Context, tx db.Execer, n project.Notification) error

	db  *sql.DB
	now func() time.Time
}

// Audit records who did what; audit.Log is one.
type Audit interface {
	Record(ctx context.Context, e audit.Entry) error
}

// NewStore creates the tables in a database if they are missing. It has the table of records.
func NewStore(ctx context.Context, d *sql.DB, now func() time.Time) (*Store, error) {
	err := db.Migrate(ctx, d, "approvals", []string{
		`CREATE TABLE approvals (id TEXT PRIMARY KEY, project TEXT NOT NULL, at INTEGER NOT NULL, expires INTEGER NOT NULL, need INTEGER NOT NULL, plan TEXT NOT NULL,
			facts TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', ended INTEGER NOT NULL DEFAULT 0, result TEXT NOT NULL DEFAULT '')`,
		`CREATE INDEX approvals_project ON approvals(project)`,
		`CREATE TABLE approval_votes (request TEXT NOT NULL REFERENCES approvals(id) ON DELETE CASCADE, name TEXT NOT NULL, fingerprint TEXT NOT NULL, address TEXT NOT NULL,
			at INTEGER NOT NULL, break_glass INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (request, name))`,
		`ALTER TABLE approvals ADD COLUMN basis TEXT NOT NULL DEFAULT '{}'`,
		`CREATE INDEX approvals_open ON approvals(project) WHERE state = 'open'`,
		// A request is kept as long as the record of the deployment that made it: history.max_deployments.
		`DELETE FROM approvals WHERE state <> 'open' AND id NOT IN (SELECT id FROM deployments);
			CREATE TRIGGER approvals_forget AFTER DELETE ON deployments BEGIN DELETE FROM approvals WHERE id = OLD.id; END`,
	})
	return &Store{db: d, now: now}, err
}

// Add opens a request. Other open requests of the same project and principal for the same repository are void: they are superseded.
func (s *Store) Add(ctx context.Context, r approval.Request) error {
	facts, err := json.Marshal(r.Deployment)
	if err != nil {
		return err
	}
	basis, err := json.Marshal(r.Basis)
	if err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `UPDATE approvals SET state = 'void', reason = ?, who = ?, ended = ? WHERE project = ? AND state = 'open'
		AND json_extract(facts, '$.repo') = ? AND json_extract(facts, '$.pusher.key') = ?`,
		"superseded by "+string(r.ID), r.Deployment.Pusher.Key, s.now().UnixNano(), r.Project, r.Deployment.Repo, r.Deployment.Pusher.Key); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO approvals(id, project, at, expires, need, plan, facts, basis, state) VALUES (?,?,?,?,?,?,?,?,'open')`,
		r.ID, r.Project, r.At.UnixNano(), r.Expires.UnixNano(), r.Need, r.Plan, facts, basis); err != nil {
		return err
	}
	return tx.Commit()
}

// expire ends requests that were not approved in time.
func (s *Store) expire(ctx context.Context) error {
	now := s.now().UnixNano()
	_, err := s.db.ExecContext(ctx, `UPDATE approvals SET state = 'expired', reason = 'nobody approved it in time', ended = ? WHERE state = 'open' AND expires <= ?`, now, now)
	return err
}

const columns = `SELECT id, project, at, expires, need, plan, facts, basis, state, reason, who, ended, result FROM approvals `

func (s *Store) query(ctx context.Context, where string, args ...any) (out []approval.Request, err error) {
	if err := s.expire(ctx); err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, columns+where, args...)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var r approval.Request
		var at, expires, ended int64
		var facts, basis []byte
		err := rows.Scan(&r.ID, &r.Project, &at, &expires, &r.Need, &r.Plan, &facts, &basis, &r.State, &r.Reason, &r.By, &ended, &r.Result)
		if err == nil {
			err = errors.Join(json.Unmarshal(facts, &r.Deployment), json.Unmarshal(basis, &r.Basis))
		}
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		if r.At, r.Expires = time.Unix(0, at), time.Unix(0, expires); ended != 0 {
			r.Ended = time.Unix(0, ended)
		}
		out = append(out, r)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Votes, err = s.votes(ctx, out[i].ID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Store) votes(ctx context.Context, id project.ID) (out []approval.Vote, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT name, fingerprint, address, at, break_glass, reason FROM approval_votes WHERE request = ? ORDER BY at, name`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v approval.Vote
		var at int64
		if err := rows.Scan(&v.By.Key, &v.By.Fingerprint, &v.By.From, &at, &v.BreakGlass, &v.Reason); err != nil {
			return nil, err
		}
		v.At = time.Unix(0, at)
		out = append(out, v)
	}
	return out, rows.Err()
}

// List returns the newest requests of a project, the newest first; with open only those that are open.
func (s *Store) List(ctx context.Context, name project.Name, open bool, limit int) ([]approval.Request, error) {
	return s.query(ctx, `WHERE project = ?1 AND (NOT ?2 OR state = 'open') ORDER BY rowid DESC LIMIT ?3`, name, open, limit)
}

// Find resolves the ID of a request of a project, or a prefix of one; no match, or more than one, is fault.Usage.
func (s *Store) Find(ctx context.Context, name project.Name, prefix string) (approval.Request, error) {
	prefix, err := project.ParseIDPrefix(prefix)
	if err != nil {
		return approval.Request{}, err
	}
	list, err := s.query(ctx, `WHERE project = ?1 AND substr(id, 1, length(?2)) = ?2 ORDER BY rowid DESC LIMIT 2`, name, prefix)
	switch {
	case err != nil:
		return approval.Request{}, err
	case len(list) == 1:
		return list[0], nil
	case len(list) > 1:
		return approval.Request{}, fault.New(fault.Usage, "approval", "%s is ambiguous: it matches more than one ID", prefix).WithHint("give more digits")
	}
	return approval.Request{}, fault.New(fault.Usage, "approval", "no approval request %s in %s", prefix, name).WithHint("corpus-git approvals %s  lists them", name)
}

// count adds a vote to an open request, and returns the request with all votes. A second vote by the same principal is fault.Refused, and so is a vote
// on a request that has ended.
func (s *Store) count(ctx context.Context, r approval.Request, v approval.Vote) (approval.Request, error) {
	res, err := s.db.ExecContext(ctx, `INSERT INTO approval_votes(request, name, fingerprint, address, at, break_glass, reason) SELECT id, ?2, ?3, ?4, ?5, ?6, ?7 FROM approvals
		WHERE id = ?1 AND state = 'open' AND expires > ?5 ON CONFLICT(request, name) DO UPDATE SET break_glass = 1, reason = excluded.reason WHERE excluded.break_glass`,
		r.ID, v.By.Key, v.By.Fingerprint, v.By.From, s.now().UnixNano(), v.BreakGlass, v.Reason)
	if err != nil {
		return r, err
	}
	if n, err := res.RowsAffected(); err != nil {
		return r, err
	} else if n == 0 {
		if r, err = s.Find(ctx, r.Project, string(r.ID)); err == nil {
			if err = r.Closed(); err == nil {
				err = fault.New(fault.Refused, "approve", "%s has already approved it; %d approvals are required", v.By.Key, r.Need)
			}
		}
		return r, err
	}
	return s.Find(ctx, r.Project, string(r.ID))
}

// End ends an open request; it returns false for one that has ended, which stays as it is.
func (s *Store) End(ctx context.Context, id project.ID, state approval.State, by, reason string, result project.ID) (bool, error) {
	res, err := s.db.ExecContext(ctx, `UPDATE approvals SET state = ?, reason = ?, who = ?, ended = ?, result = ? WHERE id = ? AND state = 'open'`,
		state, reason, by, s.now().UnixNano(), result, id)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// Forget removes all requests of a project.
func (s *Store) Forget(ctx context.Context, name project.Name) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM approvals WHERE project = ?`, name)
	return err
}
