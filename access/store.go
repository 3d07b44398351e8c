package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
)

// Store manages the principals, keys, tokens and grants in the state database.
type Store struct {
	db    *sql.DB
	batch *db.Batch
	audit *audit.Log
	now   func() time.Time
	trust trust
	asks  asks
}

// Open prepares the tables. The caller closes the database.
func Open(ctx context.Context, d *sql.DB, log *audit.Log, now func() time.Time) (*Store, error) {
	err := db.Migrate(ctx, d, "access", schema)
	if err != nil {
		return nil, err
	}
	return &Store{db: d, batch: db.NewBatch(d), audit: log, now: now}, nil
}

// record writes an audit entry for a change, or an attempted one, and returns err, joined with the log's own error.
func (s *Store) record(ctx context.Context, by Identity, action, project, object string, err error) error {
	e := audit.Entry{Actor: by.Name, Fingerprint: by.Fingerprint, From: by.From, Action: action, Project: project, Object: object, Outcome: "ok"}
	if err != nil {
		e.Outcome, e.Detail = "failed", err.Error()
		if k := fault.KindOf(err); k == fault.Refused || k == fault.Usage {
			e.Outcome = "refused"
		}
	}
	if lerr := s.audit.Record(context.WithoutCancel(ctx), e); lerr != nil {
		return errors.Join(err, fmt.Errorf("audit: %w", lerr))
	}
	return err
}
