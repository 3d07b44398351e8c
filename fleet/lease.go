package fleet

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// own is the row of this machine's own lease, a name that no project can have.
const own = ""

// Lease gives this machine, as a hub, a lease with a greater revision than all earlier ones: the time in milliseconds, or one more than the
// last if the clock was set back. Nodes refuse a hub with a smaller one. It is durable on return.
func (s *Store) Lease(ctx context.Context, now time.Time) (revision int64, err error) {
	err = s.db.QueryRowContext(ctx, `INSERT INTO leases (project, revision) VALUES (?, ?)
		ON CONFLICT (project) DO UPDATE SET revision = max(revision + 1, excluded.revision) RETURNING revision`, own, now.UnixMilli()).Scan(&revision)
	return revision, err
}

// Fence returns fault.Refused for an order about a project from a hub whose lease is older than one seen here before. A newer lease is
// durable on return. 0 means no hub, and is not refused.
func (s *Store) Fence(ctx context.Context, name project.Name, revision int64) error {
	if revision == 0 {
		return nil
	}
	var seen int64
	err := s.db.QueryRowContext(ctx, `INSERT INTO leases (project, revision) VALUES (?, ?)
		ON CONFLICT (project) DO UPDATE SET revision = max(revision, excluded.revision) RETURNING revision`, string(name), revision).Scan(&seen)
	if err == nil {
		err = older(name, revision, seen)
	}
	return err
}

// Fenced returns what Fence returns, and records nothing.
func (s *Store) Fenced(ctx context.Context, name project.Name, revision int64) error {
	if revision == 0 {
		return nil
	}
	var seen int64
	err := s.db.QueryRowContext(ctx, `SELECT revision FROM leases WHERE project = ?`, string(name)).Scan(&seen)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = older(name, revision, seen)
	}
	return err
}

// older refuses a lease that is older than the newest that was seen.
func older(name project.Name, revision, seen int64) error {
	if revision < seen {
		return fault.New(fault.Refused, "", "another server has deployed %s here since this one began: lease %d, and %d was seen here", name, revision, seen).
			WithHint("stop the server that is no longer the hub; restart the one that is")
	}
	return nil
}
