package archive_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/archive"
	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// good makes one good archive and expires those before.
func (s *site) good() archive.Archive {
	s.t.Helper()
	a := s.make()
	require.NoError(s.t, s.s.SetVerdict(a.ID, archive.Good))
	return a
}

func (s *site) rotate(p archive.Policy) archive.Rotation {
	s.t.Helper()
	r, err := s.s.Rotate(p)
	require.NoError(s.t, err)
	require.NoError(s.t, s.s.Wait())
	return r
}

func (s *site) requireExact(a archive.Archive) {
	s.t.Helper()
	requireSame(s.t, snapshot(s.t, s.p.Live()), snapshot(s.t, filepath.Join(a.Path, "project")))
	requireNoSharedInode(s.t, s.p.Live(), a.Path)
}

// Every kind of change between two archives, seen through the recycled tree.
func TestSpareTreeBecomesTheNextArchive(t *testing.T) {
	ok := func(err error) { require.NoError(t, err) }
	changes := []struct {
		name   string
		change func(s *site)
		copied int64
	}{
		{"nothing", func(*site) {}, 0},
		{"new file", func(s *site) { s.write("dir/new", "n") }, 1},
		{"new folders", func(s *site) { s.write("x/y/z", "n") }, 1},
		{"removed file", func(s *site) { ok(os.Remove(s.live("plain"))) }, 0},
		{"removed folder", func(s *site) { ok(os.RemoveAll(s.live("deep"))) }, 0},
		{"written in place, same size and time", func(s *site) {
			fi, err := os.Stat(s.live("dir/run"))
			ok(err)
			ok(os.WriteFile(s.live("dir/run"), []byte("#!/bin/SH\n"), 0o755))
			ok(unix.Chmod(s.live("dir/run"), 0o6755))
			ok(os.Chtimes(s.live("dir/run"), fi.ModTime(), fi.ModTime()))
		}, 1},
		{"mode only", func(s *site) { ok(os.Chmod(s.live("big"), 0o600)) }, 1},
		{"folder's mode only", func(s *site) { ok(os.Chmod(s.live("dir"), 0o700)) }, 0},
		{"file becomes folder", func(s *site) { ok(os.Remove(s.live("plain"))); s.write("plain/in", "n") }, 1},
		{"folder becomes file", func(s *site) { ok(os.RemoveAll(s.live("deep"))); s.write("deep", "n") }, 1},
		{"folder becomes link", func(s *site) { ok(os.RemoveAll(s.live("deep"))); ok(os.Symlink("dir", s.live("deep"))) }, 1},
		{"link turned", func(s *site) { ok(os.Remove(s.live("link"))); ok(os.Symlink("big", s.live("link"))) }, 1},
		{"renamed file", func(s *site) { ok(os.Rename(s.live("big"), s.live("bigger"))) }, 1},
		{"renamed folder", func(s *site) { ok(os.Rename(s.live("dir/sub"), s.live("dir/sub2"))) }, 0},
		{"one of three hard links gone", func(s *site) { ok(os.Remove(s.live("dir/hard2"))) }, 1},
		{"another hard link", func(s *site) { ok(os.Link(s.live("hard1"), s.live("hard4"))) }, 1},
		{"hard links broken up", func(s *site) {
			for _, n := range []string{"hard1", "dir/hard2", "zz-hard3"} {
				b, err := os.ReadFile(s.live(n))
				ok(err)
				ok(os.Remove(s.live(n)))
				ok(os.WriteFile(s.live(n), b, 0o644))
			}
		}, 3},
		{"file inside a closed folder", func(s *site) {
			ok(os.Chmod(s.live("closed"), 0o755))
			s.write("closed/in", "changed")
			ok(os.Chmod(s.live("closed"), 0o555))
		}, 1},
		{"attribute", func(s *site) {
			if unix.Setxattr(s.live("plain"), "user.note", []byte("other"), 0) != nil {
				ok(os.Chmod(s.live("plain"), 0o600))
			}
		}, 1},
		{"everything gone", func(s *site) {
			ok(os.Chmod(s.live("closed"), 0o755))
			ok(os.RemoveAll(s.live("")))
			ok(os.Mkdir(s.live(""), 0o750))
		}, 0},
	}
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			exotic(t, s.live(""))
			settle()
			s.good()
			s.good()
			require.True(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
			c.change(s)
			a := s.make()
			s.requireExact(a)
			require.Equal(t, c.copied, a.Made.Copied)
			proof, err := s.s.Verify(context.Background(), a.ID)
			require.NoError(t, err)
			require.True(t, proof.Exact(), "%v", proof.Differences)
			require.Equal(t, proof.Entries, proof.Proved)
			all, err := s.s.List()
			require.NoError(t, err)
			require.Len(t, all, 2)
			proof, err = s.s.Verify(context.Background(), all[1].ID)
			require.NoError(t, err)
			require.True(t, proof.Exact(), "the older archive is as it was: %v", proof.Differences)

			// And back again, whatever happened before.
			before := snapshot(t, s.p.Live())
			s.write("plain2", "changed")
			res, err := s.s.Rollback(context.Background(), a.ID)
			require.NoError(t, err)
			require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
			requireSame(t, before, snapshot(t, s.p.Live()))
		})
	}
}

