package tree

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
	"corpus-git/internal/testutil/gittest"
)

// newStore returns an empty repository, and its objects.
func newStore(t *testing.T) (*gittest.Repo, Objects) {
	t.Helper()
	r := gittest.NewRepo(t)
	db, err := store.Open(r.Bare(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return r, db
}
