package db_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
)

// A prepared query follows changes of the rows and of the table; an error of its first use is not kept.
func TestPrepared(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	defer d.Close()
	p := db.NewPrepared(d, `SELECT v FROM t WHERE k = ?`)
	get := func(ctx context.Context, k string) (v int, err error) {
		err = p.Row(ctx, func(r *sql.Row) error { return r.Scan(&v) }, k)
		return v, err
	}
	_, err = get(t.Context(), "a")
	require.ErrorContains(t, err, "no such table")
	_, err = d.Exec(`CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER NOT NULL)`)
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = get(ended, "a")
	require.ErrorIs(t, err, context.Canceled)
	_, err = get(t.Context(), "a")
	require.ErrorIs(t, err, sql.ErrNoRows)
	for v := range 3 {
		_, err = d.Exec(`INSERT INTO t (k, v) VALUES ('a', ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v`, v)
		require.NoError(t, err)
		_, err = d.Exec(`ALTER TABLE t ADD COLUMN c` + string(rune('0'+v)) + ` TEXT`)
		require.NoError(t, err)
		got, err := get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, v, got)
	}
}
