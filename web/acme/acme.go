package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/rs/zerolog"
	"go.uber.org/zap"
)

// Config configures the certificates. Hosts, CA, Dir and Web are required.
type Config struct {
	// Hosts are the names of the certificates, one certificate each.
	Hosts []string
	// Email is the contact address of the account; "" sends none.
	Email string
	// CA is the address of the authority's directory (RFC 8555, section 7.1.1).
	CA string
	// CAFile contains the CA certificates for https to the authority, in PEM; "" means those of the system.
	CAFile string
	// Dir is the directory for keys and certificates.
	Dir string
	// Web is the listener whose handshakes answer tls-alpn-01 challenges.
	Web net.Addr
	// HTTP is the listener that answers http-01 challenges and redirects all other requests to https; nil answers none. Close closes it.
	HTTP net.Listener
	Log  zerolog.Logger
}

// Certificates are the certificates of the configured names. All methods are safe for concurrent use.
type Certificates struct {
	cfg    Config
	cache  *certmagic.Cache
	magic  *certmagic.Config
	http   *http.Server
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
}

// Open reads existing certificates. Nothing is requested before Start.
func Open(cfg Config) (*Certificates, error) {
	roots, err := readRoots(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	c := &Certificates{cfg: cfg}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	quiet := zap.NewNop() // what matters is told by events
	c.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return c.magic, nil },
		Logger:           quiet,
	})
	c.magic = certmagic.New(c.cache, certmagic.Config{Storage: &certmagic.FileStorage{Path: cfg.Dir}, Logger: quiet, DefaultServerName: cfg.Hosts[0], OnEvent: c.told})
	host, port := hostPort(cfg.Web)
	template := certmagic.ACMEIssuer{
		CA: cfg.CA, TestCA: cfg.CA, Email: cfg.Email, Agreed: true, TrustedRoots: roots, Logger: quiet,
		ListenHost: host, AltTLSALPNPort: port, DisableHTTPChallenge: cfg.HTTP == nil,
	}
	if cfg.HTTP != nil {
		_, template.AltHTTPPort = hostPort(cfg.HTTP.Addr())
	}
	issuer := certmagic.NewACMEIssuer(c.magic, template)
	c.magic.Issuers = []certmagic.Issuer{issuer}
	if cfg.HTTP != nil {
		c.http = &http.Server{
			Handler:           issuer.HTTPChallengeHandler(http.HandlerFunc(c.redirect)),
			ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		}
	}
	return c, nil
}

// readRoots reads the CA certificates in a file; nil means those of the system.
func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}

// hostPort returns host and port of a listener; the host is "" if it listens on all addresses.
func hostPort(a net.Addr) (host string, port int) {
	host, text, _ := net.SplitHostPort(a.String())
	port, _ = strconv.Atoi(text)
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = ""
	}
	return host, port
}

// Start answers challenges and gets and renews certificates until Close. The web listener must be ready, or soon will be: failed challenges are retried with
// increasing delays.
func (c *Certificates) Start() error {
	if c.http != nil {
		go func() {
			if err := c.http.Serve(c.cfg.HTTP); !errors.Is(err, http.ErrServerClosed) {
				c.cfg.Log.Error().Err(err).Msg("the listener of http-01 challenges")
			}
		}()
	}
	return c.magic.ManageAsync(c.ctx, c.cfg.Hosts)
}

// TLS returns the TLS configuration of the web listener: TLS 1.2 and later, with Go's default ciphers.
func (c *Certificates) TLS() *tls.Config {
	t := c.magic.TLSConfig()
	t.MinVersion, t.CipherSuites, t.CurvePreferences = tls.VersionTLS12, nil, nil
	t.NextProtos = append([]string{"h2", "http/1.1"}, t.NextProtos...)
	return t
}

// Close closes the listener and stops background work. It is idempotent.
func (c *Certificates) Close() (err error) {
	c.once.Do(func() {
		c.cancel()
		c.cache.Stop()
		if c.http != nil {
			err = c.http.Close()
			_ = c.cfg.HTTP.Close() // where Start was not called
		}
	})
	return err
}

// redirect redirects http requests for configured host names to https.
func (c *Certificates) redirect(w http.ResponseWriter, r *http.Request) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	for _, name := range c.cfg.Hosts {
		if name == host && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			http.Redirect(w, r, "https://"+name+r.URL.RequestURI(), http.StatusFound)
			return
		}
	}
	http.Error(w, "there is nothing here", http.StatusNotFound)
}

// told logs an event of a certificate.
func (c *Certificates) told(_ context.Context, what string, data map[string]any) error {
	name, _ := data["identifier"].(string)
	renewal, _ := data["renewal"].(bool)
	switch what {
	case "cert_obtaining":
		c.cfg.Log.Info().Str("host", name).Str("ca", c.cfg.CA).Bool("renewal", renewal).Msg("asking for a TLS certificate")
	case "cert_obtained":
		c.cfg.Log.Info().Str("host", name).Bool("renewal", renewal).Msg("got a TLS certificate")
	case "cert_failed":
		err, _ := data["error"].(error)
		c.cfg.Log.Error().Err(err).Str("host", name).Bool("renewal", renewal).
			Msg("got no TLS certificate; it is asked for again later. The authority must reach the host by its name, on port 443 (http_listen) or 80 (acme.http_listen)")
	}
	return nil
}
