package access_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
)

func TestFetchKeys(t *testing.T) {
	_, one := newKey(t)
	_, two := newKey(t)
	elsewhere := httptest.NewTLSServer(http.NotFoundHandler())
	defer elsewhere.Close()
	host := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/marie.keys":
			_, _ = w.Write(append(one, two...))
		case "/moved.keys":
			http.Redirect(w, r, "/marie.keys", http.StatusFound)
		case "/away.keys":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case "/down.keys":
			http.Redirect(w, r, "http://"+r.Host+"/marie.keys", http.StatusFound)
		case "/round.keys":
			http.Redirect(w, r, "/round.keys", http.StatusFound)
		case "/empty.keys":
		case "/page.keys":
			_, _ = w.Write([]byte("<html>log in first</html>"))
		case "/long.keys":
			_, _ = w.Write([]byte(strings.Repeat("# \n", 40_000)))
		case "/many.keys":
			_, _ = w.Write([]byte(strings.Repeat(string(one), 51)))
		case "/options.keys":
			_, _ = w.Write(append([]byte(`command="x" `), one...))
		default:
			http.NotFound(w, r)
		}
	}))
	defer host.Close()
	for _, path := range []string{"/marie.keys", "/moved.keys"} {
		got, err := access.FetchKeys(t.Context(), host.Client(), host.URL+path)
		require.NoError(t, err)
		require.Len(t, got, 2)
		require.Equal(t, strings.TrimSpace(string(two)), string(got[1].Text))
	}
	for address, want := range map[string]string{
		host.URL + "/away.keys":    "redirects to another host",
		host.URL + "/down.keys":    "redirects to another host",
		host.URL + "/round.keys":   "too many redirects",
		host.URL + "/empty.keys":   "contains no key",
		host.URL + "/page.keys":    "line 1: public key: not a public key",
		host.URL + "/long.keys":    "longer than 65536 bytes",
		host.URL + "/many.keys":    "more than 50 keys",
		host.URL + "/options.keys": "options in front of a key",
		host.URL + "/nobody.keys":  "responded with status 404",
		"http://127.0.0.1/x.keys":  "must be an https address",
		"https://a:b@example.org/": "must be an https address",
		"file:///etc/passwd":       "must be an https address",
		"nonsense":                 "must be an https address",
	} {
		_, err := access.FetchKeys(t.Context(), host.Client(), address)
		require.ErrorContains(t, err, want, address)
	}
	_, err := access.FetchKeys(t.Context(), http.DefaultClient, host.URL+"/marie.keys")
	require.ErrorContains(t, err, "certificate", "an unknown authority")
}
