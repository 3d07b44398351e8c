package testutil

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Slapd is a private OpenLDAP server, below a folder, on 127.0.0.1. Its suffix is dc=example,dc=org, and cn=admin,dc=example,dc=org with the password
// "admin" may do everything.
type Slapd struct {
	// URL is the address of LDAP over TLS, StartTLS that of plain LDAP, which can be upgraded.
	URL, StartTLS string
	// CA is the file of the certificate authority to trust for it.
	CA string

	dir string
	cmd *exec.Cmd
}

const slapdConf = `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey' EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY MAY ( sshPublicKey $ uid ) )
pidfile DIR/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCACertificateFile DIR/ca.pem
TLSCertificateFile DIR/cert.pem
TLSCertificateKeyFile DIR/key.pem
database mdb
suffix "dc=example,dc=org"
rootdn "cn=admin,dc=example,dc=org"
rootpw admin
directory DIR/db
maxsize 10485760
access to attrs=userPassword by anonymous auth by * none
access to * by * read
`

// NewSlapd writes the server's files and its content, as LDIF. Start starts it.
func NewSlapd(dir, ldif string) (*Slapd, error) {
	s := &Slapd{dir: dir, CA: filepath.Join(dir, "ca.pem")}
	if err := os.MkdirAll(filepath.Join(dir, "db"), 0o700); err != nil {
		return nil, err
	}
	if err := s.certificates(); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"slapd.conf": strings.ReplaceAll(slapdConf, "DIR", dir), "data.ldif": ldif} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	add := exec.Command(slapdProgram("slapadd"), "-f", filepath.Join(dir, "slapd.conf"), "-l", filepath.Join(dir, "data.ldif"))
	if out, err := add.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("slapadd: %w: %s", err, out)
	}
	var ports []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		ports = append(ports, l.Addr().String())
		defer l.Close()
	}
	s.URL, s.StartTLS = "ldaps://"+ports[0], "ldap://"+ports[1]
	return s, nil
}

// HasSlapd reports whether slapd is installed.
func HasSlapd() bool {
	_, err := exec.LookPath(slapdProgram("slapd"))
	return err == nil
}

// slapdProgram finds slapd, which Debian keeps out of the PATH of users.
func slapdProgram(name string) string {
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	return "/usr/sbin/" + name
}

// Start starts the server, and returns when it responds.
func (s *Slapd) Start() error {
	var errs bytes.Buffer
	s.cmd = exec.Command(slapdProgram("slapd"), "-d", "0", "-f", filepath.Join(s.dir, "slapd.conf"), "-h", s.URL+" "+s.StartTLS)
	s.cmd.Stderr = &errs
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 500 {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.URL, "ldaps://"), time.Second)
		if err == nil {
			return c.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Stop()
	return fmt.Errorf("slapd does not answer: %s", errs.String())
}

// Stop kills the server; Start starts it again, with the same content.
func (s *Slapd) Stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// certificates makes a certificate authority, and a certificate for the server's address.
func (s *Slapd) certificates() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: caDER}, "cert.pem": {Type: "CERTIFICATE", Bytes: leafDER}, "key.pem": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
