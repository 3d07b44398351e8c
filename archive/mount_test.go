package archive_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/archive"
	"corpus-git/internal/fault"
	"corpus-git/internal/trap"
	"corpus-git/internal/vfs"
)

// mount mounts a small file system at dir, if the machine allows it.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	if err := unix.Mount("corpus", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("no mounts here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
}

// If a tree can't be renamed, the rollback restores file by file, with the same result.
func TestRollbackWhereNothingCanBeRenamed(t *testing.T) {
	for name, where := range map[string]func(*site) string{
		"live is a mount point":          func(s *site) string { return s.p.Live() },
		"something is mounted inside":    func(s *site) string { return s.live("uploads") },
		"archives lie on another system": func(s *site) string { return s.p.Archives() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			mount(t, where(s), "size=64m")
			exotic(t, s.live(""))
			s.write("uploads/one", "1")
			settle()
			before := snapshot(t, s.p.Live())
			inos := inodes(t, s.p.Live())
			a := s.make()
			s.requireExact(a)

			s.write("plain", "overwritten")
			s.write("uploads/two", "2")
			require.NoError(t, os.Remove(s.live("hard1")))
			require.NoError(t, os.RemoveAll(s.live("deep")))
			require.NoError(t, os.Chmod(s.live("sticky"), 0o700))
			require.NoError(t, os.Remove(s.live("link")))
			require.NoError(t, os.MkdirAll(s.live("link/is/now/a/folder"), 0o755))
			require.NoError(t, os.Remove(s.live("fifo")))
			failed := snapshot(t, s.p.Live())

			res, err := s.s.Rollback(context.Background(), a.ID)
			require.NoError(t, err)
			require.Equal(t, "in place", res.Method)
			require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
			require.Equal(t, res.Proof.Entries, res.Proof.Proved)
			require.True(t, res.FailedKept)
			requireSame(t, before, snapshot(t, s.p.Live()))
			requireSame(t, failed, snapshot(t, filepath.Join(a.Path, "project.failed")))
			now := inodes(t, s.p.Live())
			for ino, p := range inos {
				if strings.HasSuffix(p, "/big") {
					require.Equal(t, p, now[ino], "what nobody touched is not copied")
				}
			}
			proof, err := s.s.Verify(context.Background(), a.ID)
			require.NoError(t, err)
			require.True(t, proof.Exact(), "the archive stays whole")

			s.write("plain", "later")
			res, err = s.s.Rollback(context.Background(), a.ID)
			require.NoError(t, err)
			require.True(t, res.Already)
			b, err := os.ReadFile(s.live("plain"))
			require.NoError(t, err)
			require.Equal(t, "later", string(b))
		})
	}
}

// A rollback that has no room for the failed tree still restores the old one.
func TestRollbackInPlaceWithoutRoom(t *testing.T) {
	s := newSite(t)
	s.write("a", strings.Repeat("x", 1<<20))
	a := s.make()
	s.write("a", "broken")
	s.write("big", strings.Repeat("y", 1<<20))
	s.use(archive.Config{FS: shortBusyFS{}, Reserve: noReserve})
	res, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.False(t, res.FailedKept)
	require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
}

// shortBusyFS can't exchange, and claims to be full.
type shortBusyFS struct{ vfs.OS }

func (shortBusyFS) Exchange(a, b string) error {
	return &os.LinkError{Op: "exchange", Old: a, New: b, Err: syscall.EBUSY}
}

func (shortBusyFS) StatFS(string) (vfs.Space, error) {
	return vfs.Space{Total: 1 << 30, Free: 100}, nil
}

// lyingFS promises room that does not exist: statfs is a guess, writing decides.
type lyingFS struct{ vfs.OS }

func (lyingFS) StatFS(string) (vfs.Space, error) {
	return vfs.Space{Total: 1 << 40, Free: 1 << 40}, nil
}

// A really full disk, of bytes and of inodes.
func TestRealFullDisk(t *testing.T) {
	for name, options := range map[string]string{"bytes": "size=3m", "inodes": "size=64m,nr_inodes=40"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			mount(t, s.p.Dir(), options)
			for i := range 15 {
				s.write("d/"+strings.Repeat("f", i+1), strings.Repeat("z", 100<<10))
			}
			if name == "inodes" {
				s.write("one/more/file", "x")
			}
			before := snapshot(t, s.p.Live())
			var se *archive.SpaceError
			_, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
			if err == nil { // there was room for one
				_, err = s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
			}
			require.ErrorAs(t, err, &se)

			s.use(archive.Config{FS: lyingFS{}, Reserve: noReserve})
			_, err = s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
			require.ErrorIs(t, err, syscall.ENOSPC)
			s.requireNoLeftovers()
			requireSame(t, before, snapshot(t, s.p.Live()))
		})
	}
}

// mountExt4 mounts a small ext4 with a journal at dir, if the machine allows it.
func mountExt4(t *testing.T, dir string, megabytes int64) {
	t.Helper()
	mountImage(t, dir, megabytes, "mkfs.ext4", "-q", "-F")
}

