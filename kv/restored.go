package kv

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"

	"corpus-git/internal/db"
)

// lostChanges is more than the number of changes that can have been made after a backup, and are not in it: a thousand in each second of a week, as etcd recommends for its revisions (etcd documentation,
// "Disaster recovery", --bump-revision).
const lostChanges = 1_000_000_000

// Restored raises the revisions in the database of a restored backup above those that were given after the backup was made, which may be known outside as fencing tokens. Every key has a new revision,
// so that each leader has a token that is greater than those of elections that are lost, and whoever continues from a revision is told all values. What watches projects takes the keys for those
// that the projects were applied with, if they were. A database without the table, or that is not there, is left as it is. Durable on return.
func Restored(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	d, err := db.Open(ctx, path)
	if err != nil {
		return err
	}
	err = restored(ctx, d)
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

func restored(ctx context.Context, d *sql.DB) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, change := range []struct{ table, query string }{
		{"kv_revision", `UPDATE kv_revision SET revision = revision + ?`},
		{"kv", `UPDATE kv SET revision = revision + ?`},
		{"kv_watch", `UPDATE kv_watch SET seen = seen + ?`},
	} {
		var there int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?`, change.table).Scan(&there); err != nil {
			return err
		}
		if there == 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, change.query, lostChanges); err != nil {
			return err
		}
	}
	return tx.Commit()
}
