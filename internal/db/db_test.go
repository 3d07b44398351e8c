package db_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
)

func TestMigrateAppliesOnceAndRefusesNewer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state dir", "a.db")
	d, err := db.Open(t.Context(), path)
	require.NoError(t, err)
	one := []string{`CREATE TABLE t (a TEXT)`, `INSERT INTO t VALUES ('x')`}
	require.NoError(t, db.Migrate(t.Context(), d, "room", one))
	require.NoError(t, db.Migrate(t.Context(), d, "room", append(one, `INSERT INTO t VALUES ('y')`)))
	require.NoError(t, d.Close())

	d, err = db.Open(t.Context(), path)
	require.NoError(t, err)
	defer d.Close()
	var n int
	require.NoError(t, d.QueryRow(`SELECT count(*) FROM t`).Scan(&n))
	require.Equal(t, 2, n)
	require.ErrorContains(t, db.Migrate(t.Context(), d, "room", one), "the database was written by a newer corpus-git (room: schema 3, this version knows 2)")
	require.NoError(t, db.SetWriter(t.Context(), d, "0.8"))
	require.NoError(t, db.SetWriter(t.Context(), d, "0.9"))
	var newer *db.NewerError
	require.ErrorAs(t, db.Migrate(t.Context(), d, "room", one), &newer)
	require.Equal(t, "0.9", newer.Writer)
	rooms, release, err := db.Schemas(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"room": 3, "writer": 1}, rooms)
	require.Equal(t, "0.9", release)
	require.NoError(t, db.Known(t.Context(), d, map[string]int{"room": 3}), "a room that is not known does no harm")
	require.NoError(t, db.Known(t.Context(), d, map[string]int{"room": 4, "writer": 1, "other": 2}))
	require.Equal(t, newer, func() (e *db.NewerError) {
		require.ErrorAs(t, db.Known(t.Context(), d, map[string]int{"room": 2, "writer": 1}), &e)
		return e
	}(), "as Migrate says")
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
}

func TestMigrateIsAllOrNothing(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer d.Close()
	require.Error(t, db.Migrate(t.Context(), d, "room", []string{`CREATE TABLE t (a TEXT)`, `nonsense`}))
	require.NoError(t, db.Migrate(t.Context(), d, "room", []string{`CREATE TABLE t (a TEXT)`}))
}

// What is written without a sync is visible at once, and durable after a Flush; any later writer makes it durable.
func TestLazily(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, db.Migrate(t.Context(), d, "room", []string{`CREATE TABLE t (a INTEGER)`}))
	mode := func(q interface {
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}) (m int) {
		require.NoError(t, q.QueryRowContext(t.Context(), `PRAGMA synchronous`).Scan(&m))
		return m
	}
	const normal, full = 1, 2
	failed := errors.New("failed")
	for _, fails := range []error{nil, failed} {
		err := db.WithoutSync(t.Context(), d, func(c *sql.Conn) error {
			require.Equal(t, normal, mode(c))
			_, err := c.ExecContext(t.Context(), `INSERT INTO t VALUES (1)`)
			return errors.Join(err, fails)
		})
		require.ErrorIs(t, err, fails)
		require.Equal(t, full, mode(d))
	}
	require.NoError(t, db.Flush(t.Context(), d))
	var n int
	require.NoError(t, d.QueryRow(`SELECT count(*) FROM t`).Scan(&n))
	require.Equal(t, 2, n)
}

// TestCallersStandInLine checks that a caller that arrives while another one writes waits for its turn, and does not poll until it times out.
func TestCallersStandInLine(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer d.Close()
	_, err = d.ExecContext(t.Context(), `CREATE TABLE t (a INTEGER)`)
	require.NoError(t, err)
	tx, err := d.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	const writers = 50
	errs := make(chan error, writers)
	for i := range writers {
		go func() {
			_, err := d.ExecContext(t.Context(), `INSERT INTO t VALUES (?)`, i)
			errs <- err
		}()
	}
	require.Eventually(t, func() bool { return d.Stats().WaitCount == writers }, time.Minute, time.Millisecond)
	_, err = tx.ExecContext(t.Context(), `INSERT INTO t VALUES (-1)`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	for range writers {
		require.NoError(t, <-errs)
	}
	var n int
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT count(*) FROM t`).Scan(&n))
	require.Equal(t, writers+1, n)
}

// A full disk is distinguished from an error of the server.
func TestIsFull(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Exec(`CREATE TABLE t (a BLOB)`)
	require.NoError(t, err)
	_, err = d.Exec(`PRAGMA max_page_count = 5`) // as a disk without free space
	require.NoError(t, err)
	_, err = d.Exec(`INSERT INTO t VALUES (zeroblob(1000000))`)
	require.Error(t, err)
	require.True(t, db.IsFull(fault.New(fault.Internal, "record", "%w", err)), err)
	_, err = d.Exec(`nonsense`)
	require.Error(t, err)
	require.False(t, db.IsFull(err))
	require.False(t, db.IsFull(nil))
}
