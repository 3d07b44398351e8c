package broker

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nkeys"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// The files of layout.State.NATS.
const (
	// configFile is the configuration of the NATS server, certificateFile and keyFile its certificate and key.
	configFile      = "nats.conf"
	certificateFile = "server.pem"
	keyFile         = "server.key"
	// authorityFile is what the certificate is verified by: itself, unless an operator replaces both.
	authorityFile = "ca.pem"
	// credentialsFile are the keys of this hub.
	credentialsFile = "hub.json"
)

// Credentials are the keys of a hub for NATS, as seeds of NKeys.
type Credentials struct {
	// Hub is the user that talks to agents, System the one that is told about connections, and Issuer signs the permissions of agents.
	Hub    string `json:"hub"`
	System string `json:"system"`
	Issuer string `json:"issuer"`
	// CA is the PEM of authorityFile.
	CA []byte `json:"-"`
}

// conf is the configuration of a NATS server (docs.nats.io, "Configuration", "Auth Callout").
const conf = `# NATS server for the agents of a corpus-git hub. It stores nothing. Start it with  nats-server -c THIS_FILE
listen: %q
max_payload: 256KB
tls { cert_file: %q, key_file: %q, min_version: "1.3", timeout: 10 }
system_account: SYS
accounts {
  SYS { users: [ { nkey: %[4]s } ] }
  AGENTS { users: [ { nkey: %[5]s } ] }
}
authorization {
  timeout: 20
  auth_callout { issuer: %[6]s, account: AGENTS, auth_users: [ %[4]s, %[5]s ] }
}
`

// Setup generates the keys of a hub and the configuration of a NATS server that accepts its agents, in dir. at is the address of that server: tls://HOST:PORT. Existing
// files are kept: fault.Refused. Durable on return.
func Setup(dir, at string) (config string, err error) {
	host, port, err := parse(at)
	if err != nil {
		return "", err
	}
	if there, err := vfs.Exists(vfs.OS{}, filepath.Join(dir, credentialsFile)); err != nil || there {
		if there {
			err = fault.New(fault.Refused, "", "%s is there already: its keys are in the tokens of agents", filepath.Join(dir, credentialsFile)).WithHint("remove %s first, and let the agents join again", dir)
		}
		return "", err
	}
	var c Credentials
	var users []string
	for _, k := range []struct {
		seed   *string
		create func() (nkeys.KeyPair, error)
	}{{&c.System, nkeys.CreateUser}, {&c.Hub, nkeys.CreateUser}, {&c.Issuer, nkeys.CreateAccount}} {
		pair, err := k.create()
		if err != nil {
			return "", err
		}
		seed, serr := pair.Seed()
		name, perr := pair.PublicKey()
		if err := errors.Join(serr, perr); err != nil {
			return "", err
		}
		*k.seed, users = string(seed), append(users, name)
	}
	cert, key, err := selfSigned(host)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	if err := vfs.MkdirAll(vfs.OS{}, dir, 0o700); err != nil {
		return "", err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	config = fmt.Sprintf(conf, net.JoinHostPort("0.0.0.0", port), in(certificateFile), in(keyFile), users[0], users[1], users[2])
	for _, f := range []struct {
		name string
		data []byte
	}{{certificateFile, cert}, {keyFile, key}, {authorityFile, cert}, {configFile, []byte(config)}, {credentialsFile, text}} {
		if err := vfs.WriteFileAtomic(vfs.OS{}, in(f.name), f.data, 0o600); err != nil {
			return "", err
		}
	}
	return in(configFile), nil
}

// parse returns the host and port of the address of a NATS server.
func parse(at string) (host, port string, err error) {
	u, err := url.Parse(at)
	if err == nil && u.Scheme == "tls" && u.User == nil && u.Hostname() != "" {
		if n, err := strconv.Atoi(u.Port()); err == nil && n > 0 {
			return u.Hostname(), u.Port(), nil
		}
	}
	return "", "", fault.New(fault.Usage, "nats", "%q is not the address of a NATS server", at).WithHint("it is  tls://HOST:PORT , such as  tls://hub.example.org:4222")
}

// Load reads the keys of Setup.
func Load(dir string) (c Credentials, err error) {
	text, err := os.ReadFile(filepath.Join(dir, credentialsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, fault.New(fault.Refused, "nats_url", "there are no keys for NATS in %s", dir).WithHint("corpus-git nats init tls://HOST:PORT")
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil {
		c.CA, err = os.ReadFile(filepath.Join(dir, authorityFile))
	}
	if err != nil {
		return c, fault.New(fault.Internal, "nats_url", "%w", err)
	}
	return c, nil
}

// selfSigned returns a key and its certificate for a host, both PEM.
func selfSigned(host string) (cert, key []byte, err error) {
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "NATS of a corpus-git hub"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(20, 0, 0),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = []net.IP{ip}
	} else {
		t.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, pub, private)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), err
}
