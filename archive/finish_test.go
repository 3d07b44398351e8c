package archive_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
)

// A power cut before the name of an archive is durable: Finish gives it back, once, to the deployment that asks. What was being made is not touched otherwise.
func TestFinishGivesAnArchiveItsName(t *testing.T) {
	made := func(t *testing.T, settled bool) *world {
		w := newWorld(t)
		var name func(uint64) error
		a, err := w.store(w.m.FS()).Make(context.Background(), archive.MakeRequest{Facts: w.facts(4), Named: func(sync func(uint64) error) { name = sync }})
		require.NoError(t, err)
		require.True(t, a.Whole)
		if settled {
			require.NoError(t, name(0))
		}
		w.m = w.m.Crash(nil)
		return w
	}
	for _, settled := range []bool{false, true} {
		w := made(t, settled)
		s, f := w.store(w.m.FS()), w.facts(4)
		_, err := s.Show(f.ID)
		require.Equal(t, !settled, err != nil, "the test needs a name that is lost")
		require.NoError(t, s.Finish(w.facts(5).At, w.facts(5).ID))
		_, err = s.Show(f.ID)
		require.Equal(t, !settled, err != nil, "another deployment asked")
		for range 2 {
			require.NoError(t, s.Finish(f.At, f.ID))
			w.m = w.m.Crash(nil)
			s = w.store(w.m.FS())
			a, err := s.Show(f.ID)
			require.NoError(t, err)
			require.True(t, a.Whole)
			w.requireArchivesWhole(s, w.m.FS(), "finished")
			_, err = s.Show(f.ID)
			require.NoError(t, err, "Sweep leaves it")
		}
	}
	w := made(t, false)
	s := w.store(w.m.FS())
	w.requireArchivesWhole(s, w.m.FS(), "swept")
	require.NoError(t, s.Finish(w.facts(4).At, w.facts(4).ID))
	_, err := s.Show(w.facts(4).ID)
	require.ErrorIs(t, err, archive.ErrNotFound)
}
