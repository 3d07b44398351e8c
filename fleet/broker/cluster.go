package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nkeys"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Users are the public keys of a hub's users of NATS: that talks to agents, that is told about connections, and that of the log.
type Users struct {
	Hub    string `json:"hub"`
	System string `json:"system"`
	Log    string `json:"log"`
}

// All returns the names.
func (u Users) All() []string { return []string{u.System, u.Hub, u.Log} }

// Server is the NATS server beside a hub.
type Server struct {
	Name string
	// Address is tls://HOST:PORT for hubs and agents, Route HOST:PORT for the other NATS servers.
	Address, Route string
	Users          Users
	// Certificate is the PEM of what it proves itself by to other NATS servers.
	Certificate string
}

// Own is what a machine tells about its NATS server when it joins other hubs. It contains no secret.
type Own struct {
	Users       Users  `json:"users"`
	Certificate string `json:"certificate"`
	// Request is a request for the certificate for agents and hubs (RFC 2986).
	Request []byte `json:"request"`
}

// Granted is what a machine needs to have a NATS server of the fleet. It contains secrets.
type Granted struct {
	Issuer       string `json:"issuer"`
	Authority    []byte `json:"authority"`
	AuthorityKey []byte `json:"authority_key"`
	Certificate  []byte `json:"certificate"`
}

const (
	// logAccount is the account of the log that hubs share, and logSize the most that it may take on each machine.
	logAccount = "HUBS"
	logSize    = "16GB"
	// clusterName is the name of the cluster of NATS servers.
	clusterName = "corpus-git"
)

// configuration returns the configuration of a NATS server (docs.nats.io, "Configuration", "Auth Callout", "Clustering", "JetStream"): that of own, alone or with others, which
// include it. Its store is a folder of its own. retired are users that exist no more. issuer is a public key.
func configuration(dir, store string, own Server, all []Server, retired []string, issuer string) string {
	in := func(name string) string { return strconv.Quote(filepath.Join(dir, name)) }
	if len(all) == 0 {
		all = []Server{own}
	}
	var system, agents, log, pinned, routes []string
	for _, s := range all {
		system, agents, log = append(system, s.Users.System), append(agents, s.Users.Hub), append(log, s.Users.Log)
		if s.Name != own.Name {
			routes = append(routes, strconv.Quote("nats-route://"+s.Route))
		}
		if digest, err := keyDigest(s.Certificate, hostOf(s.Route)); err == nil {
			pinned = append(pinned, strconv.Quote(digest))
		}
	}
	for _, list := range [][]string{system, agents, log, pinned, routes} {
		slices.Sort(list) // a server that reads its configuration again sorts the lists that it uses, without a lock (NATS 2.15)
	}
	users := func(names []string) string {
		var out []string
		for _, n := range names {
			out = append(out, "{ nkey: "+n+" }")
		}
		return strings.Join(out, ", ")
	}
	host, port, _ := Parse(own.Address)
	var b strings.Builder
	payload := "256KB"
	if own.Name != "" {
		payload = "1MB" // the log has larger messages
	}
	fmt.Fprintf(&b, "# NATS server for the agents of a corpus-git hub. Start it with  nats-server -c THIS_FILE\nlisten: %q\nmax_payload: %s\n", listenAt(host, port), payload)
	fmt.Fprintf(&b, "tls { cert_file: %s, key_file: %s, min_version: \"1.3\", timeout: 10 }\nsystem_account: SYS\n", in(certificateFile), in(keyFile))
	fmt.Fprintf(&b, "accounts {\n  SYS { users: [ %s ] }\n  %s { users: [ %s ] }\n", users(system), account, users(agents))
	bypass := slices.Concat(system, agents)
	if own.Name != "" {
		fmt.Fprintf(&b, "  %s { jetstream { max_mem: 0, max_file: %s, max_streams: 4, max_consumers: 100 }, users: [ %s ] }\n", logAccount, logSize, users(log))
		bypass = slices.Concat(bypass, log, retired) // the server asks the hub about all others
	}
	slices.Sort(bypass) // without a restart only the same list can be read again
	fmt.Fprintf(&b, "}\nauthorization {\n  timeout: 20\n  auth_callout { issuer: %s, account: %s, auth_users: [ %s ] }\n}\n", issuer, account, strings.Join(bypass, ", "))
	if own.Name == "" {
		return b.String()
	}
	routeHost, routePort, _ := net.SplitHostPort(own.Route)
	fmt.Fprintf(&b, "server_name: %q\nclient_advertise: %q\n", own.Name, net.JoinHostPort(host, port))
	fmt.Fprintf(&b, "cluster {\n  name: %s, listen: %q, cluster_advertise: %q\n  routes: [ %s ]\n", clusterName, listenAt(routeHost, routePort), own.Route, strings.Join(routes, ", "))
	fmt.Fprintf(&b, "  tls { cert_file: %s, key_file: %s, ca_file: %s, verify: true, pinned_certs: [ %s ], min_version: \"1.3\", timeout: 10 }\n}\n", in(routeFile), in(routeKeyFile), in(peersFile), strings.Join(pinned, ", "))
	fmt.Fprintf(&b, "jetstream { store_dir: %q, sync_interval: always, max_mem: 64MB, max_file: %s }\n", store, logSize)
	return b.String()
}

