package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/web"
)

// The header of RFC 7239 says who the client is where the configuration names it, and X-Forwarded-For nothing then.
func TestForwarded(t *testing.T) {
	for name, c := range map[string]struct {
		peer   string
		header []string
		from   string
		https  bool
	}{
		"one proxy":               {loopback, []string{"for=192.0.2.1;proto=https"}, "192.0.2.1", true},
		"as the RFC writes it":    {loopback, []string{"for=192.0.2.1; proto=https; by=203.0.113.43"}, "192.0.2.1", true},
		"names have no case":      {loopback, []string{"FOR=192.0.2.1;PROTO=HTTPS"}, "192.0.2.1", true},
		"quoted, with a port":     {loopback, []string{`by=_me;for="192.0.2.1:4711";host="a,b;c";proto=https`}, "192.0.2.1", true},
		"IPv6":                    {loopback, []string{`for="[2001:db8::1]:4711";proto=https`}, "2001:db8::1", true},
		"what the client sent":    {loopback, []string{"for=203.0.113.9;proto=https, for=192.0.2.1;proto=http"}, "192.0.2.1", false},
		"two proxies":             {loopback, []string{"for=203.0.113.9", "for=192.0.2.1, for=10.1.2.3;proto=https"}, "192.0.2.1", true},
		"an open quotation mark":  {loopback, []string{`for="203.0.113.9`, "for=192.0.2.1;proto=https"}, "192.0.2.1", true},
		"an escaped one":          {loopback, []string{`for="\", for=203.0.113.9`, `for=192.0.2.1;proto=https;ext="a\",b"`}, "192.0.2.1", true},
		"unknown":                 {loopback, []string{"for=192.0.2.1, for=unknown;proto=https"}, "127.0.0.1", true},
		"hidden":                  {loopback, []string{`for="_secret:80";proto=https`}, "127.0.0.1", true},
		"twice the same":          {loopback, []string{"for=192.0.2.1;for=192.0.2.2;proto=https"}, "127.0.0.1", false},
		"malformed":               {loopback, []string{"for=192.0.2.1 proto=https"}, "127.0.0.1", false},
		"nothing":                 {loopback, nil, "127.0.0.1", false},
		"who is no trusted proxy": {"192.0.2.7:9", []string{"for=192.0.2.1;proto=https"}, "192.0.2.7", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = c.peer
		r.Header["Forwarded"] = c.header
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		r.Header.Set("X-Forwarded-Proto", "https")
		s := &web.Server{Proxies: networks("127.0.0.1/32", "10.0.0.0/8"), Forwarded: true}
		from, https := s.Unwrapped(r)
		require.Equal(t, c.from, from, name)
		require.Equal(t, c.https, https, name)
	}
}

// FuzzForwarded holds that what a client sent changes nothing of what the proxy wrote behind it.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "for=1.2.3.4", `for="`, `for="\`, `,`, `a="\\"`, `";`, "for=[::1]", "\"\\\","} {
		f.Add(seed)
	}
	s := &web.Server{Proxies: networks("127.0.0.1/32"), Forwarded: true}
	f.Fuzz(func(t *testing.T, sent string) {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = loopback
		r.Header["Forwarded"] = []string{sent}
		from, _ := s.Unwrapped(r)
		require.NotEmpty(t, from)
		for _, header := range [][]string{{sent, "for=192.0.2.1;proto=https"}, {sent + `, for="192.0.2.1";proto="https"`}} {
			r.Header["Forwarded"] = header
			from, https := s.Unwrapped(r)
			require.Equal(t, "192.0.2.1", from, "%q", sent)
			require.True(t, https)
			require.False(t, strings.Contains(from, ","))
		}
	})
}
