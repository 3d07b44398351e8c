package underway_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
	"corpus-git/project"
	"corpus-git/project/underway"
)

func open(t *testing.T, dir string) *underway.Markers {
	t.Helper()
	b, err := underway.Open(dir, nil)
	require.NoError(t, err)
	return b
}

// settled returns the markers of a state in which nothing has to be examined.
func settled(t *testing.T) (*underway.Markers, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "underway")
	b := open(t, dir)
	b.MarkAllRecovered()
	return b, dir
}

// left is what a new owner of the state finds.
func left(t *testing.T, dir string) ([]project.Name, bool) {
	t.Helper()
	names, full := open(t, dir).Pending()
	slices.Sort(names)
	return names, full
}

func TestWhatIsUnderWayIsLeft(t *testing.T) {
	b, dir := settled(t)
	endA, err := b.Begin("a")
	require.NoError(t, err)
	again, err := b.Begin("a")
	require.NoError(t, err)
	endB, err := b.Begin("b")
	require.NoError(t, err)
	names, full := left(t, dir)
	require.Equal(t, []project.Name{"a", "b"}, names)
	require.False(t, full)
	endA()
	endA() // once is all it counts
	endB()
	names, _ = left(t, dir)
	require.Equal(t, []project.Name{"a"}, names, "somebody is at it still")
	again()
	names, full = left(t, dir)
	require.Empty(t, names)
	require.False(t, full)
}

// Without notes it is unknown which projects had no work in progress: all are examined, until that has finished.
func TestWithoutNotesEverythingIsLooked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "underway")
	b := open(t, dir)
	_, full := b.Pending()
	require.True(t, full)
	end, err := b.Begin("a")
	require.NoError(t, err)
	end()
	_, full = left(t, dir)
	require.True(t, full, "it died before the look had ended")
	require.NoError(t, b.MarkUnrecovered("broken"))
	b.MarkAllRecovered()
	names, full := left(t, dir)
	require.False(t, full)
	require.Equal(t, []project.Name{"broken"}, names)
}

// Notes of the last owner stay until their projects are recovered, whatever this owner does there meanwhile.
func TestLeftStaysUntilSettled(t *testing.T) {
	b, dir := settled(t)
	_, err := b.Begin("a")
	require.NoError(t, err)
	_, err = b.Begin("b")
	require.NoError(t, err)

	next := open(t, dir)
	end, err := next.Begin("a")
	require.NoError(t, err)
	end()
	names, _ := left(t, dir)
	require.Equal(t, []project.Name{"a", "b"}, names)
	next.MarkRecovered("a")
	end, err = next.Begin("b")
	require.NoError(t, err)
	next.MarkRecovered("b")
	names, _ = left(t, dir)
	require.Equal(t, []project.Name{"b"}, names, "it is under way anew")
	end()
	names, _ = left(t, dir)
	require.Empty(t, names)
}

func TestNamesAreChecked(t *testing.T) {
	b, dir := settled(t)
	for _, name := range []project.Name{"", "..", "*", "a/b", "../x"} {
		_, err := b.Begin(name)
		require.Error(t, err, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README.txt"), nil, 0o600))
	names, full := left(t, dir)
	require.Empty(t, names)
	require.False(t, full)
}

func TestNilMarkersNoteNothing(t *testing.T) {
	var b *underway.Markers
	end, err := b.Begin("a")
	require.NoError(t, err)
	end()
	b.MarkRecovered("a")
	b.MarkAllRecovered()
	require.NoError(t, b.MarkUnrecovered("a"))
	_, full := b.Pending()
	require.True(t, full)
}

// broken is a file system that makes nothing durable.
type broken struct{ vfs.OS }

func (broken) OpenFile(path string, flag int, perm uint32) (vfs.File, error) {
	f, err := vfs.OS{}.OpenFile(path, flag, perm)
	return unsynced{f}, err
}

type unsynced struct{ vfs.File }

func (unsynced) Sync() error { return os.ErrDeadlineExceeded }

func TestWithoutADurableNoteNothingBegins(t *testing.T) {
	_, dir := settled(t)
	b, err := underway.Open(dir, broken{})
	require.NoError(t, err)
	_, err = b.Begin("a")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	names, _ := left(t, dir)
	require.Empty(t, names)
}

// A power cut keeps the note once Begin has returned, although the empty file is not synced.
func TestNotesSurviveAPowerCut(t *testing.T) {
	m := vfstest.NewMem(time.Unix(1e9, 0))
	f := vfstest.New(m.FS(), nil)
	b, err := underway.Open("underway", f)
	require.NoError(t, err)
	b.MarkAllRecovered()
	seen := f.Count()
	_, err = b.Begin("a")
	require.NoError(t, err)
	var synced []string
	for _, op := range f.Ops()[seen:] {
		if op.Name == "fsync" {
			synced = append(synced, op.Path)
		}
	}
	require.Equal(t, []string{"underway"}, synced)
	next, err := underway.Open("underway", m.Crash(nil).FS())
	require.NoError(t, err)
	names, full := next.Pending()
	require.Equal(t, []project.Name{"a"}, names)
	require.False(t, full)
}

// With many holders: as long as one holds a project, its note exists.
func TestNotesAreThereWhileHeld(t *testing.T) {
	b, dir := settled(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 50 {
				name := project.Name([]string{"a", "b", "c"}[(i+n)%3])
				end, err := b.Begin(name)
				if err == nil {
					_, err = os.Stat(filepath.Join(dir, string(name)))
					end()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	names, _ := left(t, dir)
	require.Empty(t, names)
}
