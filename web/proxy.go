package web

import (
	"context"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwardedKey is the key of forwarded in a request's context.
type forwardedKey struct{}

// forwarded is the client information from a trusted proxy.
type forwarded struct {
	https   bool // it came to the proxy by https
	private bool // nobody reads what the proxy sends: it is on this machine, or speaks https
}

// forwardedOf returns the client information from a trusted proxy; ok is false without one.
func forwardedOf(r *http.Request) (f forwarded, ok bool) {
	f, ok = r.Context().Value(forwardedKey{}).(forwarded)
	return f, ok
}

// secure reports whether the client uses https, to this server or to a trusted proxy.
func secure(r *http.Request) bool {
	f, ok := forwardedOf(r)
	return ok && f.https || !ok && r.TLS != nil
}

// unwrap sets the client address of requests through trusted proxies: the last one in the header of Server.Forwarded that is not a trusted proxy, as earlier
// ones can be forged. Other requests are not changed.
func (s *Server) unwrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, ok := address(r.RemoteAddr)
		if !ok || !s.trusts(peer) {
			next.ServeHTTP(w, r)
			return
		}
		proto, hops := last(r.Header.Values("X-Forwarded-Proto")), forwardedFor(r.Header)
		if s.Forwarded {
			proto, hops = protoOf(r.Header), forwardedHops(r.Header)
		}
		f := forwarded{https: strings.EqualFold(proto, "https"), private: peer.IsLoopback() || r.TLS != nil}
		r = r.WithContext(context.WithValue(r.Context(), forwardedKey{}, f))
		r.RemoteAddr = net.JoinHostPort(s.clientBehind(peer, hops).String(), "0")
		next.ServeHTTP(w, r)
	})
}

// clientBehind returns the client of a request through a trusted proxy. Each proxy appends the address it received the request from, so hops returns them from
// the end.
func (s *Server) clientBehind(peer netip.Addr, hops iter.Seq[string]) netip.Addr {
	client := peer
	for text := range hops {
		next, ok := address(text)
		if !s.trusts(client) || !ok {
			break
		}
		client = next
	}
	return client
}

// forwardedFor returns the addresses in X-Forwarded-For, the last one first.
func forwardedFor(h http.Header) iter.Seq[string] {
	list := strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")
	return func(yield func(string) bool) {
		for _, text := range slices.Backward(list) {
			if !yield(strings.TrimSpace(text)) {
				return
			}
		}
	}
}

func (s *Server) trusts(a netip.Addr) bool {
	for _, p := range s.Proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// last returns the last element of a header that is a list.
func last(values []string) string {
	list := strings.Split(strings.Join(values, ","), ",")
	return strings.TrimSpace(list[len(list)-1])
}

// address reads an IP address, with a port or without, in brackets or not.
func address(s string) (netip.Addr, bool) {
	if p, err := netip.ParseAddrPort(s); err == nil {
		return p.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return a.Unmap().WithZone(""), err == nil
}
