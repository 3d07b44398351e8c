package archive_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/archive"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// site is a project on disk with a store of archives.
type site struct {
	t *testing.T
	p layout.Project
	s *archive.Store
	n int
	// today dates archives by the clock.
	today bool
}

var noReserve = archive.Reserve{Percent: -1}

func newSite(t *testing.T) *site {
	t.Helper()
	p := layout.Root(t.TempDir()).Project("app")
	st := &site{t: t, p: p}
	st.use(archive.Config{Reserve: noReserve})
	t.Cleanup(func() {
		require.NoError(t, st.s.Wait())
		// Unlike TempDir's own cleanup this empties folders without u+w.
		require.NoError(t, vfs.RemoveAll(vfs.OS{}, p.Root().Path()))
	})
	return st
}

func (s *site) use(c archive.Config) { s.s = archive.New(s.p, c) }

func (s *site) live(rel string) string { return filepath.Join(s.p.Live(), rel) }

func (s *site) write(rel, content string) {
	s.t.Helper()
	p := s.live(rel)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(s.t, os.WriteFile(p, []byte(content), 0o644))
}

func (s *site) facts() archive.Facts {
	s.n++
	at := time.Date(2026, 1, 2, 3, 4, s.n, 0, time.UTC)
	if s.today {
		at = time.Now()
	}
	return archive.Facts{ID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", s.n), Project: "app", At: at, Held: archive.Commits{Code: "aaaa"}, By: "kim"}
}

func (s *site) make() archive.Archive {
	s.t.Helper()
	a, err := s.s.Make(context.Background(), archive.MakeRequest{Facts: s.facts()})
	require.NoError(s.t, err)
	return a
}

// settle waits until the ctimes of what was just written leave the window in which a change could go unnoticed.
func settle() { time.Sleep(70 * time.Millisecond) }

// snapshot describes a tree completely and independently: it shares no code with the package under test but the listing of
// extended attributes. A missing tree is nil.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	links := map[uint64]string{}
	err := filepath.Walk(root, func(p string, fi os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		st := fi.Sys().(*syscall.Stat_t)
		rel, _ := filepath.Rel(root, p)
		d := fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
		if st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
			d += fmt.Sprintf(" %d.%09d", st.Mtim.Sec, st.Mtim.Nsec)
		}
		switch {
		case fi.Mode().IsRegular():
			d += fmt.Sprintf(" %d", st.Size)
			if b, err := os.ReadFile(p); err == nil {
				d += fmt.Sprintf(" %x", sha256.Sum256(b))
			}
			if st.Nlink > 1 {
				if first, ok := links[st.Ino]; ok {
					d += " =" + first
				} else {
					links[st.Ino] = rel
				}
			}
		case fi.Mode()&os.ModeSymlink != 0:
			l, _ := os.Readlink(p)
			d += " -> " + l
		}
		xs, err := vfs.OS{}.Xattrs(p)
		if err != nil {
			return err
		}
		for _, x := range xs {
			d += fmt.Sprintf(" %s=%x", x.Name, x.Value)
		}
		out[rel] = d
		return nil
	})
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return out
}

// requireSame compares two snapshots and names only what differs.
func requireSame(t *testing.T, want, got map[string]string) {
	t.Helper()
	var diff []string
	for p, w := range want {
		if g, ok := got[p]; !ok {
			diff = append(diff, fmt.Sprintf("missing %q", p))
		} else if g != w {
			diff = append(diff, fmt.Sprintf("%q: want %s, got %s", p, w, g))
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			diff = append(diff, fmt.Sprintf("extra %q", p))
		}
	}
	require.Empty(t, diff)
	require.Equal(t, want == nil, got == nil, "one of them is absent")
}

func inodes(t *testing.T, root string) map[uint64]string {
	t.Helper()
	out := map[uint64]string{}
	require.NoError(t, filepath.Walk(root, func(p string, fi os.FileInfo, err error) error {
		if err == nil {
			out[fi.Sys().(*syscall.Stat_t).Ino] = p
		}
		return err
	}))
	return out
}

