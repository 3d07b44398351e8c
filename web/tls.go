package web

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
)

// Certificate is a TLS certificate and its key, in two PEM files. New connections use the files as of the last Reload.
type Certificate struct {
	cert, key string
	now       atomic.Pointer[tls.Certificate]
}

// LoadCertificate reads the two files: the certificate with its chain, and its private key.
func LoadCertificate(cert, key string) (*Certificate, error) {
	c := &Certificate{cert: cert, key: key}
	return c, c.Reload()
}

// Reload reads the files again. After an error the previous certificate is kept.
func (c *Certificate) Reload() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("TLS certificate %s: %w", c.cert, err)
	}
	c.now.Store(&pair)
	return nil
}

// config returns the TLS configuration: TLS 1.2 and later, with Go's default ciphers.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil },
	}
}