// listenAt returns the address on which a server listens that others reach at host.
func listenAt(host, port string) string {
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		host = "0.0.0.0"
	}
	return net.JoinHostPort(host, port)
}

func hostOf(at string) string {
	host, _, _ := net.SplitHostPort(at)
	return host
}

// read reads the keys in dir, as far as they are there.
func read(dir string) (c Credentials, err error) {
	text, err := os.ReadFile(filepath.Join(dir, credentialsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, err
}

// Prepare generates in dir what is missing of the keys of a NATS server that others reach at address and route, and returns what they need to know of it. Durable on return.
func Prepare(dir, address, route string) (own Own, err error) {
	host, _, err := Parse(address)
	if err != nil {
		return own, err
	}
	if _, _, err := net.SplitHostPort(route); err != nil {
		return own, fault.New(fault.Usage, "", "%q is not HOST:PORT", route)
	}
	c, err := read(dir)
	if err != nil {
		return own, err
	}
	if own.Users, err = c.generate(); err != nil {
		return own, err
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = writeFiles(dir, []file{{credentialsFile, text}})
	}
	if err != nil {
		return own, err
	}
	cert, err := os.ReadFile(filepath.Join(dir, routeFile))
	if err == nil {
		_, err = keyDigest(string(cert), hostOf(route)) // one for another host is replaced
	}
	if err != nil {
		var key []byte
		if cert, key, err = newRoute(hostOf(route)); err == nil {
			err = writeFiles(dir, []file{{routeKeyFile, key}, {routeFile, cert}})
		}
		if err != nil {
			return own, err
		}
	}
	own.Certificate = string(cert)
	key, err := os.ReadFile(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		if own.Request, key, err = newRequest(host); err == nil {
			err = writeFiles(dir, []file{{keyFile, key}})
		}
		return own, err
	}
	if err == nil {
		own.Request, err = requestOf(host, key)
	}
	if err != nil {
		own.Request, err = nil, nil // an operator's own key, whose certificate is there already
	}
	return own, err
}

// Check returns what is wrong with what another machine tells about its NATS server: fault.Refused.
func (o Own) Check(route string) error {
	for _, name := range o.Users.All() {
		if !nkeys.IsValidPublicUserKey(name) {
			return fault.New(fault.Refused, "", "a key of its users of NATS is not valid")
		}
	}
	_, err := keyDigest(o.Certificate, hostOf(route))
	return err
}

// Grant signs the certificate for a NATS server at address, with the authority in dir. Where NATS was set up without one it is created, and agents trust both it and what they trusted before. Durable
// on return.
func Grant(dir, address string, request []byte) (g Granted, err error) {
	host, _, err := Parse(address)
	if err != nil {
		return g, err
	}
	c, err := Load(dir)
	if err != nil {
		return g, err
	}
	if _, err := Authorize(dir); err != nil {
		return g, err
	}
	if g.AuthorityKey, err = os.ReadFile(filepath.Join(dir, authorityKeyFile)); err == nil {
		g.Authority, err = os.ReadFile(filepath.Join(dir, authorityFile))
	}
	if err != nil {
		return g, err
	}
	if g.Certificate, err = sign(g.Authority, g.AuthorityKey, request, host); err != nil {
		return Granted{}, err
	}
	g.Issuer = c.Issuer
	return g, nil
}

// Authorize creates the authority in dir, unless there is one: created reports that, and that agents don't trust it before they have heard of it. Durable on return.
func Authorize(dir string) (created bool, err error) {
	there, err := vfs.Exists(vfs.OS{}, filepath.Join(dir, authorityKeyFile))
	if err != nil || there {
		return false, err
	}
	before, err := os.ReadFile(filepath.Join(dir, authorityFile))
	if err != nil {
		return false, err
	}
	cert, key, err := newAuthority()
	if err != nil {
		return false, err
	}
	// The authority's certificate is the first one of the file, and is there before its key is: after a crash in between another one is added.
	return true, writeFiles(dir, []file{{authorityFile, slices.Concat(cert, before)}, {authorityKeyFile, key}})
}

// Accept writes what was granted to dir, where Prepare has generated the keys. Durable on return.
func Accept(dir string, g Granted) error {
	c, err := read(dir)
	if err != nil {
		return err
	}
	if _, err := publicOf(g.Issuer); err != nil {
		return fault.New(fault.Refused, "", "the other hub's answer is not complete")
	}
	c.Issuer = g.Issuer
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return writeFiles(dir, []file{{authorityFile, g.Authority}, {authorityKeyFile, g.AuthorityKey}, {certificateFile, g.Certificate}, {credentialsFile, text}})
}

// Configure writes the configuration of the NATS server named own, one of all, to dir. Its store is the folder store. retired are the users of hubs that were removed. changed reports that the NATS server
// has to read it. Durable on return.
func Configure(dir, store, own string, all []Server, retired []string) (path string, changed bool, err error) {
	path = filepath.Join(dir, configFile)
	c, err := Load(dir)
	if err != nil {
		return path, false, err
	}
	issuer, err := publicOf(c.Issuer)
	if err != nil {
		return path, false, err
	}
	at := slices.IndexFunc(all, func(s Server) bool { return s.Name == own })
	if at < 0 {
		return path, false, fault.New(fault.Refused, "", "%s is not one of the hubs", own)
	}
	var peers []string
	for _, s := range all {
		peers = append(peers, strings.TrimSpace(s.Certificate)+"\n")
	}
	slices.Sort(peers) // the same hubs in another order change nothing
	for _, f := range []file{{peersFile, []byte(strings.Join(peers, ""))}, {configFile, []byte(configuration(dir, store, all[at], all, retired, issuer))}} {
		if was, err := os.ReadFile(filepath.Join(dir, f.name)); err == nil && bytes.Equal(was, f.data) {
			continue
		}
		changed = true
		if err := writeFiles(dir, []file{f}); err != nil {
			return path, changed, err
		}
	}
	return path, changed, nil
}

// ConfigureAlone writes the configuration of a NATS server without others to dir, whose keys and certificate stay. address is tls://HOST:PORT. Durable on return.
func ConfigureAlone(dir, address string) (path string, err error) {
	return filepath.Join(dir, configFile), configureAlone(dir, dir, address)
}

// configureAlone is ConfigureAlone for a folder that will be named final.
func configureAlone(dir, final, address string) error {
	c, err := Load(dir)
	if err != nil {
		return err
	}
	own := Server{Address: address}
	issuer := ""
	for _, k := range []struct {
		seed   string
		public *string
	}{{c.Hub, &own.Users.Hub}, {c.System, &own.Users.System}, {c.Issuer, &issuer}} {
		if *k.public, err = publicOf(k.seed); err != nil {
			return err
		}
	}
	return writeFiles(dir, []file{{configFile, []byte(configuration(final, "", own, nil, nil, issuer))}})
}

// listening finds the address in a configuration, clustered the part that only one of several servers has.
var (
	listening = regexp.MustCompile(`(?m)^listen: "([^"]+)"$`)
	clustered = regexp.MustCompile(`(?m)^cluster \{$`)
)

// Restored makes the NATS server whose folder was restored from a backup one without others, if it was one of several: what is restored is a server without others, which must not reach the NATS servers
// of the hubs that the backup was made of. The folder will be named final. Durable on return.
func Restored(dir, final string) error {
	text, err := os.ReadFile(filepath.Join(dir, configFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	at := listening.FindSubmatch(text)
	if at == nil || !clustered.Match(text) {
		return nil
	}
	return configureAlone(dir, final, "tls://"+string(at[1]))
}
