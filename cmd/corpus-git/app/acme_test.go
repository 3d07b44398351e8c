package app

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/testutil"
)

// TestACME serves the pages with a certificate from a test authority.
func TestACME(t *testing.T) {
	free := testutil.ClosedPort(t)
	authority := testutil.NewPebble(t, free, testutil.ClosedPort(t))
	s := running(t, t.TempDir(), map[string]string{
		"listen": "127.0.0.1:0", "http-listen": "127.0.0.1:0", "acme-hosts": "deploy.example.org", "acme-ca": authority.Directory, "acme-ca-file": authority.CAFile,
		"acme-http-listen": "127.0.0.1:" + strconv.Itoa(free),
	})
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(authority.Root))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "deploy.example.org"}}}
	_, port, err := net.SplitHostPort(s.webAddr.Addr().String())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		a, err := client.Get("https://127.0.0.1:" + port + "/healthz")
		if err != nil {
			return false
		}
		_ = a.Body.Close()
		return a.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
	require.Equal(t, "https://deploy.example.org:"+port, s.webURL(s.webAddr.Addr().String()))
	require.DirExists(t, s.state.ACME())
}