// A file that changed just before the scan may change again without a trace: it is copied next time, whatever stat reports.
func TestRacyFilesAreNeverTakenOver(t *testing.T) {
	s := newSite(t)
	before := time.Now()
	s.use(archive.Config{Reserve: noReserve, Now: func() time.Time { return before }})
	s.write("a", "1")
	s.good()
	s.good()
	s.rotate(archive.Policy{Keep: 1})
	// By its clock no time passed between writing and scanning: none of it may be trusted.
	a := s.make()
	require.Equal(t, int64(1), a.Made.Copied)
}

// After a rollback the live files are other files; the next archive knows them and copies nothing.
func TestRollbackKeepsTheSpareUseful(t *testing.T) {
	s := newSite(t)
	exotic(t, s.live(""))
	settle()
	s.good()
	s.good()
	s.rotate(archive.Policy{Keep: 1})
	s.write("dir/new", "n")
	a := s.make()
	settle()
	s.write("plain", "broken by the deployment")
	_, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.NoError(t, s.s.SetVerdict(a.ID, archive.RolledBack))
	s.good() // consumes no spare: there is none
	s.good()
	require.True(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
	b := s.make()
	s.requireExact(b)
	require.Zero(t, b.Made.Copied)
}

func TestMakeTwiceGivesTheSame(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	f := s.facts()
	begun := 0
	req := archive.MakeRequest{Facts: f, Begin: func() { begun++; s.write("b", "before the look") }}
	a, err := s.s.Make(context.Background(), req)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(a.Path, "project/b"), "Begin is called before the trees are looked at")
	s.write("a", "2")
	b, err := s.s.Make(context.Background(), req)
	require.NoError(t, err)
	require.Equal(t, a.Path, b.Path)
	require.Equal(t, 1, begun, "no tree is looked at again")
	got, err := os.ReadFile(filepath.Join(b.Path, "project/a"))
	require.NoError(t, err)
	require.Equal(t, "1", string(got), "the archive of a deployment is from before it")
}

// The first deployment: nothing exists, and a rollback restores that state.
func TestNothingToArchive(t *testing.T) {
	s := newSite(t)
	require.NoError(t, os.MkdirAll(s.p.Dir(), 0o755))
	a := s.make()
	require.Empty(t, a.Trees)
	s.write("a", "1")
	failed := snapshot(t, s.p.Live())
	res, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, res.Proof.Exact())
	require.Nil(t, snapshot(t, s.p.Live()))
	requireSame(t, failed, snapshot(t, filepath.Join(a.Path, "project.failed")))
	res, err = s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, res.Already)
}

