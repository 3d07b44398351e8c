package modules

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"time"

	"corpus-git/internal/py"
)

// addMakinaSSL adds mc_ssl.ssl_certs: a list of pairs of a certificate and its key, in PEM, for domains. They are self-signed, generated once and kept
// among the stored passwords; those in the pillar below makina-states.localsettings.ssl.certificates ([certificate, key] by domain) take precedence.
func addMakinaSSL(s table) {
	s.put("mc_ssl.ssl_certs", "domains **", false, func(c *call) (any, error) {
		var domains []string
		switch v := c.val("domains").(type) {
		case *py.List:
			for _, d := range v.Items() {
				domains = append(domains, py.Str(d))
			}
		default:
			domains = strings.Split(py.Str(v), ",")
		}
		settings := c.registry("makina-states.localsettings.ssl", py.NewDict("certificates", py.NewDict()))
		certificates, _ := settings.GetStr("certificates")
		given, _ := certificates.(*py.Dict)
		out := py.NewList()
		for _, domain := range domains {
			if given != nil {
				if pair, ok := given.GetStr(domain); ok {
					if p := items(pair); len(p) >= 2 {
						out.Append(py.Tuple{p[0], p[1]})
						continue
					}
					return nil, py.Errorf(py.ValueError, "makina-states.localsettings.ssl.certificates: %s is not a certificate and a key", domain)
				}
			}
			pair, err := c.selfSigned(domain)
			if err != nil {
				return nil, err
			}
			out.Append(pair)
		}
		return out, nil
	})
}

// selfSigned returns the stored certificate of a domain and its key, which is made if there is none.
func (c *call) selfSigned(domain string) (py.Tuple, error) {
	if c.Passwords == nil {
		return nil, errors.New(c.name + ": there is no place to keep keys")
	}
	cert, ok, err := c.Passwords.Get("ssl_cert_" + domain)
	if err != nil {
		return nil, err
	}
	key, both, err := c.Passwords.Get("ssl_key_" + domain)
	if err != nil {
		return nil, err
	}
	if ok && both {
		return py.Tuple{cert, key}, nil
	}
	if cert, key, err = newCertificate(domain); err != nil {
		return nil, err
	}
	if cert, err = c.Passwords.Put("ssl_cert_"+domain, cert); err != nil {
		return nil, err
	}
	if key, err = c.Passwords.Put("ssl_key_"+domain, key); err != nil {
		return nil, err
	}
	return py.Tuple{cert, key}, nil
}

func newCertificate(domain string) (cert, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return "", "", err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: domain}, DNSNames: []string{domain}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(10, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return "", "", err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), nil
}
