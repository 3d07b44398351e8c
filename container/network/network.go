package network

import (
	"crypto/sha256"
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
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

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
	// Listen is the port, over TCP; Container and To are the container and its address and port, To6 those over IPv6, if it has an address there.
	Listen    uint16         `json:"listen"`
	Container string         `json:"container"`
	To        netip.AddrPort `json:"to"`
	To6       netip.AddrPort `json:"to6,omitzero"`
}

// Default returns the default network: private (RFC 1918), and rarely used.
func Default() Network {
	return Network{Bridge: "corpus-git0", Prefix: netip.MustParsePrefix("10.213.77.1/24")}
}

// prefix6 is the length of the prefix of an IPv6 network (RFC 4291, 2.5.4).
const prefix6 = 64

// Prefix6 returns this machine's IPv6 address in the network: a unique local one (RFC 4193), the same each time.
func (n Network) Prefix6() netip.Prefix { return n.Address6(n.Prefix.Addr()) }

// Address6 returns the IPv6 address that belongs to an IPv4 address of the network.
func (n Network) Address6(a netip.Addr) netip.Prefix {
	id := sha256.Sum256([]byte("corpus-git " + n.Bridge + " " + n.Prefix.Masked().String()))
	v4 := a.As4()
	addr := [16]byte{0: 0xfd}
	copy(addr[1:6], id[:])
	copy(addr[12:], v4[:])
	return netip.PrefixFrom(netip.AddrFrom16(addr), prefix6)
}

// HasIPv6 reports whether this machine has IPv6.
func HasIPv6() bool {
	text, err := os.ReadFile("/proc/sys/net/ipv6/conf/default/disable_ipv6")
	return err == nil && strings.TrimSpace(string(text)) == "0"
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
		return explain(fmt.Errorf("the network %s of the containers: %w", n.Bridge, err))
	}
	if err := n.rules(); err != nil {
		return err
	}
	return n.loopback()
}

// loopback allows packets from 127.0.0.1 to leave by the bridge if ports are published, so that this machine reaches them at that address, too. Without the rules, which
// come first, containers could reach what listens on the loopback interface (CVE-2020-8558).
func (n Network) loopback() error {
	value := "0"
	if len(n.Ports) > 0 {
		value = "1"
	}
	return explain(os.WriteFile("/proc/sys/net/ipv4/conf/"+n.Bridge+"/route_localnet", []byte(value), 0o644)) //nolint:gosec // a file of the kernel's
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
	if err := n.address(link, n.Prefix, netlink.FAMILY_V4); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return explain(err)
	}
	if !HasIPv6() {
		return nil
	}
	return n.address(link, n.Prefix6(), netlink.FAMILY_V6)
}

// address gives the bridge an address.
func (n Network) address(link netlink.Link, p netip.Prefix, family int) error {
	addrs, err := netlink.AddrList(link, family)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if a.IPNet.String() == p.String() {
			return nil
		}
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD // nobody else chooses addresses there
	}
	if err := netlink.AddrAdd(link, addr); err != nil && !errors.Is(err, fs.ErrExist) {
		return explain(fmt.Errorf("give %s the address %s: %w", n.Bridge, p, err))
	}
	return nil
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
	if errors.Is(err, fs.ErrPermission) && fault.HintOf(err) == "" {
		return fault.New(fault.Refused, "", "%w", err).WithHint("containers need root, with the capability net_admin; run the command with sudo")
	}
	return err
}

// explainRules is explain for an error of the packet filter. A kernel without it says that it knows no such protocol, one without a part of it that there is no such thing.
func explainRules(err error) error {
	for _, e := range []error{syscall.EPROTONOSUPPORT, syscall.EAFNOSUPPORT, syscall.EOPNOTSUPP, syscall.ENOENT, syscall.EINVAL} {
		if errors.Is(err, e) {
			return fault.New(fault.Refused, "", "%w", err).WithHint("the kernel must have nftables with address translation:  modprobe -a nf_tables nft_chain_nat nft_masq nft_fib_inet nft_ct ; the program nft is not needed")
		}
	}
	return explain(err)
}
