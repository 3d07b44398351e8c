package archive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

func ids(as []archive.Archive) []string {
	out := []string{}
	for _, a := range as {
		out = append(out, a.ID[6:8])
	}
	return out
}

func (s *site) list() []string {
	s.t.Helper()
	all, err := s.s.List()
	require.NoError(s.t, err)
	return ids(all)
}

func TestListShowPin(t *testing.T) {
	s := newSite(t)
	require.Empty(t, s.list(), "no folder yet")
	s.write("a", "1")
	a, b := s.make(), s.make()
	require.NotNil(t, a.Scan)
	a.Scan = nil // only Make has seen anything
	require.Equal(t, []string{"02", "01"}, s.list())
	for _, id := range []string{a.ID, a.ID[:8], filepath.Base(a.Path)} {
		got, err := s.s.Show(id)
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
	for _, id := range []string{"", "none", "0000"} {
		_, err := s.s.Show(id)
		require.Equal(t, fault.Usage, fault.KindOf(err), id)
	}
	got, err := s.s.Pin(b.ID)
	require.NoError(t, err)
	require.True(t, got.Pinned)
	require.NoError(t, s.s.SetVerdict(b.ID, archive.Good))
	got, err = s.s.Show(b.ID)
	require.NoError(t, err)
	require.True(t, got.Pinned)
	require.Equal(t, archive.Good, got.Verdict)
	got, err = s.s.Unpin(b.ID)
	require.NoError(t, err)
	require.False(t, got.Pinned)
	require.Error(t, s.s.SetVerdict(b.ID, "nonsense"))
	require.ErrorIs(t, s.s.SetVerdict("none", archive.Good), archive.ErrNotFound)

	require.NoError(t, os.WriteFile(filepath.Join(b.Path, "deployment.json"), []byte(`{"schema":99}`), 0o600))
	_, err = s.s.List()
	require.Equal(t, fault.Refused, fault.KindOf(err))
}

func TestRotate(t *testing.T) {
	type step struct {
		verdict archive.Verdict
		pinned  bool
	}
	g, f, p, w := step{archive.Good, false}, step{archive.Failed, false}, step{archive.Good, true}, step{archive.Pending, false}
	for _, c := range []struct {
		name   string
		steps  []step // oldest first
		policy archive.Policy
		want   []string // newest first
	}{
		{"five good ones leave three", []step{g, g, g, g, g}, archive.Policy{Keep: 3}, []string{"05", "04", "03"}},
		{"fewer than allowed", []step{g, g}, archive.Policy{Keep: 3}, []string{"02", "01"}},
		{"failures do not count", []step{g, f, g, f, g, f}, archive.Policy{Keep: 3}, []string{"06", "05", "03", "01"}},
		{"two failures", []step{g, f, g, f, g, f}, archive.Policy{Keep: 3, KeepFailed: 2}, []string{"06", "05", "04", "03", "01"}},
		{"no failures", []step{g, f, f}, archive.Policy{Keep: 3, KeepFailed: -1}, []string{"01"}},
		{"only failures never cost a good one", []step{g, f, f, f, f, f}, archive.Policy{Keep: 1}, []string{"06", "01"}},
		{"pinned ones stay beside", []step{p, g, g, g}, archive.Policy{Keep: 2}, []string{"04", "03", "01"}},
		{"without a verdict", []step{w, g, g, w}, archive.Policy{Keep: 1}, []string{"04", "03", "01"}},
		{"zero is one", []step{g, g}, archive.Policy{}, []string{"02"}},
		{"protected", []step{g, g, g, f, f}, archive.Policy{Keep: 1, Protect: func(a archive.Archive) bool { return a.ID[6:8] == "02" || a.ID[6:8] == "04" }}, []string{"05", "04", "03", "02"}},
		{"squeezed", []step{g, g, f}, archive.Policy{Keep: 1, Squeeze: true}, []string{"02"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			s.write("a", "1")
			for _, st := range c.steps {
				a := s.make()
				require.NoError(t, s.s.SetVerdict(a.ID, st.verdict))
				if st.pinned {
					_, err := s.s.Pin(a.ID)
					require.NoError(t, err)
				}
			}
			r := s.rotate(c.policy)
			require.Equal(t, c.want, s.list())
			require.Len(t, r.Removed, len(c.steps)-len(c.want))
			require.Equal(t, len(c.want), r.Kept)
			require.Empty(t, s.rotate(c.policy).Removed, "a second time changes nothing")
			s.requireNoLeftovers()
			_, err := os.Stat(filepath.Join(s.p.Archives(), ".spare"))
			require.Equal(t, r.Recycled, err == nil)
			require.False(t, c.policy.Squeeze && r.Recycled)
		})
	}
}

// What hooks put into an archive is removed with it, and is never in the next one.
func TestDumpsAreNotRecycled(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	a := s.good()
	require.NoError(t, os.WriteFile(filepath.Join(a.Path, "dump.sql"), []byte("x"), 0o600))
	s.good()
	require.True(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
	b := s.make()
	names, err := os.ReadDir(b.Path)
	require.NoError(t, err)
	require.Len(t, names, 3, "project, manifest, deployment.json: %v", names)
}

func TestNoSpare(t *testing.T) {
	s := newSite(t)
	s.use(archive.Config{NoSpare: true, Reserve: noReserve})
	s.write("a", "1")
	settle()
	s.good()
	s.good()
	require.False(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
	require.Equal(t, int64(1), s.make().Made.Copied)
}

func TestRestoreAnOlderArchive(t *testing.T) {
	s := newSite(t)
	exotic(t, s.live(""))
	old := snapshot(t, s.p.Live())
	a := s.good()
	s.write("plain", "newer")
	require.NoError(t, os.MkdirAll(s.p.Pillar(), 0o755))
	s.good()
	res, err := s.s.Restore(context.Background(), a.ID, nil)
	require.NoError(t, err)
	require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
	requireSame(t, old, snapshot(t, s.p.Live()))
	require.Nil(t, snapshot(t, s.p.Pillar()), "there was none then")
	requireNoSharedInode(t, s.p.Live(), a.Path)
	proof, err := s.s.Verify(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, proof.Exact())
	s.requireNoLeftovers()

	require.NoError(t, vfs.RemoveAll(vfs.OS{}, s.p.Live()))
	_, err = s.s.Restore(context.Background(), a.ID, nil)
	require.NoError(t, err)
	requireSame(t, old, snapshot(t, s.p.Live()))

	require.NoError(t, os.Remove(filepath.Join(a.Path, "project/big")))
	_, err = s.s.Restore(context.Background(), a.ID, nil)
	require.ErrorIs(t, err, archive.ErrNotWhole)
	requireSame(t, old, snapshot(t, s.p.Live()))
}

func TestSweep(t *testing.T) {
	s := newSite(t)
	require.NoError(t, s.s.Sweep(), "no folder yet")
	s.write("a", "1")
	a := s.good()
	for _, d := range []string{".tmp-x/project", ".trash-y/z", ".spare/project", filepath.Base(a.Path) + "/.tmp-failed/project"} {
		require.NoError(t, os.MkdirAll(filepath.Join(s.p.Archives(), d), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.p.Archives(), "README"), []byte("an operator's"), 0o600))
	require.NoError(t, s.s.Sweep())
	s.requireNoLeftovers()
	names, err := os.ReadDir(s.p.Archives())
	require.NoError(t, err)
	require.Len(t, names, 2, "%v", names)
	proof, err := s.s.Verify(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, proof.Exact())
}

func TestCompareLive(t *testing.T) {
	s := newSite(t)
	exotic(t, s.live(""))
	a := s.make()
	p, err := s.s.CompareLive(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, p.Exact())
	require.Equal(t, p.Entries, p.Proved)
	require.NoError(t, os.Remove(s.live("big")))
	s.write("new", "n")
	require.NoError(t, os.Chmod(s.live("empty"), 0o666))
	require.NoError(t, os.Remove(s.live("zz-hard3")))
	s.write("zz-hard3", "hard")
	p, err = s.s.CompareLive(context.Background(), a.ID)
	require.NoError(t, err)
	got := map[string]string{}
	for _, d := range p.Differences {
		got[d.Path] = d.What
	}
	require.Equal(t, map[string]string{
		"project": "mtime", "project/big": "missing", "project/new": "extra", "project/empty": "mode", "project/zz-hard3": "mtime",
	}, got)
}

func TestDamagedManifest(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	a := s.make()
	p := filepath.Join(a.Path, "manifest")
	b, err := os.ReadFile(p)
	require.NoError(t, err)
	b[len(b)/2] ^= 1
	require.NoError(t, os.WriteFile(p, b, 0o600))
	_, err = s.s.Verify(context.Background(), a.ID)
	require.ErrorIs(t, err, tree.ErrManifest)
	before := snapshot(t, s.p.Live())
	_, err = s.s.Rollback(context.Background(), a.ID)
	require.ErrorIs(t, err, tree.ErrManifest)
	requireSame(t, before, snapshot(t, s.p.Live()))
	s.make() // a new one needs no reference
}

// A hook that runs before the archive may already have put a dump where the archive will be.
func TestDumpMadeBeforeTheArchive(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	f := s.facts()
	dir := s.p.Archive(f.At, f.ID)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "dumps"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dumps/db.sql"), []byte("x"), 0o600))
	a, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: f})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(a.Path, "dumps/db.sql"))
	s.requireExact(a)

	f = s.facts()
	dir = s.p.Archive(f.At, f.ID)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "project"), 0o755))
	_, err = s.s.Make(context.Background(), archive.MakeRequest{Facts: f})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.DirExists(t, filepath.Join(dir, "project"), "it is not ours to delete")
	s.requireNoLeftovers()
}

