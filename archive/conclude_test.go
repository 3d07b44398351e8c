package archive

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
	"corpus-git/layout"
)

// concluded makes archives of a project in a file system that forgets what was not synced, all but the newest with a verdict, and returns the newest.
func concluded(t *testing.T, m *vfstest.Mem, n int) (*Store, Archive) {
	t.Helper()
	p := layout.Root("/srv").Project("app")
	f := m.FS()
	require.NoError(t, vfs.MkdirAll(f, p.Live(), 0o755))
	require.NoError(t, vfs.WriteFileAtomic(f, p.Live()+"/page", []byte("one"), 0o644))
	now := time.Unix(1_700_000_000, 0)
	s := New(p, Config{FS: f, Now: func() time.Time { return now }, Reserve: Reserve{Percent: -1}, NoSpare: true, User: func() (uid, gid int) { return 0, 0 }})
	var last Archive
	for i := range n {
		now = now.Add(time.Minute)
		a, err := s.Make(context.Background(), MakeRequest{Facts: Facts{ID: fmt.Sprintf("deployment-%d", i), Project: "app", At: now}})
		require.NoError(t, err)
		if i < n-1 {
			require.NoError(t, s.SetVerdict(a.ID, Good))
		}
		last = a
	}
	require.NoError(t, s.Wait())
	return s, last
}

// The verdict and the rotation of a deployment are visible at once and durable when settle returns; before that a power cut leaves everything as it was, and nothing is
// deleted that may reappear.
func TestConclude(t *testing.T) {
	policy := Policy{Keep: 2}
	for _, c := range []struct {
		name           string
		staged, synced bool
		meanwhile      func(*Store, string) error
	}{
		{name: "not staged"},
		{name: "staged", staged: true},
		{name: "staged and synced", staged: true, synced: true},
		{name: "pinned meanwhile", staged: true, meanwhile: func(s *Store, id string) error { _, err := s.Pin(id); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A power cut before settle, with none or some of what was not synced, and one after it.
			for cut := range 8 {
				m := vfstest.NewMem(time.Unix(1_700_000_000, 0))
				s, a := concluded(t, m, 3)
				var v StagedVerdict
				if c.staged {
					v = s.StageVerdict(a.At, a.ID, Good)
					require.NotEmpty(t, v.tmp)
				}
				if c.synced {
					require.NoError(t, s.fs.SyncFS("/srv"))
					st, err := s.fs.Lstat("/srv")
					require.NoError(t, err)
					v.Covered = st.Dev
				}
				if c.meanwhile != nil {
					require.NoError(t, c.meanwhile(s, a.ID))
				}
				settle, err := s.Conclude(a.ID, Good, v, policy)
				require.NoError(t, err)
				want := 2
				if c.meanwhile != nil {
					want = 3 // a pinned one does not count
				}
				seen := func(s *Store) (n int, newest Archive) {
					all, err := s.List()
					require.NoError(t, err)
					for _, x := range all {
						require.True(t, x.Whole, x.ID)
					}
					return len(all), all[0]
				}
				n, newest := seen(s)
				require.Equal(t, want, n)
				require.Equal(t, Good, newest.Verdict)
				require.Equal(t, c.meanwhile != nil, newest.Pinned)
				settled := cut == 0
				var keep *rand.Rand
				if settled {
					require.NoError(t, settle())
					require.NoError(t, s.Wait())
					names, err := s.fs.ReadDir(a.Path)
					require.NoError(t, err)
					require.ElementsMatch(t, []string{manifestFile, recordFile, layout.ArchivedTree}, names)
				} else if cut > 1 {
					keep = rand.New(rand.NewPCG(uint64(cut), 1))
				}
				after := New(s.project, Config{FS: m.Crash(keep).FS(), NoSpare: true})
				n, newest = seen(after)
				require.Equal(t, a.ID, newest.ID)
				require.GreaterOrEqual(t, n, want)
				if settled {
					require.Equal(t, want, n)
					require.Equal(t, Good, newest.Verdict)
				}
			}
		})
	}
}

// If a deployment has no archive, nothing is rotated, and nothing is staged.
func TestConcludeWithoutAnArchive(t *testing.T) {
	m := vfstest.NewMem(time.Unix(1_700_000_000, 0))
	s, _ := concluded(t, m, 4)
	v := s.StageVerdict(time.Unix(5, 0), "other", Good)
	require.Equal(t, StagedVerdict{}, v)
	settle, err := s.Conclude("other", Good, v, Policy{Keep: 1})
	require.NoError(t, err)
	require.NoError(t, settle())
	all, err := s.List()
	require.NoError(t, err)
	require.Len(t, all, 4)
	v = s.StageVerdict(all[0].At, all[0].ID, Good)
	s.Abandon(v)
	_, err = s.fs.Lstat(v.tmp)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Tend says that Prepare or Compact are called in this process.
func (s *Store) Tend() { s.tended.Store(true) }
