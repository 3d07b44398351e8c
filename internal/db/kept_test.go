package db

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// keptBy returns the statements that the one connection keeps.
func keptBy(t *testing.T, d *sql.DB) (texts []string) {
	t.Helper()
	c, err := d.Conn(t.Context())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Raw(func(x any) error {
		for text := range x.(*conn).kept {
			texts = append(texts, text)
		}
		return nil
	}))
	return texts
}

// Statements are parsed once, follow changes of the rows and of the table, and may run while their own rows are read.
func TestStatementsAreKept(t *testing.T) {
	d, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer d.Close()
	exec := func(query string, args ...any) {
		t.Helper()
		_, err := d.ExecContext(t.Context(), query, args...)
		require.NoError(t, err)
	}
	exec(`CREATE TABLE t (a INTEGER UNIQUE, b TEXT)`)
	const insert, read = `INSERT INTO t (a, b) VALUES (?, ?)`, `SELECT * FROM t WHERE a >= ? ORDER BY a`
	for i := range 3 {
		exec(insert, i, "x")
	}
	require.Equal(t, []string{insert}, keptBy(t, d))

	// The same query inside of its own rows, in one transaction.
	tx, err := d.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var got []string
	outer, err := tx.QueryContext(t.Context(), read, 0)
	require.NoError(t, err)
	for outer.Next() {
		var a int
		var b string
		require.NoError(t, outer.Scan(&a, &b))
		inner, err := tx.QueryContext(t.Context(), read, a+1)
		require.NoError(t, err)
		for inner.Next() {
			var c int
			require.NoError(t, inner.Scan(&c, &b))
			got = append(got, fmt.Sprint(a, c))
		}
		require.NoError(t, inner.Close())
	}
	require.NoError(t, outer.Close())
	require.Equal(t, []string{"0 1", "0 2", "1 2"}, got)
	require.NoError(t, tx.Rollback())
	require.ElementsMatch(t, []string{insert, read}, keptBy(t, d))

	// A row left half read is not in the way of writers, nor of the next reader.
	var first int
	var b string
	require.NoError(t, d.QueryRowContext(t.Context(), read, 1).Scan(&first, &b))
	require.Equal(t, 1, first)
	exec(`ALTER TABLE t ADD COLUMN c INTEGER NOT NULL DEFAULT 7`)
	var c int
	require.NoError(t, d.QueryRowContext(t.Context(), read, 2).Scan(&first, &b, &c))
	require.Equal(t, []int{2, 7}, []int{first, c})

	// One that fails is forgotten, and fails for its own reason only.
	_, err = d.ExecContext(t.Context(), insert, 2, "again")
	require.ErrorContains(t, err, "UNIQUE")
	require.Equal(t, []string{read}, keptBy(t, d))
	exec(insert, 3, "y")
	over, stop := context.WithCancel(t.Context())
	stop()
	_, err = d.ExecContext(over, insert, 4, "y")
	require.ErrorIs(t, err, context.Canceled)
	_, err = d.QueryContext(t.Context(), `SELECT absent FROM t`)
	require.ErrorContains(t, err, "no such column")
	exec(`DROP TABLE t`)
	_, err = d.QueryContext(t.Context(), read, 0)
	require.ErrorContains(t, err, "no such table")

	// What a statement does when it is parsed, it does each time; and the newest are kept.
	exec(`PRAGMA user_version = 3`)
	for i := range maxKept + 10 {
		require.NoError(t, d.QueryRowContext(t.Context(), fmt.Sprintf("SELECT %d", i)).Scan(&first))
		require.Equal(t, i, first)
	}
	all := keptBy(t, d)
	require.Len(t, all, maxKept)
	require.NotContains(t, all, "SELECT 9")
	require.Contains(t, all, "SELECT 10")
	require.NotContains(t, all, `PRAGMA user_version = 3`)
}

func BenchmarkQuery(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "a.db"))
	require.NoError(b, err)
	defer d.Close()
	_, err = d.ExecContext(b.Context(), `CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c TEXT, d TEXT)`)
	require.NoError(b, err)
	_, err = d.ExecContext(b.Context(), `INSERT INTO t VALUES (1, 'x', 'y', 'z')`)
	require.NoError(b, err)
	for b.Loop() {
		var x, y, z string
		require.NoError(b, d.QueryRowContext(b.Context(), `SELECT t.b, t.c, (SELECT u.d FROM t u WHERE u.a = t.a) FROM t WHERE t.a = ? ORDER BY t.b LIMIT 1`, 1).Scan(&x, &y, &z))
	}
}

// A context that has ended starts no statement, and one that ends while rows are read ends reading them.
func TestKeptStatementsAndContexts(t *testing.T) {
	d, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer d.Close()
	_, err = d.ExecContext(t.Context(), `CREATE TABLE t (a INTEGER)`)
	require.NoError(t, err)
	const insert, read = `INSERT INTO t (a) VALUES (1), (2), (3)`, `SELECT a FROM t`
	_, err = d.ExecContext(t.Context(), insert)
	require.NoError(t, err)

	ended, end := context.WithCancel(t.Context())
	end()
	c, err := d.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Raw(func(x any) error { // package database/sql would not even call it
		_, err := x.(*conn).ExecContext(ended, insert, nil)
		require.ErrorIs(t, err, context.Canceled)
		_, err = x.(*conn).QueryContext(ended, read, nil)
		require.ErrorIs(t, err, context.Canceled)
		return nil
	}))
	require.NoError(t, c.Close())
	var n int
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT count(*) FROM t`).Scan(&n))
	require.Equal(t, 3, n)

	ctx, end := context.WithCancel(t.Context())
	rows, err := d.QueryContext(ctx, read)
	require.NoError(t, err)
	require.True(t, rows.Next())
	end()
	for n = 1; rows.Next(); n++ { // until database/sql has noticed it, or all are read
		require.Less(t, n, 3)
	}
	require.NoError(t, rows.Close())
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT count(*) FROM t`).Scan(&n), "the connection is free again")
}
