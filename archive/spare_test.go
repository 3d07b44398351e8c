package archive_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

// The archive of the first deployment holds nothing. What that deployment made live must not be copied while the second one waits.
func TestCompactSparesWhatIsLiveAfterAFirstDeployment(t *testing.T) {
	s := newSite(t)
	first := s.make()
	exotic(t, s.live(""))
	settle()
	require.NoError(t, s.s.SetVerdict(first.ID, archive.Good))
	c := s.compact(archive.Policy{Keep: 3})
	require.True(t, c.Spared)
	b := s.make()
	s.requireExact(b)
	require.Zero(t, b.Made.Copied)
	require.NoError(t, s.s.SetVerdict(b.ID, archive.Good))
	s.requireNoLeftovers()
}

// The empty tree of a first archive is not a spare tree: it would prevent a copy of the live tree from being made.
func TestAnEmptyTreeIsNotRecycled(t *testing.T) {
	s := newSite(t)
	s.good()
	s.write("a", "1")
	settle()
	s.good()
	r, err := s.s.Rotate(archive.Policy{Keep: 1})
	require.NoError(t, err)
	require.NoError(t, s.s.Wait())
	require.Len(t, r.Removed, 1)
	require.False(t, r.Recycled)
	require.True(t, s.compact(archive.Policy{Keep: 1}).Spared)
	b := s.make()
	s.requireExact(b)
	require.Zero(t, b.Made.Copied)
}

// A spare tree that is older than the newest deployment is brought up to date, once: then the next archive copies nothing.
func TestASpareTreeIsBroughtUpToDate(t *testing.T) {
	for name, prepare := range map[string]func(*site) bool{
		"soon": func(s *site) bool {
			made, err := s.s.Prepare(context.Background(), archive.Policy{Keep: 3})
			require.NoError(t, err)
			return made
		},
		"later": func(s *site) bool { return s.compact(archive.Policy{Keep: 3}).Spared },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.today = true
			exotic(t, s.live(""))
			for _, n := range []string{"x/1", "x/2", "y/1", "y/2"} {
				s.write(n, "content of "+n)
			}
			settle()
			for range 3 {
				s.good()
			}
			require.True(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
			s.good()
			require.True(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
			s.write("x/2", "changed")
			s.write("z/new", "new")
			require.NoError(t, os.RemoveAll(s.live("y")))
			require.NoError(t, os.Chmod(s.live("x"), 0o700))
			settle()
			require.True(t, prepare(s))
			require.False(t, prepare(s), "it is up to date")
			s.requireNoLeftovers()
			b := s.make()
			s.requireExact(b)
			require.Zero(t, b.Made.Copied)
			require.Equal(t, int64(4), b.Made.Changed, "since the archive before")
			require.NoError(t, s.s.SetVerdict(b.ID, archive.Good))
			s.requireNoLeftovers()
		})
	}
}

