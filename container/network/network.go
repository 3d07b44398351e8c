package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/vishvananda/netlink"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Network is the network of the containers of one folder.
type Network struct {
	// Bridge is the name of the interface, and of the table of the packet filter.
	Bridge string `json:"bridge"`
	// Prefix is this machine's address in it, with the length of the network's prefix.
	Prefix netip.Prefix `json:"network"`
	// Ports are the published ports.
	Ports []Port `json:"ports,omitempty"`
}

// Port is a port of this machine, and the container that it is published for.
type Port struct {
	// Listen is the port, over TCP; Container and To are the container and its address and port.
	Listen    uint16         `json:"listen"`
	Container string         `json:"container"`
	To        netip.AddrPort `json:"to"`
}

// Default returns the default network: private (RFC 1918), and rarely used.
func Default() Network {
	return Network{Bridge: "corpus-git0", Prefix: netip.MustParsePrefix("10.213.77.1/24")}
}

// validBridge matches a valid name of an interface: at most 15 bytes.
var validBridge = regexp.MustCompile(`^[a-z][a-z0-9-]{0,14}$`)

// Check refuses an invalid network.
func (n Network) Check() error {
	switch {
	case !validBridge.MatchString(n.Bridge):
		return fault.New(fault.Usage, "", "%q is not the name of a bridge", n.Bridge).WithHint("at most 15 lower-case letters, digits and dashes")
	case !n.Prefix.IsValid() || !n.Prefix.Addr().Is4() || n.Prefix.Bits() > 30 || n.Prefix.Bits() < 8 || n.Prefix.Addr() == n.Prefix.Masked().Addr():
		return fault.New(fault.Usage, "", "%s is not this machine's address in an IPv4 network", n.Prefix).WithHint("such as %s", Default().Prefix)
	}
	return nil
}

// Store is the file that holds a network.
type Store struct {
	Path string
	FS   vfs.FS
}

// Get returns the network, the default if none has been written yet.
func (s Store) Get() (Network, error) {
	text, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	n := Network{}
	if err == nil {
		if err = json.Unmarshal(text, &n); err != nil {
			err = fault.New(fault.Failed, "", "%s: %w", s.Path, err)
		}
	}
	return n, err
}

// Put writes the network; it is durable on return.
func (s Store) Put(n Network) error {
	text, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return err
	}
	return vfs.WriteFileAtomic(s.FS, s.Path, append(text, '\n'), 0o600)
}

// Up creates the bridge and the rules, or corrects existing ones. It needs root.
func (n Network) Up() error {
	if err := n.bridge(); err != nil {
		return err
	}
	return n.rules()
}

// bridge creates the bridge with its address.
func (n Network) bridge() error {
	link, err := netlink.LinkByName(n.Bridge)
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = n.Bridge
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil && !errors.Is(err, fs.ErrExist) {
			return explain(fmt.Errorf("make the bridge %s: %w", n.Bridge, err))
		}
		link, err = netlink.LinkByName(n.Bridge)
	}
	if err != nil {
		return explain(err)
	}
	if link.Type() != "bridge" {
		return fault.New(fault.Refused, "", "%s is an interface of another kind (%s)", n.Bridge, link.Type())
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	have := false
	for _, a := range addrs {
		have = have || a.IPNet.String() == n.Prefix.String()
	}
	if !have {
		ip := n.Prefix.Addr().As4()
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip[:], Mask: net.CIDRMask(n.Prefix.Bits(), 32)}}
		if err := netlink.AddrAdd(link, addr); err != nil && !errors.Is(err, fs.ErrExist) {
			return explain(fmt.Errorf("give %s the address %s: %w", n.Bridge, n.Prefix, err))
		}
	}
	return explain(netlink.LinkSetUp(link))
}

// Down removes the bridge and the rules. It is not an error if they do not exist.
func (n Network) Down() error {
	err := n.removeRules()
	link, lerr := netlink.LinkByName(n.Bridge)
	if missing := (netlink.LinkNotFoundError{}); errors.As(lerr, &missing) {
		return err
	}
	if lerr == nil {
		lerr = netlink.LinkDel(link)
	}
	return errors.Join(err, explain(lerr))
}

// Routes reports whether this machine forwards packets, without which containers can reach only it and each
// other.
func Routes() bool {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	return err == nil && strings.TrimSpace(string(text)) == "1"
}

func explain(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.New(fault.Refused, "", "%w", err).WithHint("containers need root; run the command with sudo")
	}
	return err
}
