package network

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/nftables"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"corpus-git/internal/vfs"
)

// ownNamespace gives the test a network of its own, with nothing in it, which goes with the test.
func ownNamespace(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network namespace")
	}
	runtime.LockOSThread()
	was, err := netns.Get()
	require.NoError(t, err)
	own, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, netns.Set(was))
		runtime.UnlockOSThread()
		require.NoError(t, own.Close())
		require.NoError(t, was.Close())
	})
}

func TestUp(t *testing.T) {
	ownNamespace(t)
	n := Default()
	require.NoError(t, n.Down(), "what is not there is no error")
	require.NoError(t, n.Up())
	require.NoError(t, n.Up(), "what is there is no error")
	link, err := netlink.LinkByName(n.Bridge)
	require.NoError(t, err)
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	require.NoError(t, err)
	require.Len(t, addrs, 1)
	require.Equal(t, n.Prefix.String(), addrs[0].IPNet.String())

	// The map of published ports is replaced with the rest; the rules are there once.
	n.Ports = []Port{{Listen: 80, Container: "web1", To: netip.MustParseAddrPort("10.213.77.2:8080")}, {Listen: 443, Container: "web1", To: netip.MustParseAddrPort("10.213.77.2:443")}}
	require.NoError(t, n.Up())
	n.Ports = []Port{{Listen: 80, Container: "web2", To: netip.MustParseAddrPort("10.213.77.3:8081")}}
	require.NoError(t, n.Up())
	c, err := nftables.New()
	require.NoError(t, err)
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: n.Bridge}
	set, err := c.GetSetByName(table, "ports")
	require.NoError(t, err)
	elements, err := c.GetSetElements(set)
	require.NoError(t, err)
	require.Len(t, elements, 1)
	require.Equal(t, []byte{0, 80}, elements[0].Key)
	require.Equal(t, []byte{10, 213, 77, 3, 8081 >> 8, 8081 & 0xff, 0, 0}, elements[0].Val)
	chains, err := c.ListChains()
	require.NoError(t, err)
	rules := map[string]int{}
	for _, ch := range chains {
		list, err := c.GetRules(ch.Table, ch)
		require.NoError(t, err)
		rules[fmt.Sprint(ch.Table.Family, ch.Name)] = len(list)
	}
	require.Equal(t, map[string]int{"2raw": 1, "2prerouting": 1, "2output": 1, "2postrouting": 3, "2forward": 3, "10prerouting": 1, "10output": 1, "10postrouting": 2, "10forward": 3}, rules)

	require.NoError(t, n.Down())
	chains, err = c.ListChains()
	require.NoError(t, err)
	require.Empty(t, chains)
	links, err := netlink.LinkList()
	require.NoError(t, err)
	for _, l := range links {
		require.NotEqual(t, n.Bridge, l.Attrs().Name)
	}

	// An interface of somebody else's is left alone.
	attrs := netlink.NewLinkAttrs()
	attrs.Name = n.Bridge
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "peer"}))
	require.ErrorContains(t, n.Up(), "is an interface of another kind (veth)")
}

func TestCheck(t *testing.T) {
	require.NoError(t, Default().Check())
	for _, n := range []Network{
		{Bridge: "a234567890123456", Prefix: Default().Prefix}, {Bridge: "A", Prefix: Default().Prefix}, {Bridge: "a"}, {Bridge: "a", Prefix: netip.MustParsePrefix("fd00::1/64")},
		{Bridge: "a", Prefix: netip.MustParsePrefix("10.0.0.0/24")}, {Bridge: "a", Prefix: netip.MustParsePrefix("10.0.0.1/31")}, {Bridge: "a", Prefix: netip.MustParsePrefix("10.0.0.1/7")},
	} {
		require.Error(t, n.Check(), "%v", n)
	}
}

func TestStore(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), "deep", "network.json"), FS: vfs.OS{}}
	n, err := s.Get()
	require.NoError(t, err)
	require.Equal(t, Default(), n)
	n.Ports = []Port{{Listen: 80, Container: "web1", To: netip.MustParseAddrPort("10.213.77.2:8080"), To6: netip.MustParseAddrPort("[fd00::2]:8080")}}
	require.NoError(t, s.Put(n))
	got, err := s.Get()
	require.NoError(t, err)
	require.Equal(t, n, got)
}