// A deployment removed the whole tree.
func TestRollbackOfARemovedTree(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	before := snapshot(t, s.p.Live())
	a := s.make()
	require.NoError(t, os.RemoveAll(s.p.Live()))
	res, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.False(t, res.FailedKept)
	requireSame(t, before, snapshot(t, s.p.Live()))
}

func TestSocketStaysWithItsListener(t *testing.T) {
	s := newSite(t)
	s.write("run/pid", "1")
	listen(t, s.live("run/app.sock"))
	before := snapshot(t, s.p.Live())
	a := s.make()
	require.Equal(t, []string{"project/run/app.sock"}, a.Made.Notes.SkippedNames)
	s.write("run/pid", "2")
	res, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
	requireSame(t, before, snapshot(t, s.p.Live()))
}

func TestTreeMustBeAFolder(t *testing.T) {
	s := newSite(t)
	require.NoError(t, os.MkdirAll(s.p.Dir(), 0o755))
	require.NoError(t, os.Symlink("/etc", s.p.Live()))
	_, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	s.requireNoLeftovers()
}

func (s *site) requireNoLeftovers() {
	s.t.Helper()
	require.NoError(s.t, s.s.Wait())
	names, err := vfs.OS{}.ReadDir(s.p.Archives())
	require.NoError(s.t, err)
	for _, n := range names {
		require.False(s.t, strings.HasPrefix(n, ".tmp-") || strings.HasPrefix(n, ".trash-"), n)
	}
}

// An ordinary user has a file that it can't read: no archive, and a hint.
func TestUnreadableFileRefuses(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	s := newSite(t)
	s.write("secret", "1")
	require.NoError(t, os.Chmod(s.live("secret"), 0))
	_, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.Contains(t, err.Error(), "secret")
	require.NotEmpty(t, fault.HintOf(err))
	s.requireNoLeftovers()
}

// writingFS writes to a live file each time it is copied.
type writingFS struct {
	vfs.FS
	target string
	times  *int
}

type writingDir struct {
	writingFS
	io.Closer
}

type writingFile struct {
	vfs.File
	w writingFS
}

func (w writingFS) OpenDir(p string) (vfs.Dir, error) {
	d, err := w.FS.OpenDir(p)
	if err != nil {
		return nil, err
	}
	return writingDir{writingFS{d, w.target, w.times}, d}, nil
}

func (w writingFS) OpenFile(p string, flag int, perm uint32) (vfs.File, error) {
	f, err := w.FS.OpenFile(p, flag, perm)
	if err != nil {
		return nil, err
	}
	return writingFile{f, w}, nil
}

func (f writingFile) CopyFrom(ctx context.Context, src vfs.File) (int64, error) {
	if s, ok := src.(writingFile); ok {
		src = s.File
	}
	n, err := f.File.CopyFrom(ctx, src)
	if *f.w.times > 0 {
		*f.w.times--
		h, oerr := os.OpenFile(f.w.target, os.O_WRONLY|os.O_APPEND, 0)
		if oerr != nil {
			return n, oerr
		}
		_, _ = h.WriteString("more")
		_ = h.Close()
	}
	return n, err
}

func TestConcurrentWriterIsNoticed(t *testing.T) {
	for _, c := range []struct {
		times    int
		unstable int
	}{{1, 0}, {2, 0}, {100, 1}} {
		t.Run(fmt.Sprint(c.times), func(t *testing.T) {
			s := newSite(t)
			s.write("log", "start")
			times := c.times
			s.use(archive.Config{Reserve: noReserve, FS: writingFS{vfs.OS{}, s.live("log"), &times}})
			a := s.make()
			require.Equal(t, c.unstable, a.Made.Notes.Unstable)
			if c.unstable == 0 {
				s.requireExact(a)
				return
			}
			require.Equal(t, []string{"project/log"}, a.Made.Notes.UnstableNames)
		})
	}
}

