package submodule

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"

	"corpus-git/internal/fault"
)

// hosts are the rules on which servers may be contacted.
type hosts struct {
	// allowed reports whether a host may be contacted, and redirected to.
	allowed func(host string) error
	// named reports whether the operator named the host: then it may be this machine.
	named func(host string) bool
}

// operators are the rules for an address that the operator configured: it may be any, and redirects are followed as allowed says.
func operators(allowed func(string) error) hosts {
	return hosts{allowed, func(host string) bool { return allowed(host) == nil }}
}

// own reports whether an address is one of this machine, or of its link, such as the metadata service of a cloud: what listens there often asks for no password, as it trusts who can reach it.
// An address that embeds an IPv4 address is judged by that. Source: RFC 6890, RFC 6052, RFC 3056.
func own(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		b := a.As16()
		switch {
		case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("::/96").Contains(a) && !a.IsLoopback() && !a.IsUnspecified():
			return own(netip.AddrFrom4([4]byte(b[12:16])))
		case netip.MustParsePrefix("2002::/16").Contains(a):
			return own(netip.AddrFrom4([4]byte(b[2:6])))
		}
	}
	// fd00:ec2::254 and 100.100.100.200 are metadata services outside of the link-local ranges.
	return !a.IsGlobalUnicast() || netip.MustParsePrefix("0.0.0.0/8").Contains(a) || a == netip.MustParseAddr("fd00:ec2::254") || a == netip.MustParseAddr("100.100.100.200")
}

// dial connects to host:port. The address is checked when the connection is made, so that a name that resolves differently the second time has no effect.
func (h hosts) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{}
	if !h.named(host) {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err == nil && own(at.Addr()) {
				return fault.New(fault.Refused, "", "%s is an address of this machine or of its link, and is not fetched from", at.Addr()).
					WithHint("an administrator can name the host in  submodules.hosts  in the server's configuration, and the other hosts, or  *  for all of them")
			}
			return err
		}
	}
	return d.DialContext(ctx, network, hostport)
}

// transport returns a copy of an HTTP transport that connects by h. A proxy of the environment is connected to wherever it is, and decides about the addresses behind it.
func (h hosts) transport(from http.RoundTripper) *http.Transport {
	t, ok := from.(*http.Transport)
	if !ok {
		t = http.DefaultTransport.(*http.Transport) //nolint:forcetypeassert // its documented type
	}
	t = t.Clone()
	proxies := sync.Map{}
	if proxy := t.Proxy; proxy != nil {
		t.Proxy = func(req *http.Request) (*url.URL, error) {
			u, err := proxy(req)
			if u != nil {
				proxies.Store(strings.ToLower(u.Hostname()), true)
			}
			return u, err
		}
	}
	t.DialContext = func(ctx context.Context, network, hostport string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(hostport)
		if _, ok := proxies.Load(strings.ToLower(host)); ok {
			return (&net.Dialer{}).DialContext(ctx, network, hostport)
		}
		return h.dial(ctx, network, hostport)
	}
	return t
}
