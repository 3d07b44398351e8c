package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// tools stands in for debootstrap and chroot; cp is the real one.
type tools struct {
	execx.OS
	fail string
	how  error
	made int
}

func (r *tools) Run(ctx context.Context, c execx.Cmd) (execx.Status, error) {
	switch c.Argv[0] {
	case r.fail:
		r.fail = ""
		if part := c.Argv[len(c.Argv)-1]; strings.HasSuffix(part, ".part") {
			if err := os.MkdirAll(filepath.Join(part, "etc"), 0o755); err != nil {
				return execx.Status{}, err
			}
		}
		return execx.Status{}, cmp.Or(r.how, errors.New("killed"))
	case "unshare":
		r.made++
		root := c.Argv[len(c.Argv)-1]
		for _, dir := range []string{"etc/ssh", "etc/systemd/network", "var/cache/apt/archives"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				return execx.Status{}, err
			}
		}
		for _, f := range []string{"etc/ssh/ssh_host_ed25519_key", "etc/machine-id", "etc/hostname", "var/cache/apt/archives/a.deb"} {
			if err := os.WriteFile(filepath.Join(root, f), []byte("shared\n"), 0o644); err != nil {
				return execx.Status{}, err
			}
		}
		return execx.Status{}, nil
	case "chroot":
		return execx.Status{}, nil
	}
	return r.OS.Run(ctx, c)
}

func newMaker(t *testing.T) (Maker, *tools, string) {
	r := &tools{}
	dir := t.TempDir()
	return Maker{Exec: r, FS: vfs.OS{}, Env: []string{"PATH=" + os.Getenv("PATH")}, Bases: filepath.Join(dir, "bases")}, r, filepath.Join(dir, "web")
}

var settings = Settings{Hostname: "web", Address: netip.MustParsePrefix("10.0.0.2/24"), Gateway: netip.MustParseAddr("10.0.0.1"), Interface: "host0", Nameservers: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}

func TestMake(t *testing.T) {
	ctx := t.Context()
	m, r, folder := newMaker(t)
	quiet := func(string) {}
	r.fail = "unshare"
	_, err := m.Base(ctx, System{Suite: "bookworm"}, quiet)
	require.ErrorContains(t, err, "killed")
	base, err := m.Base(ctx, System{Suite: "bookworm"}, quiet)
	require.NoError(t, err)
	again, err := m.Base(ctx, System{Suite: "bookworm"}, quiet)
	require.NoError(t, err)
	require.Equal(t, base, again)
	require.Equal(t, 1, r.made, "a base is made once")
	// What was begun for a system that nobody asks for again goes with the next one that is made; what another process makes now stays.
	left, making := filepath.Join(m.Bases, "bookworm-left.part"), filepath.Join(m.Bases, "bookworm-making.part")
	for _, dir := range []string{left, making} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "etc"), 0o700))
	}
	unlock, err := lock(ctx, strings.TrimSuffix(making, ".part")+".lock")
	require.NoError(t, err)
	other, err := m.Base(ctx, System{Suite: "bookworm", Packages: []string{"nginx"}}, quiet)
	require.NoError(t, err)
	unlock()
	require.NoDirExists(t, left)
	require.DirExists(t, making)
	require.NotEqual(t, base, other)
	require.NoFileExists(t, filepath.Join(base, "etc/ssh/ssh_host_ed25519_key"), "a host key of several machines")
	require.NoFileExists(t, filepath.Join(base, "var/cache/apt/archives/a.deb"))

	for _, at := range []string{"cp", "chroot"} {
		r.fail = at
		require.ErrorContains(t, m.Make(ctx, base, folder, settings), "killed")
		require.False(t, Made(folder), "what is half made has another name")
	}
	require.NoError(t, m.Make(ctx, base, folder, settings))
	require.NoError(t, os.WriteFile(filepath.Join(Root(folder), "etc/hostname"), []byte("changed\n"), 0o644))
	require.NoError(t, m.Make(ctx, base, folder, settings), "what is there is left as it is")
	for name, want := range map[string]string{
		"etc/hostname": "changed\n", "etc/resolv.conf": "nameserver 192.0.2.1\n", "etc/machine-id": "",
		"etc/systemd/network/10-corpus-git.network": "[Match]\nName=host0\n\n[Network]\nAddress=10.0.0.2/24\nGateway=10.0.0.1\nDHCP=no\nIPv6AcceptRA=no\nLinkLocalAddressing=no\n",
	} {
		text, err := os.ReadFile(filepath.Join(Root(folder), name))
		require.NoError(t, err)
		require.Equal(t, want, string(text), name)
	}
	text, err := os.ReadFile(filepath.Join(base, "etc/hostname"))
	require.NoError(t, err)
	require.Equal(t, "shared\n", string(text), "a base is not written to")
}