// The clock jumps back by years between deployments, and by an hour at each reading: the order of archives, what is
// packed, what a rotation keeps and what a rollback restores stay the same.
func TestTheClockMayJumpBack(t *testing.T) {
	s := newSite(t)
	now := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	s.use(archive.Config{Reserve: noReserve, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(-time.Hour)
		return now
	}})
	var ids []string
	var before map[string]string
	for n, year := range []int{2030, 2020, 2025, 2021} {
		s.write("f", fmt.Sprint(n))
		before = snapshot(t, s.p.Live())
		f := s.facts()
		f.At = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		a, err := s.s.Make(t.Context(), archive.MakeRequest{Facts: f})
		require.NoError(t, err)
		require.NoError(t, s.s.SetVerdict(a.ID, archive.Good))
		ids = append(ids, a.ID)
	}
	order := func() (out []string) {
		all, err := s.s.List()
		require.NoError(t, err)
		for _, a := range all {
			out = append(out, a.ID)
		}
		return out
	}
	require.Equal(t, []string{ids[3], ids[2], ids[1], ids[0]}, order())
	done, err := s.s.Compact(t.Context(), archive.Policy{Keep: 3, MaxAge: 24 * time.Hour})
	require.NoError(t, err)
	require.Empty(t, done.Refused)
	require.NoError(t, s.s.Wait())
	require.Subset(t, []string{ids[3], ids[2], ids[1]}, order())
	require.Subset(t, order(), []string{ids[3], ids[2]}, "the newest two are safe from any age")
	newest, err := s.s.Show(ids[3])
	require.NoError(t, err)
	require.Nil(t, newest.Packed, "the newest stays a folder")
	s.write("f", "broken")
	got, err := s.s.Rollback(t.Context(), ids[3])
	require.NoError(t, err)
	require.True(t, got.Proof.Exact(), "%v", got.Proof.Differences)
	requireSame(t, before, snapshot(t, s.p.Live()))
}