// A deployment interrupts the copying of a spare tree at any call, and reuses what exists: its archive is exact, whatever changed meanwhile.
func TestAnInterruptedSpareTreeIsTakenOver(t *testing.T) {
	t.Run("new", func(t *testing.T) { interrupted(t, 37, func(s *site) { s.good() }) })
	t.Run("behind", func(t *testing.T) {
		interrupted(t, 83, func(s *site) {
			s.today = true
			for i := range 8 {
				s.write(fmt.Sprintf("same/%d", i), "is kept")
			}
			settle()
			s.good()
			s.good()
			require.True(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
		})
	})
}

// interrupted is a test of a project that had deployments before; step is how many calls are between two interruptions.
func interrupted(t *testing.T, step int, deployed func(*site)) {
	took := 0
	for k := 1; ; k += step {
		s := newSite(t)
		deployed(s)
		exotic(t, s.live(""))
		for _, n := range []string{"x/1", "x/2", "x/3", "y/1", "y/2"} {
			s.write(n, "content of "+n)
		}
		settle()
		var armed atomic.Bool
		var calls atomic.Int64
		paused := make(chan func(), 1)
		f := vfstest.New(vfs.OS{}, func(int, vfstest.Op) error {
			if armed.Load() && calls.Add(1) == int64(k) {
				done := make(chan struct{})
				go func() {
					paused <- s.s.Pause()
					close(done)
				}()
				select {
				case <-done:
				case <-time.After(50 * time.Millisecond): // publishing holds a lock that Pause waits for
				}
			}
			return nil
		})
		s.use(archive.Config{FS: f, Reserve: noReserve})
		armed.Store(true)
		ended := make(chan error, 1)
		go func() {
			_, err := s.s.Compact(context.Background(), archive.Policy{Keep: 3})
			ended <- err
		}()
		var resume func()
		select {
		case resume = <-paused:
		case err := <-ended:
			require.NoError(t, err)
			require.Greater(t, took, 3, "the copying was interrupted in the middle")
			return
		}
		armed.Store(false)
		s.write("x/2", "changed")
		s.write("z/new", "new")
		require.NoError(t, os.Remove(s.live("y/1")))
		b := s.make()
		s.requireExact(b)
		t.Logf("call %d of %d: %d kept, %d copied", k, calls.Load(), b.Made.Kept, b.Made.Copied)
		if b.Made.Kept > 0 {
			took++
		}
		require.NoError(t, s.s.SetVerdict(b.ID, archive.Good))
		resume()
		require.NoError(t, <-ended)
		require.NoError(t, s.s.Sweep())
		require.NoError(t, s.s.Wait())
		s.requireNoLeftovers()
		s.requireExact(s.make())
	}
}

// Packing an archive that is similar to the newest yields a spare tree, and takes less time than a copy.
func TestPreparePacksBeforeItCopies(t *testing.T) {
	s := newSite(t)
	empty := s.good()
	s.write("a", "1")
	s.write("b", "2")
	settle()
	a := s.good()
	s.n += 20 // seconds
	s.good()
	made, err := s.s.Prepare(context.Background(), archive.Policy{Keep: 3})
	require.NoError(t, err)
	require.True(t, made)
	require.Nil(t, s.show(empty.ID).Packed)
	require.NotNil(t, s.show(a.ID).Packed)
	made, err = s.s.Prepare(context.Background(), archive.Policy{Keep: 3})
	require.NoError(t, err)
	require.False(t, made, "there is one")
	b := s.good()
	s.requireExact(b)
	require.Zero(t, b.Made.Copied)
	s.requireNoLeftovers()
}

// A tree that Make packs at once is not copied right after a deployment, which another one may follow, but by Compact.
func TestPrepareLeavesWhatIsPackedAtOnce(t *testing.T) {
	for _, pushes := range []int{0, 3} {
		s, _ := burstSite(t, pushes)
		if pushes == 0 {
			require.NoError(t, vfs.RemoveAll(vfs.OS{}, s.live("")))
			s.good()
			s.write("a", "1")
			settle()
		}
		made, err := s.s.Prepare(context.Background(), archive.Policy{Keep: 9})
		require.NoError(t, err)
		require.False(t, made)
		require.Zero(t, s.s.Spare())
		require.True(t, s.compact(archive.Policy{Keep: 9}).Spared)
		b := s.good()
		s.requireExact(b)
		require.Zero(t, b.Made.Copied)
		s.requireNoLeftovers()
	}
}

// If trees take as long to pack as to copy, the live one is copied.
func TestPrepareCopies(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	settle()
	a := s.good()
	s.good()
	made, err := s.s.Prepare(context.Background(), archive.Policy{Keep: 3})
	require.NoError(t, err)
	require.True(t, made)
	require.Nil(t, s.show(a.ID).Packed)
	b := s.good()
	s.requireExact(b)
	require.Zero(t, b.Made.Copied)
}
