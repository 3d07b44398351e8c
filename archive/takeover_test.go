package archive_test

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/draw"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

// shared copies what hubs have in common of the archives from one machine to another: their own files, and neither trees nor names that begin with a point.
func (w *world) shared(to *world) {
	w.t.Helper()
	from, f := w.m.FS(), to.m.FS()
	names, err := from.ReadDir(w.p.Archives())
	require.NoError(w.t, err)
	theirs, err := f.ReadDir(w.p.Archives())
	require.NoError(w.t, err)
	for _, n := range theirs { // as a copy does: what is gone there is removed here, but not what is not in common
		if strings.HasPrefix(n, ".") {
			continue
		}
		files, err := f.ReadDir(w.p.Archives() + "/" + n)
		require.NoError(w.t, err)
		for _, name := range files {
			p := path.Join(w.p.Archives(), n, name)
			st, err := f.Lstat(p)
			require.NoError(w.t, err)
			if _, err := from.Lstat(p); !strings.HasPrefix(name, ".") && !st.IsDir() && err != nil {
				require.ErrorIs(w.t, err, fs.ErrNotExist)
				require.NoError(w.t, f.Remove(p))
			}
		}
	}
	for _, n := range names {
		dir := w.p.Archives() + "/" + n
		if strings.HasPrefix(n, ".") {
			continue
		}
		require.NoError(w.t, vfs.MkdirAll(f, dir, 0o700))
		files, err := from.ReadDir(dir)
		require.NoError(w.t, err)
		for _, name := range files {
			st, err := from.Lstat(dir + "/" + name)
			require.NoError(w.t, err)
			if strings.HasPrefix(name, ".") || st.IsDir() {
				continue
			}
			b, err := vfs.ReadFile(from, dir+"/"+name)
			require.NoError(w.t, err)
			require.NoError(w.t, vfs.WriteFileAtomic(f, dir+"/"+name, b, 0o600))
		}
	}
}

// unpackedAfter returns how many calls a rollback makes before its trees are folders.
func (w *world) unpackedAfter() int {
	w.t.Helper()
	a := w.clone()
	calls := vfstest.New(a.m.FS(), nil)
	require.NoError(w.t, rollback(a, a.store(calls)))
	n := slices.IndexFunc(calls.Ops(), func(o vfstest.Op) bool { return o.Name == "link" && strings.HasSuffix(o.Path, "/.rollback") })
	require.Positive(w.t, n)
	return n
}

// The hub that leads dies at any call of a rollback of a packed archive. Another one, which has what they have in common, ends the rollback. When the first one comes back with what its disk had, nothing of
// that counts as an archive.
func TestAnotherHubEndsTheRollback(t *testing.T) {
	t.Parallel()
	one := newWorld(t)
	one.burstAndDeploy()
	other := one.clone() // the same trees; the failed deployment's are what it checked out
	f := other.m.FS()
	for range 20 { // its inodes have other numbers
		memWrite(t, f, "/srv/number", "")
		require.NoError(t, f.Remove("/srv/number"))
	}
	unpacked := one.unpackedAfter()
	begun, done := 0, 0
	for n, step := draw.Below(t, 29), 29; ; n += step {
		if crashKills() >= 100 {
			step = 1
		} else if n > unpacked {
			step = 4
		}
		a, b := one.clone(), other.clone()
		err := rollback(a, a.store(vfstest.New(a.m.FS(), vfstest.CrashAt(n))))
		says := fmt.Sprintf("dies after call %d: %v", n, err)
		if err != nil {
			a.m = a.m.Crash(nil)
		}
		a.shared(b)
		s := b.store(b.m.FS())
		require.NoError(t, s.Sweep(), says)
		got, err := s.Show(b.id)
		require.NoError(t, err, says)
		ended := got.Rollback != nil && !got.Rollback.Done.IsZero()
		if got.Rollback != nil && !ended {
			begun++
		}
		if ended { // only its trees are missing there, which hubs do not have in common
			done++
			require.Nil(t, got.Packed, says)
			if done > 2 {
				break
			}
			continue
		}
		require.NoError(t, rollback(b, s), says)
		require.Equal(t, b.old, memSnapshot(t, b.m.FS(), b.p), says)
		require.NoError(t, rollback(b, s), says)
		require.NoError(t, s.Wait(), says)
		b.requireArchivesWhole(s, b.m.FS(), says)

		// The first one follows, and leads again later.
		b.shared(a)
		again := a.store(a.m.FS())
		got, err = again.Show(a.id)
		require.NoError(t, err, says)
		require.False(t, got.Whole, says)
		require.NoError(t, again.Sweep(), says)
		require.NoError(t, again.Wait(), says)
		got, err = again.Show(a.id)
		require.NoError(t, err, says)
		require.False(t, got.Whole, says)
		_, err = a.m.FS().Lstat(path.Join(got.Path, ".rollback"))
		require.ErrorIs(t, err, fs.ErrNotExist, says)
	}
	require.Positive(t, begun)
	require.Positive(t, done)
}

// Another hub began a rollback, too, and died: the first one leads again, whose live trees were replaced meanwhile, and begins anew.
func TestTheFirstHubBeginsTheRollbackAnew(t *testing.T) {
	t.Parallel()
	one := newWorld(t)
	one.burstAndDeploy()
	failed := memSnapshot(t, one.m.FS(), one.p)
	anew := 0
	for n := one.unpackedAfter(); ; n++ {
		a := one.clone()
		err := rollback(a, a.store(vfstest.New(a.m.FS(), vfstest.CrashAt(n))))
		if err == nil {
			break
		}
		a.m = a.m.Crash(nil)
		f := a.m.FS()
		if now := memSnapshot(t, f, a.p); fmt.Sprint(now) == fmt.Sprint(failed) {
			continue // nothing was exchanged yet
		}
		for _, p := range []string{a.p.Live(), a.p.Pillar()} { // it checked out
			require.NoError(t, vfs.RemoveAll(f, p))
			require.NoError(t, f.Mkdir(p, 0o755))
			memWrite(t, f, p+"/checked", "out")
		}
		s := a.store(f)
		got, err := s.Show(a.id)
		require.NoError(t, err)
		require.NotNil(t, got.Rollback)
		if !got.Rollback.Done.IsZero() {
			continue
		}
		anew++
		require.NoError(t, s.Sweep())
		says := fmt.Sprintf("dies after call %d", n)
		require.NoError(t, rollback(a, s), says)
		require.Equal(t, a.old, memSnapshot(t, f, a.p), says)
		require.NoError(t, s.Wait(), says)
		a.requireArchivesWhole(s, f, says)
	}
	require.Positive(t, anew)
}
