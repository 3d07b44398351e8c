package acme_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/testutil"
	"corpus-git/web/acme"
)

const name = "deploy.example.org"

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func listener(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// serve shows the certificates on a listener, as the web server does.
func serve(t *testing.T, c *acme.Certificates, l net.Listener) {
	s := &http.Server{TLSConfig: c.TLS(), ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })}
	go func() { _ = s.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = s.Close() })
}

// shown is the certificate that a client gets that asks for a name and trusts the authority.
func shown(l net.Listener, root []byte, name string) (*x509.Certificate, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{ServerName: name, RootCAs: pool})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0], nil
}

func TestChallenges(t *testing.T) {
	for _, test := range []struct {
		kind string
		http bool
	}{{kind: "tls-alpn-01"}, {kind: "http-01", http: true}} {
		t.Run(test.kind, func(t *testing.T) {
			l, plain := listener(t), net.Listener(nil)
			httpPort, tlsPort := testutil.ClosedPort(t), port(l)
			if test.http {
				// The authority reaches nothing at the port of https, so only http-01 can succeed.
				plain = listener(t)
				httpPort, tlsPort = port(plain), testutil.ClosedPort(t)
			}
			authority := testutil.NewPebble(t, httpPort, tlsPort)
			said := &testutil.Buffer{}
			cfg := acme.Config{Hosts: []string{name}, Email: "ops@example.org", CA: authority.Directory, CAFile: authority.CAFile, Dir: filepath.Join(t.TempDir(), "acme"), Web: l.Addr(), HTTP: plain, Log: zerolog.New(said)}
			c, err := acme.Open(cfg)
			require.NoError(t, err)
			defer c.Close()
			serve(t, c, l)
			_, err = shown(l, authority.Root, name)
			require.Error(t, err, "there is no certificate yet")
			require.NoError(t, c.Start())
			var first *x509.Certificate
			require.Eventually(t, func() bool {
				first, err = shown(l, authority.Root, name)
				return err == nil
			}, time.Minute, 50*time.Millisecond, "%v %s", err, said)
			require.Equal(t, []string{name}, first.DNSNames)
			require.Contains(t, said.String(), "got a TLS certificate")
			_, err = shown(l, authority.Root, "other.example.org")
			require.Error(t, err, "a name that the configuration does not have")
			if test.http {
				none := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				for host, want := range map[string]string{name: "https://" + name + "/a?b=c", "evil.example.org": ""} {
					q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+plain.Addr().String()+"/a?b=c", http.NoBody)
					require.NoError(t, err)
					q.Host = host
					a, err := (&http.Client{CheckRedirect: none}).Do(q)
					require.NoError(t, err)
					_ = a.Body.Close()
					require.Equal(t, want, a.Header.Get("Location"))
				}
			}
			require.NoError(t, filepath.Walk(cfg.Dir, func(path string, info os.FileInfo, err error) error {
				require.NoError(t, err)
				require.Zero(t, info.Mode().Perm()&0o077, "%s is for the server alone", path)
				return nil
			}))
			require.NoError(t, c.Close())

			// The next start shows what was kept, without the authority.
			authority.Stop()
			again := listener(t)
			cfg.Web, cfg.HTTP = again.Addr(), nil
			c, err = acme.Open(cfg)
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.Start())
			serve(t, c, again)
			var kept *x509.Certificate
			require.Eventually(t, func() bool {
				kept, err = shown(again, authority.Root, name)
				return err == nil
			}, time.Minute, 20*time.Millisecond, "%v %s", err, said)
			require.Equal(t, first.SerialNumber, kept.SerialNumber)
		})
	}
}

// TestNoAuthority is a start while the authority does not answer: it is said, and nothing waits for it.
func TestNoAuthority(t *testing.T) {
	l := listener(t)
	authority := testutil.NewPebble(t, testutil.ClosedPort(t), port(l))
	authority.Stop()
	said := &testutil.Buffer{}
	c, err := acme.Open(acme.Config{Hosts: []string{name}, CA: authority.Directory, CAFile: authority.CAFile, Dir: t.TempDir(), Web: l.Addr(), Log: zerolog.New(said)})
	require.NoError(t, err)
	serve(t, c, l)
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool { return bytes.Contains([]byte(said.String()), []byte("got no TLS certificate")) }, time.Minute, 20*time.Millisecond)
	require.NoError(t, c.Close())

	_, err = acme.Open(acme.Config{Hosts: []string{name}, CA: authority.Directory, CAFile: filepath.Join(t.TempDir(), "none"), Dir: t.TempDir(), Web: l.Addr()})
	require.Error(t, err)
}
