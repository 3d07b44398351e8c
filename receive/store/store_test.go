package store

import (
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

func TestIngestAndMigrate(t *testing.T) {
	src := history(t, 12)
	db := newDB(t)
	q, in := ingest(t, db, "one", packOf(t, src, []string{"master~4"}))
	tip := head(t, src, "master~4")
	require.True(t, in.Has(tip))
	ok, err := db.Has(tip)
	require.NoError(t, err)
	require.False(t, ok, "invisible before Migrate")
	same(t, q, src, objectsOf(t, src, "master~4"))
	require.NoError(t, q.Migrate())
	require.NoError(t, q.Migrate())
	require.NoError(t, q.Discard())
	require.NoDirExists(t, q.dir)
	same(t, db, src, objectsOf(t, src, "master~4"))

	// A thin pack on top of it.
	q, in = ingest(t, db, "two", packOf(t, src, []string{"master", "^master~4"}, "--thin", "--delta-base-offset"))
	require.Positive(t, in.Added)
	require.NoError(t, q.Migrate())
	same(t, db, src, objectsOf(t, src, "master"))
	git(t, db.Dir(), "update-ref", "refs/heads/master", head(t, src, "master").String())
	git(t, db.Dir(), "fsck", "--strict", "--full", "--no-dangling")

	c, err := GetCommit(db, head(t, src, "master"))
	require.NoError(t, err)
	require.Equal(t, "commit 11\n", c.Message)
	tr, err := GetTree(db, c.TreeHash)
	require.NoError(t, err)
	require.NotEmpty(t, tr.Entries)
	_, err = GetTree(db, c.Hash)
	require.ErrorAs(t, err, new(*WrongTypeError))
	_, _, err = db.Get(plumbing.NewHash("1234567890123456789012345678901234567890"))
	require.ErrorIs(t, err, ErrNotFound)
}