func requireNoSharedInode(t *testing.T, a, b string) {
	t.Helper()
	in := inodes(t, a)
	for ino, p := range inodes(t, b) {
		require.NotContains(t, in, ino, "%s is also %s", p, in[ino])
	}
}

// exotic fills a tree with one of everything.
func exotic(t *testing.T, root string) {
	t.Helper()
	ok := func(err error) { t.Helper(); require.NoError(t, err) }
	at := func(p string) string { return filepath.Join(root, p) }
	ok(os.MkdirAll(at("dir/sub"), 0o755))
	ok(os.WriteFile(at("plain"), []byte("plain\n"), 0o644))
	ok(os.WriteFile(at("empty"), nil, 0o600))
	ok(os.WriteFile(at("dir/secret"), []byte("s"), 0o400))
	ok(os.WriteFile(at("dir/run"), []byte("#!/bin/sh\n"), 0o755))
	ok(unix.Chmod(at("dir/run"), 0o6755))
	ok(os.Mkdir(at("sticky"), 0o755))
	ok(unix.Chmod(at("sticky"), 0o3777))
	ok(os.Mkdir(at("closed"), 0o755))
	ok(os.WriteFile(at("closed/in"), []byte("x"), 0o644))
	ok(os.WriteFile(at("not-utf8-\xff\xfe"), []byte("n"), 0o644))
	ok(os.WriteFile(at("with\nnewline"), []byte("n"), 0o644))
	ok(os.WriteFile(at(strings.Repeat("n", 255)), []byte("long"), 0o644))
	ok(os.WriteFile(at("dir-x"), []byte("sorts between dir and dir/"), 0o644))
	deep := at("deep")
	for range 12 {
		deep = filepath.Join(deep, strings.Repeat("d", 60))
	}
	ok(os.MkdirAll(deep, 0o755))
	ok(os.WriteFile(filepath.Join(deep, "f"), []byte("deep"), 0o644))
	ok(os.Symlink("plain", at("link")))
	ok(os.Symlink("/nowhere/at/all", at("dangling")))
	ok(os.Symlink("..", at("dir/up")))
	ok(unix.Mkfifo(at("fifo"), 0o640))
	ok(os.WriteFile(at("hard1"), []byte("hard"), 0o644))
	ok(os.Link(at("hard1"), at("dir/hard2")))
	ok(os.Link(at("hard1"), at("zz-hard3")))
	f, err := os.Create(at("sparse"))
	ok(err)
	_, err = f.WriteAt([]byte("end"), 6<<20)
	ok(err)
	ok(f.Close())
	ok(os.WriteFile(at("big"), []byte(strings.Repeat("0123456789abcde\n", 20_000)), 0o644))
	_ = unix.Setxattr(at("plain"), "user.note", []byte("kept"), 0) // if the file system supports it
	_ = unix.Setxattr(at("dir"), "user.note", []byte("dir"), 0)
	if os.Geteuid() == 0 {
		ok(os.Chown(at("plain"), 1234, 4321))
		ok(os.Lchown(at("link"), 1234, 4321))
		ok(os.WriteFile(at("unreadable"), []byte("root reads it"), 0o000))
		ok(os.Chown(at("unreadable"), 1234, 4321))
	}
	ok(os.Chmod(at("closed"), 0o555))
	for i, p := range []string{"plain", "dir/run", "fifo", "link", "sticky", "dir", "hard1"} {
		ts := unix.NsecToTimespec(1_500_000_000_123_456_700 + int64(i))
		ok(unix.UtimesNanoAt(unix.AT_FDCWD, at(p), []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW))
	}
}

// listen creates a socket at a path that may be too long for one.
func listen(t *testing.T, p string) io.Closer {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, os.Rename(filepath.Join(dir, "s"), p))
	t.Cleanup(func() { _ = l.Close() })
	return l
}
