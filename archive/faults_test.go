package archive_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/internal/draw"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

// errnos are a broken disk, a full one, a full quota, missing permissions, a file system that became read-only, a folder
// that vanished, a busy one, and an unsupported operation.
func errnos() []syscall.Errno {
	return []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOENT, syscall.EBUSY, syscall.EINVAL}
}

// rootOnly are the calls that only root may make, some of them only for some files.
func rootOnly() []string { return []string{"mknod", "lchown", "fchown", "setxattr", "fsetxattr"} }

// failNth fails the nth call once. EPERM from a call that only root may make is not a fault but what an ordinary user gets:
// the copy continues and notes it (TestWhatOnlyRootMayDoIsNoted); such a call gets EIO. So does one that would report, only once,
// that something has vanished from trees that are compared: what has vanished stays missing (TestAFolderVanishes).
func (o operation) failNth(n int, errno syscall.Errno) func(int, vfstest.Op) error {
	fail, instead := vfstest.FailNth("", n, errno), vfstest.FailNth("", n, syscall.EIO)
	return func(i int, op vfstest.Op) error {
		err, other := fail(i, op), instead(i, op)
		switch {
		case errno == syscall.EPERM && slices.Contains(rootOnly(), op.Name),
			errno == syscall.ENOENT && !o.steady,
			errno == syscall.EINVAL && !o.steady && op.Name == "readlink":
			return other
		}
		return err
	}
}

// Each call in turn fails once. The live trees are whole, and the operation succeeds when it is run again.
func TestEveryCallMayFail(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			base := newWorld(t)
			o.setup(base)
			first, step := o.stride(t)
			rounds, shift := 1, draw.Below(t, len(errnos()))
			if crashKills() >= 100 { // each call fails in every way
				rounds = len(errnos())
			}
			t.Logf("errors from the %d.", shift)
			for round := range rounds {
				failed := 0
				for n := first; o.failsAt(base, n, errnos()[(n+n/8+shift+round)%len(errnos())], &failed); n += step {
				}
				require.Greater(t, failed, 5, "a call that fails fails the operation, but where it only saves work")
			}
		})
	}
}

// failsAt runs the operation in a copy of a world with one failing call. It reports whether there was such a call.
func (o operation) failsAt(base *world, n int, errno syscall.Errno, failed *int) bool {
	w := base.clone()
	t := w.t
	before := memSnapshot(t, w.m.FS(), w.p)
	faulty := vfstest.New(w.m.FS(), o.failNth(n, errno))
	s := w.store(o.wrap(faulty))
	err := o.run(w, s)
	_ = s.Wait()
	if faulty.Count() < n {
		require.NoError(t, err)
		return false
	}
	says := fmt.Sprintf("%s, call %d (%v) gives %q: %v", o.name, n, faulty.Ops()[n-1], errno, err)
	if err != nil {
		*failed++
	}
	w.requireWholeTrees(o, before, memSnapshot(t, w.m.FS(), w.p), says)
	again := w.store(o.wrap(w.m.FS()))
	require.NoError(t, o.run(w, again), says)
	require.Equal(t, w.want(o, before), memSnapshot(t, w.m.FS(), w.p), says)
	w.requireArchivesWhole(again, w.m.FS(), says)
	return true
}

// The power fails after each call. What remains is whole, and the operation succeeds when it is run again.
func TestThePowerMayFailAnywhere(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			base := newWorld(t)
			o.setup(base)
			first, step := o.stride(t)
			seed := draw.Seed(t)
			for n := first - 1; ; n += step {
				draws := []*rand.Rand{rand.New(rand.NewPCG(uint64(n), seed))}
				if n%4 == 0 {
					draws[0] = nil // everything that was not synced is lost
				}
				if crashKills() >= 100 {
					draws = []*rand.Rand{nil}
					for i := range uint64(4) {
						draws = append(draws, rand.New(rand.NewPCG(uint64(n), seed+i)))
					}
				}
				through := false
				for _, draw := range draws {
					through = o.powerFails(base, n, draw)
				}
				if through {
					break
				}
			}
		})
	}
}

