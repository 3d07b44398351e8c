package archive_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/internal/vfs"
)

// ahead begins Ahead as during a deployment; ended waits for its end.
func (s *site) ahead() (ended func()) {
	done := make(chan struct{})
	st := s.s
	go func() {
		defer close(done)
		st.Ahead(context.Background())
	}()
	return func() { <-done }
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	ok, err := vfs.Exists(vfs.OS{}, path)
	require.NoError(t, err)
	return ok
}

// The archive of a deployment in a burst is packed while the deployment runs, stays a folder until it has ended, and then gives its tree to the
// next one.
func TestAheadPacksTheArchiveOfARunningDeployment(t *testing.T) {
	s, _ := burstSite(t, 3)
	resume := s.s.Pause()
	s.write("d1/f1", "during")
	a := s.make()
	ended := s.ahead()
	require.Eventually(t, func() bool { return exists(t, filepath.Join(a.Path, ".tmp-packed")) }, time.Minute, time.Millisecond)
	s.write("d1/f1", "after the archive was made")
	require.Nil(t, s.show(a.ID).Packed)
	require.NoError(t, s.s.SetVerdict(a.ID, archive.Good))
	require.Nil(t, s.show(a.ID).Packed)
	resume()
	ended()
	a = s.show(a.ID)
	require.True(t, a.Incremental())
	require.NotZero(t, s.s.Spare())
	p, err := s.s.Verify(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, p.Exact(), "%v", p.Differences)
	settle()
	b := s.good()
	s.requireExact(b)
	require.LessOrEqual(t, b.Made.Copied, int64(1))
	s.requireNoLeftovers()
}

// A deployment that begins at once waits until the archive of the previous one is packed, although the store is paused.
func TestMakeWaitsForWhatIsPackedAhead(t *testing.T) {
	s, _ := burstSite(t, 3)
	settle()
	resume := s.s.Pause()
	var ended []func()
	for range 20 {
		a := s.make()
		s.requireExact(a)
		require.LessOrEqual(t, a.Made.Copied, int64(1), "nothing has changed")
		ended = append(ended, s.ahead())
		require.NoError(t, s.s.SetVerdict(a.ID, archive.Good))
		next := make(chan func())
		go func() {
			resume()
			next <- s.s.Pause()
		}()
		resume = <-next
	}
	resume()
	for _, wait := range ended {
		wait()
	}
}

// A rollback of the deployment uses the tree that is being packed; what was packed is not published.
func TestARollbackTakesWhatIsPackedAhead(t *testing.T) {
	s, _ := burstSite(t, 3)
	for range 5 {
		settle()
		was := snapshot(t, s.live(""))
		resume := s.s.Pause()
		a := s.make()
		ended := s.ahead()
		s.write("d1/f1", "broken")
		require.NoError(t, os.RemoveAll(s.live("d0")))
		_, err := s.s.Rollback(context.Background(), a.ID)
		require.NoError(t, err)
		requireSame(t, was, snapshot(t, s.live("")))
		require.NoError(t, s.s.SetVerdict(a.ID, archive.RolledBack))
		resume()
		ended()
		require.Nil(t, s.show(a.ID).Packed)
		requireSame(t, was, snapshot(t, s.live("")))
	}
	require.NoError(t, s.s.Wait())
	s.requireNoLeftovers()
	s.requireExact(s.make())
}