// mountImage mounts a separate file system at dir, if the machine allows it.
func mountImage(t *testing.T, dir string, megabytes int64, name string, args ...string) {
	t.Helper()
	mkfs, err := exec.LookPath(name)
	if err != nil || os.Geteuid() != 0 {
		t.Skipf("a loop mount needs root and %s", name)
	}
	image := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, megabytes<<20))
	out, err := exec.Command(mkfs, append(args, image)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	if out, err := exec.Command("mount", "-o", "loop", image, dir).CombinedOutput(); err != nil {
		t.Skipf("no loop mounts here: %s", out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", dir).Run()) })
}

// A deployment that fills the disk to the last byte is still rolled back exactly, and again once there is room.
func TestRollbackOnAFullDisk(t *testing.T) {
	for name, mounted := range map[string]func(*testing.T, string){
		"ext4":  func(t *testing.T, dir string) { mountExt4(t, dir, 24) },
		"tmpfs": func(t *testing.T, dir string) { mount(t, dir, "size=8m") },
	} {
		for _, spare := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, spare tree %v", name, spare), func(t *testing.T) {
				s := newSite(t)
				mounted(t, s.p.Dir())
				t.Cleanup(func() { require.NoError(t, s.s.Wait()) })
				s.write("a/b", "before")
				s.write("c", strings.Repeat("z", 300<<10))
				first := s.make()
				a := first
				if spare {
					require.NoError(t, s.s.SetVerdict(first.ID, archive.Good))
					_, err := s.s.Compact(context.Background(), archive.Policy{Keep: 3})
					require.NoError(t, err)
					require.NotZero(t, s.s.Spare())
				}
				before := snapshot(t, s.p.Live())
				s.write("a/b", "after")
				s.write("new", "x")
				require.NoError(t, trap.Fill(s.live("core"), 0))
				res, err := s.s.Rollback(context.Background(), a.ID)
				requireSame(t, before, snapshot(t, s.p.Live()))
				if err != nil { // not a byte for the record: the error reports it
					require.ErrorIs(t, err, syscall.ENOSPC)
					require.ErrorContains(t, err, "the old tree is live")
					require.NotEmpty(t, fault.HintOf(err))
				} else {
					require.True(t, res.Proof.Exact())
				}
				require.NoError(t, s.s.Wait())
				require.True(t, err == nil || !spare, "the spare tree makes way: %v", err)
				require.NoError(t, os.RemoveAll(filepath.Join(a.Path, "project.failed", "core")))
				res, err = s.s.Rollback(context.Background(), a.ID)
				require.NoError(t, err)
				require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
				requireSame(t, before, snapshot(t, s.p.Live()))
			})
		}
	}
}

// The same on a real ext4 for the archive itself: no room, no archive, the live tree unchanged, and an archive once there is room.
func TestArchiveOnAFullExt4(t *testing.T) {
	s := newSite(t)
	mountExt4(t, s.p.Dir(), 24)
	t.Cleanup(func() { require.NoError(t, s.s.Wait()) })
	for i := range 20 {
		s.write(fmt.Sprintf("d/%d", i), strings.Repeat("z", 200<<10))
	}
	require.NoError(t, os.Mkdir(s.p.Archives(), 0o700))
	before := snapshot(t, s.p.Live())
	require.NoError(t, trap.Fill(filepath.Join(s.p.Dir(), "filler"), 0))
	var short *archive.SpaceError
	_, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
	require.Error(t, err)
	require.True(t, errors.As(err, &short) || errors.Is(err, syscall.ENOSPC), "%v", err)
	s.use(archive.Config{FS: lyingFS{}, Reserve: noReserve})
	_, err = s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Contains(t, fault.HintOf(err), "archives prune")
	s.requireNoLeftovers()
	requireSame(t, before, snapshot(t, s.p.Live()))
	require.NoError(t, os.Remove(filepath.Join(s.p.Dir(), "filler")))
	s.requireExact(s.make())
}

// If the file system shares extents, an archive takes no additional room, and still shares no inode.
func TestReflink(t *testing.T) {
	for name, mounted := range map[string]func(*testing.T, string){
		"btrfs": func(t *testing.T, dir string) { mountImage(t, dir, 256, "mkfs.btrfs", "-q") },
		"xfs":   func(t *testing.T, dir string) { mountImage(t, dir, 512, "mkfs.xfs", "-q", "-m", "reflink=1") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			mounted(t, s.p.Dir())
			t.Cleanup(func() { require.NoError(t, s.s.Wait()) })
			big := make([]byte, 40<<20)
			for i := range big {
				big[i] = byte(i * i >> 7)
			}
			s.write("big", string(big))
			s.write("small", "x")
			require.NoError(t, vfs.OS{}.SyncFS(s.p.Dir()))
			was, err := vfs.OS{}.StatFS(s.p.Dir())
			require.NoError(t, err)
			s.requireExact(s.make())
			is, err := vfs.OS{}.StatFS(s.p.Dir())
			require.NoError(t, err)
			require.Less(t, was.Free-min(was.Free, is.Free), uint64(20<<20), "40 MB are shared")
			require.NoError(t, os.WriteFile(s.live("big"), []byte("now"), 0o644))
			all, err := s.s.List()
			require.NoError(t, err)
			proof, err := s.s.Verify(context.Background(), all[0].ID)
			require.NoError(t, err)
			require.True(t, proof.Exact())
		})
	}
}