// powerFails runs the operation in a copy of a world whose power fails after n calls. draw chooses what remains of what was not
// synced, nil for nothing. It reports whether the operation had ended by then.
func (o operation) powerFails(base *world, n int, draw *rand.Rand) bool {
	w := base.clone()
	t := w.t
	before := memSnapshot(t, w.m.FS(), w.p)
	s := w.store(o.wrap(vfstest.New(w.m.FS(), vfstest.CrashAt(n))))
	err := o.run(w, s)
	_ = s.Wait()
	says := fmt.Sprintf("%s, power fails after call %d, something left %v: %v", o.name, n, draw != nil, err)
	w.m = w.m.Crash(draw)
	f := w.m.FS()
	now := memSnapshot(t, f, w.p)
	w.requireWholeTrees(o, before, now, says)
	again := w.store(o.wrap(f))
	if err == nil { // it reported success: then it is complete
		require.Equal(t, w.want(o, before), now, says)
		if o.name == "make" {
			_, serr := again.Show(w.id)
			require.NoError(t, serr, says)
		}
	}
	w.requireArchivesWhole(again, f, says)
	require.NoError(t, o.run(w, again), says)
	require.Equal(t, w.want(o, before), memSnapshot(t, f, w.p), says)
	w.requireArchivesWhole(again, f, says)
	return err == nil
}

// A disk that fills up in the middle: no archive, the hint, and the live tree unchanged.
func TestDiskFillsUp(t *testing.T) {
	w := newWorld(t)
	before := memSnapshot(t, w.m.FS(), w.p)
	s := w.store(vfstest.New(w.m.FS(), vfstest.FailFrom("write", 1, syscall.ENOSPC)))
	_, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(4)})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "no space left")
	_ = s.Wait()
	require.Equal(t, before, memSnapshot(t, w.m.FS(), w.p))
	w.requireArchivesWhole(w.store(w.m.FS()), w.m.FS(), "full")
}

// A folder that a running program removes while the tree is read: the archive is made, and notes what it lacks.
func TestAFolderVanishes(t *testing.T) {
	for _, call := range []string{"opendir", "readdir", "lstat"} {
		t.Run(call, func(t *testing.T) {
			w := newWorld(t)
			once, opened := false, false
			gone := vfstest.New(w.m.FS(), func(_ int, o vfstest.Op) error {
				opened = opened || o.Name == "opendir" && strings.HasSuffix(o.Path, "sub")
				if !once && o.Name == call && (strings.HasSuffix(o.Path, "sub") || call == "readdir" && opened && o.Path == ".") {
					once = true
					return &fs.PathError{Op: call, Path: o.Path, Err: syscall.ENOENT}
				}
				return nil
			})
			a, err := w.store(gone).Make(context.Background(), archive.MakeRequest{Facts: w.facts(4)})
			require.NoError(t, err)
			require.Equal(t, 1, a.Made.Notes.Vanished)
			w.requireArchivesWhole(w.store(w.m.FS()), w.m.FS(), "vanished")
		})
	}
}

// If one tree can be exchanged and the other not, the archive has lost the first: it is not whole, and nothing treats it
// as one that can be restored.
func TestARollbackExchangesOneTreeOnly(t *testing.T) {
	for _, busy := range []string{"project", "pillar"} {
		t.Run(busy, func(t *testing.T) {
			w := newWorld(t)
			w.deploy()
			s := w.store(vfstest.New(w.m.FS(), func(_ int, o vfstest.Op) error {
				if o.Name == "exchange" && strings.HasSuffix(o.Path, "/"+busy) {
					return &fs.PathError{Op: o.Name, Path: o.Path, Err: syscall.EBUSY}
				}
				return nil
			}))
			require.NoError(t, rollback(w, s))
			require.Equal(t, w.old, memSnapshot(t, w.m.FS(), w.p))
			a, err := s.Show(w.id)
			require.NoError(t, err)
			require.Equal(t, "in place", a.Rollback.Method)
			require.False(t, a.Whole)
			_, err = s.Restore(context.Background(), w.id, nil)
			require.ErrorIs(t, err, archive.ErrNotWhole)
			require.Equal(t, w.old, memSnapshot(t, w.m.FS(), w.p))
			w.requireArchivesWhole(s, w.m.FS(), busy)
		})
	}
}

