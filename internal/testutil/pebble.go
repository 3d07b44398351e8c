package testutil

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// Pebble is Let's Encrypt's test server for ACME, in this process. It validates challenges as the real one does, but every name is 127.0.0.1 and the
// ports are given.
type Pebble struct {
	// Directory is the address of its ACME directory, CAFile the certificate to trust for it, and Root the CA that issues the certificates, as PEM.
	Directory, CAFile string
	Root              []byte
	server            *httptest.Server
}

// NewPebble starts one until the test ends; it validates http-01 at one port and tls-alpn-01 at the other.
func NewPebble(t *testing.T, httpPort, tlsPort int) *Pebble {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_AUTHZREUSE", "0")
	quiet := log.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	authority := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "default"}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	resolver := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)}}
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = resolver.ActivateAndServe() }()
	t.Cleanup(func() { _ = l.Close() })
	front := wfe.New(quiet, store, va.New(quiet, httpPort, tlsPort, false, l.Addr().String(), store), authority, []string{"pebble.letsencrypt.org"}, false, false, 1, 1)
	p := &Pebble{server: httptest.NewTLSServer(front.Handler()), CAFile: filepath.Join(t.TempDir(), "pebble.pem"), Root: authority.GetRootCert(0).PEM()}
	t.Cleanup(p.server.Close)
	p.server.Config.ErrorLog = quiet
	p.Directory = p.server.URL + wfe.DirectoryPath
	require.NoError(t, os.WriteFile(p.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}), 0o600))
	return p
}

// Stop ends it: nothing responds at its address any more.
func (p *Pebble) Stop() { p.server.Close() }

// ClosedPort returns a port of 127.0.0.1 at which nothing listens.
func ClosedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
