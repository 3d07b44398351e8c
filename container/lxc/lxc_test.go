//go:build containers

package lxc_test

import (
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"corpus-git/container"
	"corpus-git/container/containertest"
	"corpus-git/container/lxc"
	"corpus-git/container/network"
	"corpus-git/container/rootfs"
	"corpus-git/container/system"
	"corpus-git/internal/execx"
	"corpus-git/internal/vfs"
)

// The driver passes the tests of all drivers, in a network of its own, and leaves nothing.
func TestContainerDriver(t *testing.T) {
	require.Zero(t, os.Geteuid(), "containers need root")
	n := network.Network{Bridge: fmt.Sprintf("cgl%d", os.Getpid()), Prefix: netip.MustParsePrefix(fmt.Sprintf("10.215.%d.1/24", 100+os.Getpid()%100))}
	t.Cleanup(func() { require.NoError(t, n.Down()) })
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=/root"}
	store := container.Store{Dir: t.TempDir(), FS: vfs.OS{}}
	driver := func() container.Driver {
		return system.Driver{
			Kind: lxc.Kind{Host: system.Host{Run: execx.OS{}, Store: store, Env: env, CGroups: "/sys/fs/cgroup"}},
			Run:  execx.OS{}, Store: store, Env: env, Network: func() (network.Network, error) { return n, nil }, Resolv: func() string { return "" },
			Maker: rootfs.Maker{Exec: execx.OS{}, FS: vfs.OS{}, Env: env, Bases: "/var/cache/corpus-git-test/bases"},
		}
	}
	c, err := store.Add(container.Container{Name: "cgtest-lxc", Driver: lxc.Name, Suite: rootfs.DefaultSuite, Mirror: os.Getenv("DEBIAN_MIRROR"), Created: time.Now()}, n.Prefix)
	require.NoError(t, err)
	containertest.Run(t, containertest.Subject{Driver: driver, Container: c, Put: func(t *testing.T, c container.Container) { require.NoError(t, store.Put(c)) }})

	bridge, err := netlink.LinkByName(n.Bridge)
	require.NoError(t, err)
	links, err := netlink.LinkList()
	require.NoError(t, err)
	for _, l := range links {
		require.NotEqual(t, bridge.Attrs().Index, l.Attrs().MasterIndex, "%s is left on the bridge", l.Attrs().Name)
	}
	_, err = os.Stat("/sys/fs/cgroup/memory/lxc.payload." + c.Name)
	require.ErrorIs(t, err, os.ErrNotExist)
}