func TestProgress(t *testing.T) {
	s := newSite(t)
	for i := range 200 {
		s.write(fmt.Sprintf("d%d/f%d", i%7, i), "0123456789")
	}
	var last tree.Progress
	_, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts(), Progress: func(p tree.Progress) {
		require.GreaterOrEqual(t, p.Files, last.Files)
		last = p
	}})
	require.NoError(t, err)
	require.Equal(t, tree.Progress{Files: 200, TotalFiles: 200, Bytes: 2000, TotalBytes: 2000}, last)
}

func TestCancelledMakeLeavesNothing(t *testing.T) {
	s := newSite(t)
	exotic(t, s.live(""))
	ctx, cancel := context.WithCancel(context.Background())
	_, err := s.s.Make(ctx, archive.MakeRequest{Facts: s.facts(), Progress: func(tree.Progress) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	s.requireNoLeftovers()
}

// shortFS claims to have little space left.
type shortFS struct {
	vfs.OS
	space vfs.Space
}

func (f shortFS) StatFS(string) (vfs.Space, error) { return f.space, nil }

func TestSpaceIsCheckedFirst(t *testing.T) {
	for _, c := range []struct {
		name    string
		space   vfs.Space
		reserve archive.Reserve
		ok      bool
		says    string
	}{
		{"plenty", vfs.Space{Total: 1 << 40, Free: 1 << 39, Files: 1000, Inodes: 1000}, archive.Reserve{}, true, ""},
		{"no bytes", vfs.Space{Total: 1 << 30, Free: 1 << 10, Files: 1000, Inodes: 1000}, noReserve, false, "not enough space"},
		{"the reserve counts", vfs.Space{Total: 1 << 40, Free: 1 << 30, Files: 1000, Inodes: 1000}, archive.Reserve{}, false, "reserve"},
		{"a share of a large disk", vfs.Space{Total: 100 << 40, Free: 4 << 40, Files: 1000, Inodes: 1000}, archive.Reserve{}, false, "reserve"},
		{"no inodes", vfs.Space{Total: 1 << 40, Free: 1 << 39, Files: 1000, Inodes: 1}, archive.Reserve{}, false, "inodes"},
		{"inodes are not counted here", vfs.Space{Total: 1 << 40, Free: 1 << 39}, archive.Reserve{}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			exotic(t, s.live(""))
			s.use(archive.Config{FS: shortFS{space: c.space}, Reserve: c.reserve})
			room := s.s.Room(context.Background(), archive.Later{})
			require.NoDirExists(t, s.p.Archives())
			_, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
			require.Equal(t, fmt.Sprint(err), fmt.Sprint(room), "looking comes to the same")
			if c.ok {
				require.NoError(t, err)
				require.ErrorContains(t, s.s.Room(context.Background(), archive.Later{Bytes: 1 << 62}), "the checkout ")
				return
			}
			var se *archive.SpaceError
			require.ErrorAs(t, err, &se)
			require.Contains(t, err.Error(), c.says)
			require.NotEmpty(t, fault.HintOf(err))
			s.requireNoLeftovers()
		})
	}
}

// A file with holes needs the space that it takes, not its size.
func TestSpaceCountsAllocatedBlocks(t *testing.T) {
	s := newSite(t)
	s.write("sparse", "")
	require.NoError(t, os.Truncate(s.live("sparse"), 1<<40))
	s.use(archive.Config{FS: shortFS{space: vfs.Space{Total: 1 << 30, Free: 1 << 20}}, Reserve: noReserve})
	a := s.make()
	require.Equal(t, int64(1<<40), a.Sizes.Bytes)
	require.Less(t, a.Sizes.Disk, int64(1<<20))
}

func TestTimesAreThoseOfTheClock(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	at := time.Now()
	s.use(archive.Config{Reserve: noReserve, Now: func() time.Time { at = at.Add(time.Second); return at }})
	a := s.make()
	require.Equal(t, time.Second, a.Made.Took)
}