// What only root may do is skipped for an ordinary user: the archive is made, and notes what it lacks.
func TestWhatOnlyRootMayDoIsNoted(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.m.FS().SetXattr(w.p.Live()+"/a", vfs.Xattr{Name: "user.y", Value: []byte("2")}))
	require.NoError(t, w.m.FS().Lchown(w.p.Live()+"/a", 9, 9))
	denied := vfstest.New(w.m.FS(), func(_ int, o vfstest.Op) error {
		if slices.Contains(rootOnly(), o.Name) {
			return &fs.PathError{Op: o.Name, Path: o.Path, Err: syscall.EPERM}
		}
		return nil
	})
	a, err := w.store(denied).Make(context.Background(), archive.MakeRequest{Facts: w.facts(4)})
	require.NoError(t, err)
	require.Positive(t, a.Made.Notes.Owners)
	require.Positive(t, a.Made.Notes.Xattrs)
}

// An error names the file and what to do.
func TestFaultsAreTold(t *testing.T) {
	for _, c := range []struct {
		call, where string
		errno       syscall.Errno
		says, hint  string
	}{
		{"copy", "/b", syscall.ENOSPC, "no space left", "archives prune"},
		{"copy", "/b", syscall.EDQUOT, "quota", "archives prune"},
		{"open", "/b", syscall.EACCES, "dir/b: permission denied", "run the server as root"},
		{"syncfs", "", syscall.EIO, "input/output error", "disk"},
		{"mkdir", "", syscall.EROFS, "read-only file system", "read-only"},
		{"open", "/b", syscall.EIO, "dir/b: input/output error", "disk"},
	} {
		t.Run(c.call+" "+c.errno.Error(), func(t *testing.T) {
			w := newWorld(t)
			memWrite(t, w.m.FS(), w.p.Live()+"/dir/b", "to be copied")
			require.NoError(t, w.m.FS().Mkdir(w.p.Live()+"/newdir", 0o755))
			s := w.store(vfstest.New(w.m.FS(), func(_ int, o vfstest.Op) error {
				if o.Name == c.call && strings.HasSuffix("/"+o.Path, c.where) {
					return &fs.PathError{Op: o.Name, Path: o.Path, Err: c.errno}
				}
				return nil
			}))
			_, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(4)})
			require.ErrorIs(t, err, c.errno)
			require.ErrorContains(t, err, c.says)
			var fe *fault.Error
			require.ErrorAs(t, err, &fe)
			require.Contains(t, fe.Hint, c.hint)
			_ = s.Wait()
			w.requireArchivesWhole(w.store(w.m.FS()), w.m.FS(), c.says)
		})
	}
}

// A file system reports a block that could not be written once: to the first caller that syncs. If that is the sync during
// the copying, the archive must still fail.
func TestEarlySyncFails(t *testing.T) {
	s := newSite(t)
	for i := range 40 {
		s.write("f"+string(rune('A'+i)), strings.Repeat("x", 100<<10))
	}
	bad := vfstest.New(vfs.OS{}, vfstest.FailNth("syncfs", 1, syscall.EIO))
	s.use(archive.Config{FS: bad, SyncEvery: 1 << 20, Reserve: noReserve})
	_, err := s.s.Make(t.Context(), archive.MakeRequest{Facts: s.facts()})
	require.ErrorIs(t, err, syscall.EIO)
	require.NoError(t, s.s.Wait())
	all, err := s.s.List()
	require.NoError(t, err)
	require.Empty(t, all)
	s.requireExact(s.make())
}
