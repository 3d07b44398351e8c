//go:build containers

package nspawn_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"corpus-git/container"
	"corpus-git/container/containertest"
	"corpus-git/container/network"
	"corpus-git/container/nspawn"
	"corpus-git/container/rootfs"
	"corpus-git/container/system"
	"corpus-git/internal/execx"
	"corpus-git/internal/vfs"
)

// The driver passes the tests of all drivers, in a network of its own, and leaves nothing.
func TestContainerDriver(t *testing.T) {
	require.Zero(t, os.Geteuid(), "containers need root")
	// A bridge and addresses that no other test has.
	n := network.Network{Bridge: fmt.Sprintf("cgt%d", os.Getpid()), Prefix: netip.MustParsePrefix(fmt.Sprintf("10.213.%d.1/24", 100+os.Getpid()%100))}
	t.Cleanup(func() { require.NoError(t, n.Down()) })
	dir := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=/root"}
	store := container.Store{Dir: dir, FS: vfs.OS{}}
	driver := func() container.Driver {
		return system.Driver{
			Kind: nspawn.Kind{Host: system.Host{Run: execx.OS{}, Store: store, Env: env, CGroups: "/sys/fs/cgroup"}}, Run: execx.OS{}, Store: store, Env: env, Network: func() (network.Network, error) { return n, nil }, Resolv: func() string { return "" },
			Maker: rootfs.Maker{Exec: execx.OS{}, FS: vfs.OS{}, Env: env, Bases: "/var/cache/corpus-git-test/bases"},
		}
	}
	c, err := store.Add(container.Container{Name: "cgtest-nspawn", Driver: "nspawn", Suite: rootfs.DefaultSuite, Mirror: os.Getenv("DEBIAN_MIRROR"), Created: time.Now()}, n.Prefix)
	require.NoError(t, err)
	containertest.Run(t, containertest.Subject{Driver: driver, Container: c, Put: func(t *testing.T, c container.Container) { require.NoError(t, store.Put(c)) }})

	// nspawn is killed, as by the kernel for want of memory: the container runs on, is known to, and is stopped in an orderly way.
	ctx := t.Context()
	require.NoError(t, driver().Create(ctx, c, func(string) {}))
	require.NoError(t, driver().Start(ctx, c))
	text, err := os.ReadFile(filepath.Join(store.Folder(c.Name), "pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, time.Minute, 50*time.Millisecond)
	running, err := driver().Running(ctx, c)
	require.NoError(t, err)
	require.True(t, running)
	require.NoError(t, driver().Start(ctx, c))
	exit, err := driver().Exec(ctx, c, container.Command{Argv: []string{"sh", "-c", "printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\nExecStop=touch /root/stopped\n' >/run/systemd/system/last.service; systemctl start last"}})
	require.NoError(t, err)
	require.Zero(t, exit)
	require.NoError(t, driver().Stop(ctx, c))
	require.FileExists(t, filepath.Join(rootfs.Root(store.Folder(c.Name)), "root", "stopped"))
	running, err = driver().Running(ctx, c)
	require.NoError(t, err)
	require.False(t, running)
	require.NoError(t, driver().Start(ctx, c), "its interface is free again")
	require.NoError(t, driver().Stop(ctx, c))
	require.NoError(t, driver().Destroy(ctx, c))

	links, err := netlink.LinkList()
	require.NoError(t, err)
	for _, l := range links {
		require.NotContains(t, l.Attrs().Name, "cgtest", "an interface is left")
	}
	groups, err := filepath.Glob("/sys/fs/cgroup/*/corpus-git-" + c.Name + "-*")
	require.NoError(t, err)
	require.Empty(t, groups)
}
