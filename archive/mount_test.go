package archive_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/archive"
	"corpus-git/internal/vfs"
)

// mount puts a small file system at dir, where the machine lets us.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	if err := unix.Mount("corpus", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("no mounts here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
}

// Where a tree can't be renamed, the rollback goes file by file and comes to the same end.
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

// A rollback that finds no room for the failed tree still brings the old one back.
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

// lyingFS promises room that is not there: statfs is a guess, writing decides.
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