// What fails has filled nothing; a full file system is named.
func TestFailed(t *testing.T) {
	m, r, folder := newMaker(t)
	quiet := func(string) {}
	r.fail, r.how = "unshare", fmt.Errorf("write: %w", syscall.ENOSPC)
	_, err := m.Base(t.Context(), System{Suite: "bookworm"}, quiet)
	require.Equal(t, fault.Busy, fault.KindOf(err))
	require.ErrorContains(t, err, "there is no room left in "+m.Bases)
	left, err := filepath.Glob(m.Bases + "/*.part")
	require.NoError(t, err)
	require.Empty(t, left)
	base, err := m.Base(t.Context(), System{Suite: "bookworm"}, quiet)
	require.NoError(t, err)
	for _, at := range []string{"cp", "chroot"} {
		r.fail = at
		err = m.Make(t.Context(), base, folder, settings)
		require.Equal(t, fault.Busy, fault.KindOf(err))
		require.NoDirExists(t, Root(folder)+".part")
	}
	r.how = errors.New("another reason")
	r.fail = "cp"
	require.NotEqual(t, fault.Busy, fault.KindOf(m.Make(t.Context(), base, folder, settings)))
}

// Who may make no device files is told so before anything is made.
func TestAble(t *testing.T) {
	m, _, _ := newMaker(t)
	err := m.Able()
	if os.Geteuid() == 0 {
		require.NoError(t, err)
	} else {
		require.Equal(t, fault.Refused, fault.KindOf(err))
		require.ErrorContains(t, err, "no device files")
	}
	left, err := filepath.Glob(m.Bases + "/.able*")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSnapshots(t *testing.T) {
	ctx := t.Context()
	m, r, folder := newMaker(t)
	base, err := m.Base(ctx, System{Suite: "bookworm"}, func(string) {})
	require.NoError(t, err)
	require.NoError(t, m.Make(ctx, base, folder, settings))
	file := filepath.Join(Root(folder), "file")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o644))
	r.fail = "cp"
	require.ErrorContains(t, m.Snapshot(ctx, folder, "one"), "killed")
	require.NoError(t, m.Snapshot(ctx, folder, "one"))
	require.NoError(t, os.WriteFile(file, []byte("new"), 0o644))
	r.fail = "cp"
	require.ErrorContains(t, m.Restore(ctx, folder, "one"), "killed")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "new", string(text), "a restore that was interrupted changes nothing")
	require.NoError(t, m.Restore(ctx, folder, "one"))
	require.NoError(t, os.WriteFile(file+"2", nil, 0o644))
	require.NoError(t, m.Restore(ctx, folder, "one"), "a snapshot is restored more than once")
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	require.NoFileExists(t, file+"2")
	require.NoDirExists(t, Root(folder)+".part")
	list, err := m.Snapshots(folder)
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, list)
	require.NoError(t, m.Forget(folder, "one"))
	require.Equal(t, fault.Refused, fault.KindOf(m.Restore(ctx, folder, "one")))
	require.NoError(t, m.Remove(folder))
	require.NoError(t, m.Remove(folder), "what is gone is no error")
	require.NoDirExists(t, folder)
}

func TestCheck(t *testing.T) {
	require.NoError(t, System{Suite: "bookworm", Mirror: "https://deb.debian.org/debian", Packages: []string{"g++", "php8.2-fpm"}}.Check())
	for _, s := range []System{{}, {Suite: "--help"}, {Suite: "a/b"}, {Suite: "bookworm", Packages: []string{"a b"}}, {Suite: "bookworm", Packages: []string{"-o"}}, {Suite: "bookworm", Packages: []string{"a,b"}}, {Suite: "bookworm", Mirror: "-x"}} {
		require.Error(t, s.Check(), "%v", s)
	}
}

func TestNameservers(t *testing.T) {
	require.Equal(t, []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
		Nameservers("# a comment\nnameserver 127.0.0.53\nnameserver 192.0.2.1\nsearch example.org\nnameserver 2001:db8::1\nnameserver ::1\nnameserver\n"))
}

// What a killed tool had mounted in an unfinished tree is unmounted, and stays as it is.
func TestClear(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	m, _, folder := newMaker(t)
	outside := filepath.Join(t.TempDir(), "out side")
	require.NoError(t, os.MkdirAll(filepath.Join(outside, "kept"), 0o755))
	inside := filepath.Join(folder, "a b", "proc")
	require.NoError(t, os.MkdirAll(filepath.Join(inside, "kept"), 0o755))
	require.NoError(t, syscall.Mount(outside, inside, "", syscall.MS_BIND, ""))
	t.Cleanup(func() { _ = syscall.Unmount(inside, syscall.MNT_DETACH) })
	require.NoError(t, m.clear(filepath.Dir(inside)))
	require.NoDirExists(t, filepath.Dir(inside))
	require.DirExists(t, filepath.Join(outside, "kept"))
	require.NoError(t, m.clear(filepath.Dir(inside)), "what is gone is no error")
}
