package broker

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
	// authorityFile is what certificates are verified by; authorityKeyFile is the key that signs those of further hubs' NATS servers.
	authorityFile    = "ca.pem"
	authorityKeyFile = "ca.key"
	// routeFile and routeKeyFile are the certificate and the key between NATS servers, peersFile the certificates of all of them.
	routeFile    = "route.pem"
	routeKeyFile = "route.key"
	peersFile    = "peers.pem"
	// credentialsFile are the keys of this hub.
	credentialsFile = "hub.json"
)

// Credentials are the keys of a hub for NATS, as seeds of NKeys.
type Credentials struct {
	// Hub is the user that talks to agents, System the one that is told about connections, and Issuer signs the permissions of agents.
	Hub    string `json:"hub"`
	System string `json:"system"`
	Issuer string `json:"issuer"`
	// Log is the user of the log that several hubs share; "" with one hub.
	Log string `json:"log,omitempty"`
	// CA is the PEM of authorityFile.
	CA []byte `json:"-"`
}

// Setup generates the keys of a hub and the configuration of a NATS server that accepts its agents, in dir. at is the address of that server: tls://HOST:PORT. Existing
// files are kept: fault.Refused. Durable on return.
func Setup(dir, at string) (config string, err error) {
	host, _, err := Parse(at)
	if err != nil {
		return "", err
	}
	if there, err := vfs.Exists(vfs.OS{}, filepath.Join(dir, credentialsFile)); err != nil || there {
		if there {
			err = fault.New(fault.Refused, "", "%s is there already: its keys are in the tokens of agents", filepath.Join(dir, credentialsFile)).WithHint("remove %s first, and let the agents join again", dir)
		}
		return "", err
	}
	authority, authorityKey, err := newAuthority()
	if err != nil {
		return "", err
	}
	request, key, err := newRequest(host)
	if err != nil {
		return "", err
	}
	cert, err := sign(authority, authorityKey, request, host)
	if err != nil {
		return "", err
	}
	var c Credentials
	users, err := c.generate()
	if err != nil {
		return "", err
	}
	issuer, public, err := newKey(nkeys.CreateAccount)
	if err != nil {
		return "", err
	}
	c.Issuer = issuer
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	users.Log = "" // there is no such account with one hub
	conf := configuration(dir, "", Server{Address: at, Users: users}, nil, nil, public)
	return filepath.Join(dir, configFile), writeFiles(dir, []file{
		{certificateFile, cert}, {keyFile, key}, {authorityKeyFile, authorityKey}, {authorityFile, authority}, {configFile, []byte(conf)}, {credentialsFile, text},
	})
}

// file is a file of the folder, by its name.
type file struct {
	name string
	data []byte
}

// writeFiles writes files in their order. Durable on return.
func writeFiles(dir string, files []file) error {
	if err := vfs.MkdirAll(vfs.OS{}, dir, 0o700); err != nil {
		return err
	}
	for _, f := range files {
		if err := vfs.WriteFileAtomic(vfs.OS{}, filepath.Join(dir, f.name), f.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// generate generates the keys of users that are missing, and returns their public names.
func (c *Credentials) generate() (u Users, err error) {
	for _, k := range []struct{ seed, name *string }{{&c.System, &u.System}, {&c.Hub, &u.Hub}, {&c.Log, &u.Log}} {
		if *k.seed == "" {
			*k.seed, *k.name, err = newKey(nkeys.CreateUser)
		} else {
			*k.name, err = publicOf(*k.seed)
		}
		if err != nil {
			return u, err
		}
	}
	return u, nil
}

func newKey(create func() (nkeys.KeyPair, error)) (seed, name string, err error) {
	pair, err := create()
	if err != nil {
		return "", "", err
	}
	text, err := pair.Seed()
	if err == nil {
		name, err = pair.PublicKey()
	}
	return string(text), name, err
}

func publicOf(seed string) (string, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", err
	}
	return pair.PublicKey()
}

// Addresses returns the addresses of NATS servers in the value of nats_url, which separates them by commas.
func Addresses(list string) (out []string, err error) {
	for at := range strings.SplitSeq(list, ",") {
		at = strings.TrimSpace(at)
		if _, _, err := Parse(at); err != nil {
			return nil, err
		}
		if !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out, nil
}

// Parse returns the host and port of the address of a NATS server.
func Parse(at string) (host, port string, err error) {
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
	if err == nil && c.Issuer == "" {
		return c, fault.New(fault.Refused, "nats_url", "this machine has not joined the other hubs yet").WithHint("corpus-git hub join TOKEN")
	}
	if err == nil {
		c.CA, err = os.ReadFile(filepath.Join(dir, authorityFile))
	}
	if err != nil {
		return c, fault.New(fault.Internal, "nats_url", "%w", err)
	}
	return c, nil
}
