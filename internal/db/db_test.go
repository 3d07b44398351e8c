package db_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
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
	require.ErrorContains(t, db.Migrate(t.Context(), d, "room", one), "newer")
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
