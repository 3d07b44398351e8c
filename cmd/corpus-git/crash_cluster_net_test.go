//go:build fleet

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// network is a bridge in a network namespace of its own, to which further namespaces are connected: nothing of it touches the machine's network.
type network struct {
	t      *testing.T
	prefix string
	places []*place
}

// place is a network namespace with one address, the same as a machine of its own.
type place struct {
	name string // of the namespace
	ip   string
}

func newNetwork(t *testing.T) *network {
	n := &network{t: t, prefix: fmt.Sprintf("cgc%d", os.Getpid())}
	n.namespace(n.bridge())
	n.ip("-n", n.bridge(), "link", "add", "br0", "type", "bridge")
	n.ip("-n", n.bridge(), "link", "set", "br0", "up")
	return n
}

func (n *network) bridge() string { return n.prefix + "-br" }

// namespace makes one, which is gone when the test ends.
func (n *network) namespace(name string) {
	n.t.Helper()
	n.ip("netns", "add", name)
	n.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	n.ip("-n", name, "link", "set", "lo", "up")
}

func (n *network) ip(args ...string) {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), "ip", args...).CombinedOutput()
	require.NoError(n.t, err, "ip %s: %s", strings.Join(args, " "), out)
}

// connect adds a place with the address 10.99.0.LAST.
func (n *network) connect(name string, last int) *place {
	n.t.Helper()
	p := &place{name: n.prefix + "-" + name, ip: fmt.Sprintf("10.99.0.%d", last)}
	n.namespace(p.name)
	port := fmt.Sprintf("p%d", last)
	n.ip("-n", n.bridge(), "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", p.name)
	n.ip("-n", n.bridge(), "link", "set", port, "master", "br0", "up")
	n.ip("-n", p.name, "addr", "add", p.ip+"/24", "dev", "eth0")
	n.ip("-n", p.name, "link", "set", "eth0", "up")
	n.places = append(n.places, p)
	return p
}

// file is what a process enters the namespace by.
func (p *place) file() string { return filepath.Join("/run/netns", p.name) }

// command runs a program there, as the process that is started: nsenter(1) becomes it.
func (p *place) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + p.file(), "--", name}, args...)...)
}

// Dial connects from there, as nats.CustomDialer.
func (p *place) Dial(network, address string) (c net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and the thread ends with this function: it is in another namespace
		var f *os.File
		if f, err = os.Open(p.file()); err != nil {
			return
		}
		defer f.Close()
		if err = unix.Setns(int(f.Fd()), syscall.CLONE_NEWNET); err == nil {
			c, err = net.Dial(network, address)
		}
	}()
	<-done
	return c, err
}

// cut drops packets: what comes in, what goes out, or both, from and to the given addresses, or all others if there are none. The machine reaches itself.
func (p *place) cut(in, out bool, others ...string) error {
	rule := func(chain, where, device string, rest ...string) error {
		return p.iptables(append([]string{"-A", chain, "!", where, device}, append(rest, "-j", "DROP")...)...)
	}
	if len(others) == 0 {
		others = []string{"0.0.0.0/0"}
	}
	for _, other := range others {
		if in {
			if err := rule("INPUT", "-i", "lo", "-s", other); err != nil {
				return err
			}
		}
		if out {
			if err := rule("OUTPUT", "-o", "lo", "-d", other); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore lets everything through again.
func (p *place) restore() error { return p.iptables("-F") }

func (p *place) iptables(args ...string) error {
	out, err := p.command(context.Background(), "iptables", append([]string{"-w", "10"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: iptables %s: %w: %s", p.name, strings.Join(args, " "), err, out)
	}
	return nil
}
