package network

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// world is a machine with containers and a client in namespaces of their own.
type world struct {
	t       *testing.T
	machine netns.NsHandle
}

// in runs a function in a namespace, on the test's thread.
func (w *world) in(ns netns.NsHandle, do func()) {
	require.NoError(w.t, netns.Set(ns))
	do()
	require.NoError(w.t, netns.Set(w.machine))
}

// join adds a namespace that is connected to the machine: by the interface outside, which is returned, and the interface eth0 in it.
func (w *world) join(outside string, gateways []string, addresses ...string) (netns.NsHandle, netlink.Link) {
	t := w.t
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ns.Close()) })
	require.NoError(t, netns.Set(w.machine))
	attrs := netlink.NewLinkAttrs()
	attrs.Name = outside
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns)}))
	link, err := netlink.LinkByName(outside)
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(link))
	w.in(ns, func() {
		inside, err := netlink.LinkByName("eth0")
		require.NoError(t, err)
		w.address(inside, addresses...)
		require.NoError(t, netlink.LinkSetUp(inside))
		for _, g := range gateways {
			require.NoError(t, netlink.RouteAdd(&netlink.Route{LinkIndex: inside.Attrs().Index, Gw: net.ParseIP(g)}))
		}
	})
	return ns, link
}

func (w *world) address(link netlink.Link, addresses ...string) {
	for _, a := range addresses {
		p := netip.MustParsePrefix(a)
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if p.Addr().Is6() {
			addr.Flags = 2 // IFA_F_NODAD
		}
		require.NoError(w.t, netlink.AddrAdd(link, addr))
	}
}

// answers listens in a namespace, and says a name to each connection, after a while, so that some are open at each moment.
func (w *world) answers(ns netns.NsHandle, name, kind, at string) {
	w.in(ns, func() {
		l, err := net.Listen(kind, at)
		require.NoError(w.t, err)
		w.t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					time.Sleep(5 * time.Millisecond)
					_, _ = io.WriteString(c, name+"\n")
					_ = c.Close()
				}()
			}
		}()
	})
}

func ask(at string, limit time.Duration) (string, error) {
	ctx, end := context.WithTimeout(context.Background(), limit)
	defer end()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return "", err
	}
	defer c.Close()
	line, err := bufio.NewReader(c).ReadString('\n')
	return line, err
}

// Clients on another machine and on this one ask again and again, over IPv4 and IPv6 and at 127.0.0.1, while the port is switched between two containers. Each is
// answered, and after a switch only the new container is. A container does not reach what listens on 127.0.0.1 of the machine.
func TestPublish(t *testing.T) {
	ownNamespace(t)
	machine, err := netns.Get()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, machine.Close()) })
	w := &world{t, machine}
	lo, err := netlink.LinkByName("lo")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(lo))
	for _, f := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		require.NoError(t, os.WriteFile("/proc/sys/net/"+f, []byte("1"), 0o644))
	}
	n := Default()
	require.NoError(t, n.Up())
	bridge, err := netlink.LinkByName(n.Bridge)
	require.NoError(t, err)
	var web [2]Port
	var inside netns.NsHandle
	for i := range web {
		name := fmt.Sprintf("web%d", i)
		a := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, 77, byte(2 + i)}), n.Prefix.Bits())
		a6 := n.Address6(a.Addr())
		ns, link := w.join(name, []string{n.Prefix.Addr().String(), n.Prefix6().Addr().String()}, a.String(), a6.String())
		require.NoError(t, netlink.LinkSetMaster(link, bridge))
		w.answers(ns, name, "tcp4", "0.0.0.0:8080")
		w.answers(ns, name, "tcp6", "[::]:8080")
		web[i] = Port{Listen: 80, Container: name, To: netip.AddrPortFrom(a.Addr(), 8080), To6: netip.AddrPortFrom(a6.Addr(), 8080)}
		inside = ns
	}
	client, link := w.join("client", []string{"192.0.2.1", "2001:db8::1"}, "192.0.2.2/24", "2001:db8::2/64")
	w.address(link, "192.0.2.1/24", "2001:db8::1/64")

	n.Ports = web[:1]
	require.NoError(t, n.Up())
	done := make(chan struct{})
	var clients sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]map[string]int{}
	for _, c := range []struct {
		from netns.NsHandle
		at   string
	}{{client, "192.0.2.1:80"}, {client, "[2001:db8::1]:80"}, {machine, "127.0.0.1:80"}, {machine, "192.0.2.1:80"}, {machine, "[2001:db8::1]:80"}} {
		where := fmt.Sprint(c.from == machine, " ", c.at)
		mu.Lock()
		answers[where] = map[string]int{}
		mu.Unlock()
		for range 2 {
			clients.Go(func() {
				runtime.LockOSThread() // the thread ends with this goroutine
				if err := netns.Set(c.from); err != nil {
					panic(err)
				}
				for {
					select {
					case <-done:
						return
					default:
					}
					said, err := ask(c.at, 20*time.Second)
					if err != nil {
						said = err.Error()
					}
					mu.Lock()
					answers[where][said]++
					mu.Unlock()
				}
			})
		}
	}
	// all reports whether each kind of client got at least so many answers of a container.
	all := func(name string, least int) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, got := range answers {
			if got[name] < least {
				return false
			}
		}
		return true
	}
	for i := range 8 {
		n.Ports = web[(i+1)%2 : (i+1)%2+1]
		require.NoError(t, n.Up())
		name := n.Ports[0].Container + "\n"
		for _, at := range []string{"127.0.0.1:80", "[2001:db8::1]:80"} {
			said, err := ask(at, 20*time.Second)
			require.NoError(t, err, at)
			require.Equal(t, name, said, "after the switch")
		}
		require.Eventually(t, func() bool { return all(name, 3*(i/2+1)) }, time.Minute, time.Millisecond)
	}
	close(done)
	clients.Wait()
	for where, got := range answers {
		require.Len(t, got, 2, "%s: a client was not answered: %v", where, got)
	}

	// 127.0.0.1 is not a local address in the container, whose loopback interface is down, but one that is behind the machine.
	w.answers(machine, "secret", "tcp4", "127.0.0.1:9")
	w.in(inside, func() {
		eth, err := netlink.LinkByName("eth0")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/conf/eth0/route_localnet", []byte("1"), 0o644))
		require.NoError(t, netlink.RouteAdd(&netlink.Route{LinkIndex: eth.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}, Gw: n.Prefix.Addr().AsSlice()}))
		_, err = ask("127.0.0.1:9", time.Second)
		var late net.Error
		require.ErrorAs(t, err, &late)
		require.True(t, late.Timeout(), "%v", err)
	})
	c, err := nftables.New()
	require.NoError(t, err)
	c.FlushChain(&nftables.Chain{Table: &nftables.Table{Family: nftables.TableFamilyIPv4, Name: n.Bridge}, Name: "raw"})
	require.NoError(t, c.Flush())
	w.in(inside, func() {
		said, err := ask("127.0.0.1:9", 20*time.Second)
		require.NoError(t, err, "without the rule it does: the test would see it")
		require.Equal(t, "secret\n", said)
	})
	n.Ports = nil
	require.NoError(t, n.Up())
	_, err = ask("127.0.0.1:80", 20*time.Second)
	require.ErrorContains(t, err, "connection refused")
}
