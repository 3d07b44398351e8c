package broker

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"time"

	"corpus-git/internal/fault"
)

// lifetime is that of certificates, and skew how much the clock of a machine may be behind, in years.
const lifetime, skew = 20, 1

// subject returns what all certificates have in common.
func subject(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().AddDate(-skew, 0, 0), NotAfter: time.Now().AddDate(lifetime, 0, 0), BasicConstraintsValid: true,
	}, err
}

// forHost makes a certificate one for a server at a host, which is also a client of other servers.
func forHost(t *x509.Certificate, host string) {
	t.KeyUsage, t.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = []net.IP{ip}
	} else {
		t.DNSNames = []string{host}
	}
}

// newAuthority generates the key and the certificate, both PEM, that the certificates of NATS servers are signed with.
func newAuthority() (cert, key []byte, err error) {
	return selfSigned("corpus-git hubs", func(t *x509.Certificate) { t.IsCA, t.KeyUsage = true, x509.KeyUsageCertSign })
}

// newRoute generates the key and the certificate, both PEM, with which a NATS server meets those of other hubs at host. They trust it by itself.
func newRoute(host string) (cert, key []byte, err error) {
	return selfSigned("NATS of a corpus-git hub", func(t *x509.Certificate) { forHost(t, host) })
}

func selfSigned(name string, with func(t *x509.Certificate)) (cert, key []byte, err error) {
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	t, err := subject(name)
	if err != nil {
		return nil, nil, err
	}
	with(t)
	der, err := x509.CreateCertificate(rand.Reader, t, t, pub, private)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyPEM(private)
	return certificatePEM(der), key, err
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// newRequest generates a key, and a request for a certificate for it; key is PEM, request DER.
func newRequest(host string) (request, key []byte, err error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if key, err = keyPEM(private); err != nil {
		return nil, nil, err
	}
	request, err = requestFor(host, private)
	return request, key, err
}

func requestFor(host string, private ed25519.PrivateKey) ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: host}}, private)
}

// requestOf returns a request for a certificate for a key that is there already.
func requestOf(host string, key []byte) ([]byte, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("it contains no key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("it is not an ed25519 key")
	}
	return requestFor(host, private)
}

// sign issues the certificate for the key of a request. Names are taken from host only, not from the request. A request that its key has not signed is fault.Refused.
func sign(authority, authorityKey, request []byte, host string) ([]byte, error) {
	r, err := x509.ParseCertificateRequest(request)
	if err == nil {
		err = r.CheckSignature()
	}
	if err != nil {
		return nil, fault.New(fault.Refused, "", "the request for a certificate is not valid: %w", err)
	}
	pair, err := tls.X509KeyPair(authority, authorityKey)
	if err != nil {
		return nil, err
	}
	t, err := subject("NATS of a corpus-git hub")
	if err != nil {
		return nil, err
	}
	forHost(t, host)
	der, err := x509.CreateCertificate(rand.Reader, t, pair.Leaf, r.PublicKey, pair.PrivateKey)
	return certificatePEM(der), err
}

// keyDigest returns the SHA-256 of the public key of a certificate for a host, in hexadecimal. Anything else than one valid certificate for it is fault.Refused.
func keyDigest(text, host string) (string, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 {
		return "", fault.New(fault.Refused, "", "that is not one certificate")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err == nil {
		err = c.VerifyHostname(host)
	}
	if err == nil && c.IsCA {
		err = errors.New("it signs others")
	}
	if err != nil {
		return "", fault.New(fault.Refused, "", "the certificate of a NATS server is not valid: %w", err)
	}
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:]), nil
}
