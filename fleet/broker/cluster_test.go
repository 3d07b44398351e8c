package broker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
)

// free returns an address of this machine on which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// machine is a hub with a NATS server.
type machine struct {
	dir, store string
	Server
	Own
	run *server.Server
}

func (m *machine) start(t *testing.T) {
	t.Helper()
	opts, err := server.ProcessConfigFile(filepath.Join(m.dir, configFile))
	require.NoError(t, err)
	opts.NoSigs, opts.NoLog = true, true
	m.run, err = server.NewServer(opts)
	require.NoError(t, err)
	m.run.Start()
	t.Cleanup(func() {
		m.run.Shutdown()
		m.run.WaitForShutdown()
	})
}

// connect connects with a key of a machine to the NATS servers.
func connect(t *testing.T, ca []byte, seed, at string) (*nats.Conn, error) {
	t.Helper()
	pair, err := nkeys.FromSeed([]byte(seed))
	require.NoError(t, err)
	name, err := pair.PublicKey()
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca))
	return nats.Connect(at, nats.Nkey(name, pair.Sign), nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}), nats.Timeout(20*time.Second))
}

// trio sets up three machines; the first one has NATS already.
func trio(t *testing.T) (all []*machine, servers []Server) {
	t.Helper()
	for _, name := range []string{"hub1", "hub2", "hub3"} {
		m := &machine{dir: filepath.Join(t.TempDir(), "nats"), store: t.TempDir(), Server: Server{Name: name, Address: "tls://" + free(t), Route: free(t)}}
		if name == "hub1" {
			_, err := Setup(m.dir, m.Address)
			require.NoError(t, err)
		}
		var err error
		m.Own, err = Prepare(m.dir, m.Address, m.Route)
		require.NoError(t, err)
		again, err := Prepare(m.dir, m.Address, m.Route)
		require.NoError(t, err)
		require.Equal(t, m.Own.Users, again.Users)
		require.Equal(t, m.Own.Certificate, again.Certificate)
		require.NoError(t, m.Check(m.Route))
		if name != "hub1" {
			_, err := Load(m.dir)
			require.Equal(t, fault.Refused, fault.KindOf(err))
			g, err := Grant(all[0].dir, m.Address, m.Request)
			require.NoError(t, err)
			require.NoError(t, Accept(m.dir, g))
		}
		m.Server.Users, m.Server.Certificate = m.Own.Users, m.Own.Certificate
		all, servers = append(all, m), append(servers, m.Server)
	}
	for _, m := range all {
		_, changed, err := Configure(m.dir, m.store, m.Name, servers, nil)
		require.NoError(t, err)
		require.True(t, changed)
		other := slices.Clone(servers)
		slices.Reverse(other)
		file, changed, err := Configure(m.dir, m.store, m.Name, other, nil)
		require.NoError(t, err)
		require.False(t, changed)
		read, err := server.ProcessConfigFile(file)
		require.NoError(t, err)
		require.Len(t, read.Routes, 2)
		require.Less(t, read.Routes[0].String(), read.Routes[1].String(), "a reload would change the list while it is used")
	}
	return all, servers
}

// Three NATS servers with the configurations that are written form a cluster with a replicated log, in the account of the hubs only. A hub that is removed reaches neither the log nor the other servers.
func TestThreeServers(t *testing.T) {
	all, servers := trio(t)
	for _, m := range all {
		m.start(t)
	}
	c1, err := Load(all[0].dir)
	require.NoError(t, err)
	log, err := connect(t, c1.CA, c1.Log, all[0].Address)
	require.NoError(t, err)
	defer log.Close()
	js, err := jetstream.New(log)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stream jetstream.Stream
	require.Eventually(t, func() bool {
		one, cancel := context.WithTimeout(ctx, time.Second) // who asks before there is a leader is not answered
		defer cancel()
		stream, err = js.CreateStream(one, jetstream.StreamConfig{Name: "HUBS", Subjects: []string{"hubs.log"}, Replicas: 3, Storage: jetstream.FileStorage})
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	_, err = js.Publish(ctx, "hubs.log", make([]byte, 250_000))
	require.NoError(t, err)
	require.Len(t, stream.CachedInfo().Cluster.Replicas, 2)
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "SMALL", Replicas: 1, Storage: jetstream.MemoryStorage})
	require.Error(t, err, "the account has no memory")

	// The user that talks to agents has no log.
	other, err := connect(t, c1.CA, c1.Hub, all[0].Address)
	require.NoError(t, err)
	defer other.Close()
	ojs, err := jetstream.New(other)
	require.NoError(t, err)
	_, err = ojs.Stream(ctx, "HUBS")
	require.Error(t, err)
	// It is asked about users that are not in the configuration; here it refuses all.
	_, err = other.Subscribe("$SYS.REQ.USER.AUTH", func(m *nats.Msg) { _ = m.Respond([]byte("no")) })
	require.NoError(t, err)

	// A hub is removed, one that does not lead the log: its user is refused, and its server is out of the cluster, without a restart of the others.
	gone := 2
	if info, err := stream.Info(ctx); err == nil && info.Cluster.Leader == servers[gone].Name {
		gone = 1
	}
	stay := slices.Delete(slices.Clone(servers), gone, gone+1)
	c3, err := Load(all[gone].dir)
	require.NoError(t, err)
	third, err := connect(t, c3.CA, c3.Log, all[0].Address)
	require.NoError(t, err)
	defer third.Close()
	for i, m := range all {
		if i == gone {
			continue
		}
		_, changed, err := Configure(m.dir, m.store, m.Name, stay, servers[gone].Users.All())
		require.NoError(t, err)
		require.True(t, changed)
		require.NoError(t, m.run.Reload())
	}
	_, err = connect(t, c3.CA, c3.Log, all[0].Address)
	require.ErrorIs(t, err, nats.ErrAuthorization)
	require.Eventually(t, func() bool { return !third.IsConnected() && all[gone].run.NumRoutes() == 0 }, time.Minute, 20*time.Millisecond)
	_, err = js.Publish(ctx, "hubs.log", []byte("two are a majority"))
	require.NoError(t, err)
}

