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

// forwarded is what a trusted proxy says of a request.
type forwarded struct {
	https   bool // it came to the proxy by https
	private bool // nobody reads what the proxy sends: it is on this machine, or speaks https
}

// forwardedOf is what a trusted proxy says of a request; ok is false where there was none.
func forwardedOf(r *http.Request) (f forwarded, ok bool) {
	f, ok = r.Context().Value(forwardedKey{}).(forwarded)
	return f, ok
}

// secure reports whether the client speaks https, to this server or to a trusted proxy.
func secure(r *http.Request) bool {
	f, ok := forwardedOf(r)
	return ok && f.https || !ok && r.TLS != nil
}

// unwrap gives the requests that come through trusted proxies the address of the client: the last one in the header of Server.Forwarded that is not such a
// proxy's. What stands before it anybody may have sent. Other requests stay as they are.
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

// clientBehind is the client of a request that a trusted proxy hands on. Each proxy adds the address that it got the request from to the end of
// its header, so hops gives them from there, as far as trusted proxies wrote it.
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

// forwardedFor are the addresses in X-Forwarded-For, the last one first.
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

// last is the last element of a header that is a list.
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
