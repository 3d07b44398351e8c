// Package natstest runs three NATS servers with JetStream in the process of a test, as hubs have them beside them.
//
// It owns the servers and their folder in the test's temporary one. Only tests import it, because the server is never linked into the program (ADR 45).
//
// Invariants: a server that is started again has the addresses and the store that it had. The end of the test stops all.
//
// A crash leaves files in the test's temporary folder.
package natstest

import (
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// Servers are three servers, of which some may be stopped.
type Servers struct {
	t       testing.TB
	dir     string
	names   []string
	clients []int
	routes  []int
	mu      sync.Mutex
	running []*server.Server
}

const loopback = "127.0.0.1"

// Start starts three servers named hub1 to hub3.
func Start(t testing.TB) *Servers {
	t.Helper()
	s := &Servers{t: t, dir: t.TempDir(), names: []string{"hub1", "hub2", "hub3"}, running: make([]*server.Server, 3)}
	s.clients, s.routes = freePorts(t, 3), freePorts(t, 3)
	t.Cleanup(func() {
		for i := range s.names {
			s.Stop(i)
		}
	})
	for i := range s.names {
		s.Restart(i)
	}
	return s
}

// freePorts returns ports that nothing listens on.
func freePorts(t testing.TB, n int) (ports []int) {
	var open []net.Listener
	for range n {
		l, err := net.Listen("tcp", loopback+":0")
		require.NoError(t, err)
		open = append(open, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	for _, l := range open {
		require.NoError(t, l.Close())
	}
	return ports
}

func at(scheme string, port int) *url.URL {
	return &url.URL{Scheme: scheme, Host: (&net.TCPAddr{IP: net.ParseIP(loopback), Port: port}).String()}
}

// Name returns the name of a server.
func (s *Servers) Name(i int) string { return s.names[i] }

// Restart starts a server that is stopped.
func (s *Servers) Restart(i int) {
	s.t.Helper()
	o := &server.Options{
		ServerName: s.names[i], Host: loopback, Port: s.clients[i], NoSigs: true, NoLog: true, JetStream: true, StoreDir: filepath.Join(s.dir, s.names[i]), SyncAlways: true,
		JetStreamMaxMemory: 1 << 20, JetStreamMaxStore: 1 << 40,
		Cluster: server.ClusterOpts{Name: "hubs", Host: loopback, Port: s.routes[i]},
	}
	for j, port := range s.routes {
		if j != i {
			o.Routes = append(o.Routes, at("nats-route", port))
		}
	}
	n, err := server.NewServer(o)
	require.NoError(s.t, err)
	go n.Start()
	require.True(s.t, n.ReadyForConnections(time.Minute))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[i] = n
}

// Stop stops a server, if it runs.
func (s *Servers) Stop(i int) {
	s.mu.Lock()
	n := s.running[i]
	s.running[i] = nil
	s.mu.Unlock()
	if n != nil {
		n.Shutdown()
		n.WaitForShutdown()
	}
}

// Connect connects to the servers, the numbered one first.
func (s *Servers) Connect(i int, opts ...nats.Option) (*nats.Conn, error) {
	urls := at("nats", s.clients[i]).String()
	for j, port := range s.clients {
		if j != i {
			urls += "," + at("nats", port).String()
		}
	}
	return nats.Connect(urls, append([]nats.Option{nats.DontRandomize(), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond), nats.Name(s.names[i])}, opts...)...)
}