// A fleet whose NATS was set up without an authority gets one: what was trusted stays trusted.
func TestAuthorityOfAnOlderSetup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	_, err := Setup(dir, "tls://hub.example.org:4222")
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, authorityKeyFile)))
	before, err := Load(dir)
	require.NoError(t, err)
	created, err := Authorize(dir)
	require.NoError(t, err)
	require.True(t, created)
	created, err = Authorize(dir)
	require.NoError(t, err)
	require.False(t, created)
	request, key, err := newRequest("hub2.example.org")
	require.NoError(t, err)
	g, err := Grant(dir, "tls://hub2.example.org:4222", request)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(g.Certificate, key)
	require.NoError(t, err)
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, certificateFile), filepath.Join(dir, keyFile))
	require.NoError(t, err)
	after, err := Load(dir)
	require.NoError(t, err)
	require.NotEqual(t, before.CA, after.CA)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(after.CA))
	for host, leaf := range map[string]*x509.Certificate{"hub2.example.org": pair.Leaf, "hub.example.org": own.Leaf} {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host})
		require.NoError(t, err, host)
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "hub.example.org"})
	require.Error(t, err, "a hub has no certificate for another one's host")
}

// What another machine says of itself is not believed.
func TestCheckOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	own, err := Prepare(dir, "tls://hub2.example.org:4222", "hub2.example.org:6222")
	require.NoError(t, err)
	require.NoError(t, own.Check("hub2.example.org:6222"))
	for name, change := range map[string]func(o *Own){
		"no key":          func(o *Own) { o.Users.Log = "" },
		"an account":      func(o *Own) { o.Users.Hub = "A" + o.Users.Hub[1:] },
		"more than a key": func(o *Own) { o.Users.System += " } ] } SYS2 { users: [ {" },
		"no certificate":  func(o *Own) { o.Certificate = "" },
		"two":             func(o *Own) { o.Certificate += o.Certificate },
	} {
		bad := own
		change(&bad)
		require.Equal(t, fault.Refused, fault.KindOf(bad.Check("hub2.example.org:6222")), name)
	}
	require.Equal(t, fault.Refused, fault.KindOf(own.Check("hub1.example.org:6222")), "a certificate for another host")
	ca, _, err := newAuthority()
	require.NoError(t, err)
	own.Certificate = string(ca)
	require.Equal(t, fault.Refused, fault.KindOf(own.Check("hub2.example.org:6222")))
	_, err = Grant(dir, "tls://hub2.example.org:4222", own.Request)
	require.Equal(t, fault.Refused, fault.KindOf(err), "who has not joined signs nothing")
	changed, err := Prepare(dir, "tls://hub2.example.org:4222", "other.example.org:6222")
	require.NoError(t, err)
	require.NoError(t, changed.Check("other.example.org:6222"))
}

func TestListOfAddresses(t *testing.T) {
	got, err := Addresses("tls://a:4222, tls://b:4222,tls://a:4222")
	require.NoError(t, err)
	require.Equal(t, []string{"tls://a:4222", "tls://b:4222"}, got)
	for _, bad := range []string{"", "tls://a:4222,", "tls://a:4222,b:4222", "tls://a:4222 tls://b:4222"} {
		_, err := Addresses(bad)
		require.Equal(t, fault.Usage, fault.KindOf(err), strconv.Quote(bad))
	}
}

// A machine whose clock is months behind accepts the certificates that were just made.
func TestCertificatesForClocksThatAreBehind(t *testing.T) {
	cert, _, err := newRoute("hub2.example.org")
	require.NoError(t, err)
	block, _ := pem.Decode(cert)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(c)
	_, err = c.Verify(x509.VerifyOptions{Roots: pool, DNSName: "hub2.example.org", CurrentTime: time.Now().AddDate(0, -6, 0)})
	require.NoError(t, err)
}
