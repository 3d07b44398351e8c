package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"

	"corpus-git/project/config"
)

// private reports whether an address belongs to this machine, is link-local, in a private network, or otherwise not routed on the Internet.
// An address that embeds an IPv4 address is judged by that. Source: IANA's registries of special-purpose addresses (RFC 6890), RFC 6052,
// RFC 3056.
func private(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		b := a.As16()
		switch {
		case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
			return private(netip.AddrFrom4([4]byte(b[12:16])))
		case netip.MustParsePrefix("2002::/16").Contains(a):
			return private(netip.AddrFrom4([4]byte(b[2:6])))
		}
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return true
	}
	for _, p := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "::/96", "64:ff9b:1::/48", "2001::/32", "fec0::/10"} {
		if netip.MustParsePrefix(p).Contains(a) {
			return true
		}
	}
	return false
}

// errPrivate is the error about an address that a sink may not use.
var errPrivate = errors.New("it is an address of this machine or of a private network, and the sink does not allow these (private: true)")

// dialer connects for a sink. The address is checked when the connection is made, so that a name that resolves differently the second time
// has no effect.
func dialer(s config.Sink) *net.Dialer {
	return &net.Dialer{
		KeepAlive: -1,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			if s.Private {
				return nil
			}
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			if private(at.Addr()) {
				return fmt.Errorf("%s: %w", at.Addr(), errPrivate)
			}
			return nil
		},
	}
}

// maxAnswer is the maximum that is read of an answer, and maxHeader of its header, in bytes.
const (
	maxAnswer = 64 << 10
	maxHeader = 32 << 10
)

// client returns the client for the requests of a sink, which are limited by their contexts: each uses a new connection, to the configured
// host only. A proxy from the environment is used only if private addresses are allowed, since the address that it connects to can't be
// checked.
func client(s config.Sink) *http.Client {
	t := &http.Transport{
		DialContext: dialer(s).DialContext, DisableKeepAlives: true,
		MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true,
	}
	if s.Private {
		t.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{
		Transport: t,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			from := via[0]
			// A redirect that turns it into a GET would deliver nothing.
			if len(via) > 3 || req.Method != from.Method || req.URL.Scheme != from.URL.Scheme || req.URL.Host != from.URL.Host {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}
