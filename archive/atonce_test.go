package archive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

// requirePacked checks that an archive is files, and that these hold what its manifest lists.
func (s *site) requirePacked(a archive.Archive) {
	s.t.Helper()
	require.NotNil(s.t, s.show(a.ID).Packed)
	p, err := s.s.Verify(context.Background(), a.ID)
	require.NoError(s.t, err)
	require.True(s.t, p.Exact(), "%v", p.Differences)
}

// A rollback of a deployment whose archive was packed at once restores the tree exactly, with one of everything in it. The space that it
// takes is reserved until then.
func TestARollbackUnpacksWhatWasPackedAtOnce(t *testing.T) {
	s, _ := burstSite(t, 2)
	for range 2 { // the second one from a tree that a rollback made
		was := snapshot(t, s.live(""))
		a := s.make()
		s.requirePacked(a)
		held, err := os.Stat(filepath.Join(a.Path, ".tmp-reserve"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, held.Size(), a.Sizes.Disk)
		s.write("d1/f1", "broken")
		require.NoError(t, os.RemoveAll(s.live("d0")))
		got, err := s.s.Rollback(context.Background(), a.ID)
		require.NoError(t, err)
		require.True(t, got.Proof.Exact(), "%v", got.Proof.Differences)
		require.NoError(t, s.s.SetVerdict(a.ID, archive.RolledBack))
		requireSame(t, was, snapshot(t, s.live("")))
		require.NoFileExists(t, filepath.Join(a.Path, ".tmp-reserve"))
		require.True(t, s.show(a.ID).FailedTree)
		settle()
	}
	s.requireNoLeftovers()
}

// Where other machines have copies of the archives, each is files, however small the tree, and there is no spare tree.
func TestFilesForOtherMachines(t *testing.T) {
	s := newSite(t)
	s.use(archive.Config{Reserve: noReserve, Files: true})
	for i := range 3 {
		s.write("one", fmt.Sprint(i))
		was := snapshot(t, s.live(""))
		// Also if a hook would read it: the other machines would have an archive without trees.
		a, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts(), Folder: func() bool { return true }})
		require.NoError(t, err)
		s.requirePacked(a)
		require.NoDirExists(t, filepath.Join(a.Path, "project"))
		s.write("one", "broken")
		got, err := s.s.Rollback(context.Background(), a.ID)
		require.NoError(t, err)
		require.True(t, got.Proof.Exact(), "%v", got.Proof.Differences)
		requireSame(t, was, snapshot(t, s.live("")))
		settle()
	}
}

// The verdict of a deployment ends the reservation, in either way in which it is recorded.
func TestTheReservationEndsWithTheVerdict(t *testing.T) {
	s, _ := burstSite(t, 1)
	for _, end := range []func(a archive.Archive) error{
		func(a archive.Archive) error { return s.s.SetVerdict(a.ID, archive.Good) },
		func(a archive.Archive) error {
			done, err := s.s.Conclude(a.ID, archive.Good, s.s.StageVerdict(a.At, a.ID, archive.Good), archive.Policy{Keep: 9})
			require.NoError(t, err)
			return done()
		},
		func(archive.Archive) error { return s.s.Sweep() },
	} {
		a := s.make()
		require.FileExists(t, filepath.Join(a.Path, ".tmp-reserve"))
		require.NoError(t, end(a))
		require.NoFileExists(t, filepath.Join(a.Path, ".tmp-reserve"))
		s.requirePacked(a)
	}
}

// The archive is a folder if somebody reads it by path meanwhile, if no spare tree is wanted, or if its files are large.
func TestSomeArchivesAreFoldersAtOnce(t *testing.T) {
	s, _ := burstSite(t, 1)
	a, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts(), Folder: func() bool { return true }})
	require.NoError(t, err)
	require.Nil(t, a.Packed)
	s.requireExact(a)
	s.use(archive.Config{Reserve: noReserve, AtOnce: 1, NoSpare: true})
	a = s.make()
	require.Nil(t, a.Packed)
	s.use(archive.Config{Reserve: noReserve, AtOnce: 1})
	f, err := os.Create(s.live("large"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(17<<20))
	require.NoError(t, f.Close())
	a = s.make()
	require.Nil(t, a.Packed)
	s.requireExact(a)
}

