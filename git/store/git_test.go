package store

import (
	"bufio"
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// history makes a repository of n commits that change a few files of several folders.
func history(t testing.TB, n int) string {
	t.Helper()
	dir := gittest.NewRepo(t).Dir
	more(t, dir, 0, n)
	return dir
}

func more(t testing.TB, dir string, from, n int) {
	t.Helper()
	(&gittest.Repo{T: t, Dir: dir}).AddCommits(from, n)
}

func newDB(t testing.TB) *DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r.git")
	require.NoError(t, Init(dir))
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func ingest(t testing.TB, db *DB, id string, data []byte) (*Quarantine, *Ingested) {
	t.Helper()
	q, err := db.NewQuarantine(id)
	require.NoError(t, err)
	in, err := q.Ingest(context.Background(), bufio.NewReaderSize(bytes.NewReader(data), 64<<10), IngestOptions{})
	require.NoError(t, err)
	return q, in
}

// same compares every object with git's result.
func same(t testing.TB, r Reader, dir string, list []plumbing.Hash) {
	t.Helper()
	for _, h := range list {
		typ, data, err := r.Get(h)
		require.NoError(t, err)
		require.Equal(t, h, plumbing.ComputeHash(typ, data))
		typ2, size, err := r.Header(h)
		require.NoError(t, err)
		require.Equal(t, typ, typ2)
		require.EqualValues(t, len(data), size)
	}
}
