package fleet

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
)

// A lease grows whatever the clock does, and a node that has seen one refuses those before it, over a restart, too.
func TestLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	open := func() *Store {
		d, err := db.Open(t.Context(), path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = d.Close() })
		s, err := Open(t.Context(), d)
		require.NoError(t, err)
		return s
	}
	s := open()
	at := time.UnixMilli(1000)
	var last int64
	for i, now := range []time.Time{at, at, at.Add(-time.Hour), at.Add(time.Hour)} {
		r, err := s.Lease(t.Context(), now)
		require.NoError(t, err)
		require.Greater(t, r, last, i)
		last = r
	}
	require.NoError(t, s.Fence(t.Context(), "app", 5))
	require.NoError(t, s.Fence(t.Context(), "app", 7))
	s = open()
	require.Equal(t, fault.Refused, fault.KindOf(s.Fence(t.Context(), "app", 5)))
	require.Equal(t, fault.Refused, fault.KindOf(s.Fence(t.Context(), "app", 6)))
	require.NoError(t, s.Fence(t.Context(), "app", 7))
	require.NoError(t, s.Fence(t.Context(), "app", 0))
	require.NoError(t, s.Fenced(t.Context(), "other", 9), "a look records nothing")
	require.NoError(t, s.Fence(t.Context(), "other", 1))
	require.EqualError(t, s.Fenced(t.Context(), "app", 6), s.Fence(t.Context(), "app", 6).Error())
	require.NoError(t, s.Fenced(t.Context(), "app", 8))
	require.NoError(t, s.Fenced(t.Context(), "app", 0))
	r, err := s.Lease(t.Context(), at)
	require.NoError(t, err)
	require.Greater(t, r, last)
}
