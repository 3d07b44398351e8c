package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func networks(list ...string) (out []netip.Prefix) {
	for _, text := range list {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// signIn sends the login form of marie, and reports the address that the directory was asked with, and whether the session's cookie is for https only.
func signIn(t *testing.T, proxies []netip.Prefix, peer string, headers http.Header) (status int, from string, httpsOnly bool) {
	t.Helper()
	s, p := withPeople(t)
	s.Proxies = proxies
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(url.Values{"name": {"marie"}, "password": {"right"}}.Encode()))
	r.RemoteAddr = peer
	r.Header = headers.Clone()
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if len(p.asked) > 0 {
		_, from, _ = strings.Cut(p.asked[0], " from ")
	}
	for _, c := range w.Result().Cookies() {
		httpsOnly = c.Secure
	}
	return w.Code, from, httpsOnly
}

// A proxy that is trusted says who the client is and that it speaks https. What a client puts into these headers itself counts for nothing.
func TestTrustedProxies(t *testing.T) {
	local := networks("127.0.0.1/32", "::1/128", "10.0.0.0/8")
	for name, c := range map[string]struct {
		peer    string
		xff     []string
		proto   string
		from    string // "" where the password is not taken
		trusted []netip.Prefix
	}{
		"one proxy":                     {loopback, []string{"192.0.2.1"}, "https", "192.0.2.1", local},
		"what the client sent":          {loopback, []string{"203.0.113.9, 192.0.2.1"}, "https", "192.0.2.1", local},
		"two proxies":                   {loopback, []string{"203.0.113.9, 192.0.2.1, 10.1.2.3"}, "https", "192.0.2.1", local},
		"two headers":                   {loopback, []string{"203.0.113.9", "192.0.2.1"}, "https", "192.0.2.1", local},
		"all are proxies":               {loopback, []string{"10.1.2.3"}, "https", "10.1.2.3", local},
		"none is named":                 {loopback, nil, "https", "127.0.0.1", local},
		"no address":                    {loopback, []string{"192.0.2.1, unknown"}, "https", "127.0.0.1", local},
		"with a port":                   {loopback, []string{"192.0.2.1:1234"}, "https", "192.0.2.1", local},
		"IPv6":                          {"[::1]:9", []string{"[2001:db8::1]:1234"}, "https", "2001:db8::1", local},
		"IPv6 alone":                    {"[::1]:9", []string{"2001:db8::1"}, "https", "2001:db8::1", local},
		"IPv4 in IPv6":                  {"[::ffff:127.0.0.1]:9", []string{"192.0.2.1"}, "https", "192.0.2.1", local},
		"plain HTTP to the proxy":       {loopback, []string{"192.0.2.1"}, "http", "", local},
		"nothing said of https":         {loopback, []string{"192.0.2.1"}, "", "", local},
		"https is what the client says": {loopback, []string{"192.0.2.1"}, "https, http", "", local},
		"plain HTTP from the proxy":     {"10.0.0.1:9", []string{"192.0.2.1"}, "https", "", local},
		"another sender":                {"192.0.2.7:9", []string{"127.0.0.1"}, "https", "", local},
		"no proxy is trusted":           {loopback, []string{"192.0.2.1"}, "https", "", nil},
	} {
		h := http.Header{}
		for _, v := range c.xff {
			h.Add("X-Forwarded-For", v)
		}
		if c.proto != "" {
			h.Set("X-Forwarded-Proto", c.proto)
		}
		status, from, httpsOnly := signIn(t, c.trusted, c.peer, h)
		require.Equal(t, c.from, from, name)
		require.Equal(t, c.from != "", httpsOnly, name)
		require.Equal(t, map[bool]int{true: http.StatusSeeOther, false: http.StatusUnauthorized}[c.from != ""], status, name)
	}
}

// FuzzForwardedFor: whatever the header holds, an address that a client writes to its left never counts before the one that a proxy wrote.
func FuzzForwardedFor(f *testing.F) {
	f.Add("203.0.113.9, ", "https")
	f.Add("[::1]:, 10.0.0.1,,", "http")
	f.Fuzz(func(t *testing.T, sent, proto string) {
		h := http.Header{"X-Forwarded-For": {sent, "192.0.2.1"}, "X-Forwarded-Proto": {proto, "https"}}
		status, from, _ := signIn(t, networks("127.0.0.1/32"), loopback, h)
		require.Equal(t, http.StatusSeeOther, status)
		require.Equal(t, "192.0.2.1", from)
	})
}