// What changes, grows or vanishes while it is read is archived as it was read last, or is not, and noted.
func TestTreesThatChangeWhileTheyArePacked(t *testing.T) {
	s, _ := burstSite(t, 1)
	appended := 0
	add := func(p string) {
		f, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = f.WriteString("more")
		require.NoError(t, err)
		require.NoError(t, f.Close())
		appended++
	}
	s.write("grows", "once")
	s.write("always", "changes")
	s.write("gone", "soon")
	settle()
	once := true
	s.use(archive.Config{Reserve: noReserve, AtOnce: 1, Workers: 1, FS: vfstest.New(vfs.OS{}, func(_ int, o vfstest.Op) error {
		switch name := filepath.Base(o.Path); {
		case o.Name == "read" && name == "grows" && once:
			once = false
			add(s.live("grows"))
		case o.Name == "stat" && name == "always":
			add(s.live("always"))
		case o.Name == "open" && (name == "gone" || name == "hard2" || name == "hard1"):
			require.NoError(t, os.RemoveAll(s.live("gone")))
			require.NoError(t, os.RemoveAll(s.live("dir/hard2"))) // the first name of three in the order of the tar
		}
		return nil
	})})
	a := s.make()
	s.use(archive.Config{Reserve: noReserve, AtOnce: 1})
	s.requirePacked(a)
	require.Positive(t, appended)
	require.Equal(t, []string{"project/always"}, a.Made.Notes.UnstableNames[:1])
	require.Positive(t, a.Made.Notes.Vanished)
	_, err := s.s.Restore(context.Background(), a.ID, nil)
	require.NoError(t, err)
	b, err := os.ReadFile(s.live("grows"))
	require.NoError(t, err)
	require.Equal(t, "oncemore", string(b))
	require.NoFileExists(t, s.live("gone"))
	require.NoFileExists(t, s.live("dir/hard2"))
	for _, n := range []string{"hard1", "zz-hard3"} {
		b, err := os.ReadFile(s.live(n))
		require.NoError(t, err)
		require.Equal(t, "hard", string(b))
	}
}

// A tree that turns out to be nothing for files when some of it was read, and some of it has gone, is scanned again for the folder.
func TestAFolderIsMadeOfWhatIsThereThen(t *testing.T) {
	s, _ := burstSite(t, 1)
	s.write("a-gone", "soon")
	s.write("zz-grows", "much")
	settle()
	s.use(archive.Config{Reserve: noReserve, AtOnce: 1, Workers: 1, FS: vfstest.New(vfs.OS{}, func(_ int, o vfstest.Op) error {
		switch name := filepath.Base(o.Path); {
		case o.Name == "open" && name == "a-gone":
			require.NoError(t, os.RemoveAll(s.live("a-gone")))
		case o.Name == "open" && name == "zz-grows":
			require.NoError(t, os.Truncate(s.live("zz-grows"), 70<<20))
		}
		return nil
	})})
	a := s.make()
	s.use(archive.Config{Reserve: noReserve, AtOnce: 1})
	require.Nil(t, a.Packed)
	require.NoFileExists(t, filepath.Join(a.Path, "project/a-gone"))
	st, err := os.Stat(filepath.Join(a.Path, "project/zz-grows"))
	require.NoError(t, err)
	require.Equal(t, int64(70<<20), st.Size())
	s.requireExact(a)
}

// A deployment that fills the disk can be rolled back although its archive must be unpacked.
func TestAFullDiskLeavesRoomToUnpack(t *testing.T) {
	w := newWorld(t)
	w.burst()
	f := w.m.FS()
	w.m.Limit(1 << 20)
	w.id, w.old = w.facts(9).ID, memSnapshot(t, f, w.p)
	s := w.store(f)
	a, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(9)})
	require.NoError(t, err)
	require.NotNil(t, a.Packed)
	memWrite(t, f, w.p.Live()+"/more3", "broken")
	h, err := f.OpenFile(w.p.Live()+"/core", os.O_WRONLY|os.O_CREATE, 0o644)
	require.NoError(t, err)
	for {
		if _, err = h.Write(make([]byte, 100)); err != nil {
			break
		}
	}
	require.True(t, vfs.IsFull(err), "%v", err)
	got, err := s.Rollback(context.Background(), w.id)
	require.NoError(t, err, fmt.Sprint(a.Sizes))
	require.True(t, got.Proof.Exact(), "%v", got.Proof.Differences)
	require.Equal(t, w.old, memSnapshot(t, f, w.p))
}

// Where there is no room for the files and what a rollback unpacks of them, the archive is a folder, which takes less.
func TestAFolderIsMadeWhereFilesDoNotFit(t *testing.T) {
	w := newWorld(t)
	w.burst()
	f := w.m.FS()
	last, err := w.store(f).Show(w.id)
	require.NoError(t, err)
	w.m.Limit(w.m.Used() + last.Sizes.Disk + 8<<10)
	a, err := w.store(f).Make(context.Background(), archive.MakeRequest{Facts: w.facts(9)})
	require.NoError(t, err)
	require.Nil(t, a.Packed)
	p, err := w.store(f).Verify(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, p.Exact(), "%v", p.Differences)
}
