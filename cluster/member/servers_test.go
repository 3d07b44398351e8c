package member

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/cluster"
	"corpus-git/fleet/broker"
	"corpus-git/internal/fault"
	"corpus-git/layout"
)

// local returns a hub whose addresses are on this machine.
func local(t *testing.T, name string) Member {
	t.Helper()
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		return l.Addr().String()
	}
	return Member{Hub: cluster.Hub{Name: name, SSH: free(), NATS: "tls://" + free()}, Route: free()}
}

// runs starts the NATS server beside a hub.
func runs(t *testing.T, state layout.State) *server.Server {
	t.Helper()
	opts, err := server.ProcessConfigFile(filepath.Join(state.NATS(), "nats.conf"))
	require.NoError(t, err)
	opts.NoSigs, opts.NoLog = true, true
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// joins has a machine join a, and returns its state.
func joins(t *testing.T, a *Admission, own, m Member) layout.State {
	t.Helper()
	state := layout.State(filepath.Join(t.TempDir(), m.Name))
	_, _, err := a.Add(own, m)
	require.NoError(t, err)
	said, err := broker.Prepare(state.NATS(), m.NATS, m.Route)
	require.NoError(t, err)
	got, err := a.Admit(m.Name, Request{said})
	require.NoError(t, err)
	require.NoError(t, broker.Accept(state.NATS(), got.Granted))
	require.NoError(t, writeJSON(state, state.ClusterSelf(), Self{Name: m.Name}))
	_, err = a.Joined(m.Name)
	require.NoError(t, err)
	return state
}

// learns gives another hub the list of a, as the log does.
func learns(t *testing.T, a *Admission, states ...layout.State) {
	t.Helper()
	l, err := Load(a.State)
	require.NoError(t, err)
	for _, state := range states {
		require.NoError(t, writeJSON(state, state.ClusterHubs(), l))
	}
}

// log returns a connection to the log.
func log(t *testing.T, state layout.State) jetstream.JetStream {
	t.Helper()
	dial, err := Connect(state)
	require.NoError(t, err)
	c, err := dial(nats.Timeout(20 * time.Second))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	js, err := jetstream.New(c)
	require.NoError(t, err)
	return js
}

// until tries f again until it succeeds: nobody answers while there is no leader.
func until(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err = f(ctx)
		return err == nil
	}, 2*time.Minute, 50*time.Millisecond)
	require.NoError(t, err)
}

// The founder leads the cluster that its list describes, over the connections of Connect, and ships what changes.
func TestTheFounderLeads(t *testing.T) {
	a := founder(t)
	own := local(t, "hub1")
	states := []layout.State{a.State, joins(t, a, own, local(t, "hub2")), joins(t, a, own, local(t, "hub3"))}
	learns(t, a, states[1:]...)
	for _, state := range states {
		_, _, err := Configure(state)
		require.NoError(t, err)
		runs(t, state)
	}
	l, err := Load(a.State)
	require.NoError(t, err)
	dial, err := Connect(a.State)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := cluster.Open(ctx, cluster.Config{Self: l.Hubs[0].Hub, Hubs: func() ([]cluster.Hub, error) { return l.Known(), nil }, Connect: dial, Root: layout.Root(t.TempDir()), State: a.State, Founder: true, Log: zerolog.Nop()})
	require.NoError(t, err)
	defer c.Close()
	epoch, err := c.Follow(ctx)
	require.NoError(t, err)
	require.NotZero(t, epoch)
	lead, err := c.Lead(ctx)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(a.State.Path(), "bundle_signers"), make([]byte, 3<<20), 0o600))
	require.NoError(t, lead.Barrier(ctx, ""))
	all, _, err := c.Status(ctx)
	require.NoError(t, err)
	require.Len(t, all, Size)
	require.Equal(t, cluster.Leads, all[0].Does)
	require.NoError(t, lead.Close(ctx))
}

// Three hubs that have joined have a log in common. One that is lost is removed, and replaced by another machine, which gets its part of the log.
func TestReplaceAHub(t *testing.T) {
	a := founder(t)
	own := local(t, "hub1")
	second, third := local(t, "hub2"), local(t, "hub3")
	states := []layout.State{a.State, joins(t, a, own, second), joins(t, a, own, third)}
	learns(t, a, states[1:]...)
	var servers []*server.Server
	for _, state := range states {
		_, _, err := Configure(state)
		require.NoError(t, err)
		servers = append(servers, runs(t, state))
	}
	js := log(t, states[1])
	until(t, func(ctx context.Context) error {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "HUBS", Subjects: []string{"hubs.log"}, Replicas: Size, Storage: jetstream.FileStorage})
		return err
	})
	until(t, func(ctx context.Context) error {
		_, err := js.Publish(ctx, "hubs.log", []byte("one"))
		return err
	})

	servers[2].Shutdown()
	servers[2].WaitForShutdown()
	_, err := a.Remove("hub3")
	require.NoError(t, err)
	until(t, func(ctx context.Context) error { return Forget(ctx, a.State, "hub3") })
	until(t, func(ctx context.Context) error { return Forget(ctx, a.State, "hub9") }) // was never there
	require.NoError(t, Reload(t.Context(), a.State))
	learns(t, a, states[1])
	changed, err := Refresh(t.Context(), states[1])
	require.NoError(t, err)
	require.True(t, changed)
	changed, err = Refresh(t.Context(), states[1])
	require.NoError(t, err)
	require.False(t, changed)
	fourth := joins(t, a, own, local(t, "hub4"))
	learns(t, a, states[1], fourth)
	// The other servers accept its users after a restart only: NATS does not read the list of those again that it does not ask the hub about.
	err = Reload(t.Context(), a.State)
	require.Equal(t, fault.Busy, fault.KindOf(err))
	require.NotContains(t, err.Error(), "old=")
	for i, state := range states[:2] {
		_, _, err := Configure(state)
		require.NoError(t, err)
		servers[i].Shutdown()
		servers[i].WaitForShutdown()
		servers[i] = runs(t, state)
	}
	_, _, err = Configure(fourth)
	require.NoError(t, err)
	runs(t, fourth)
	js = log(t, fourth)
	until(t, func(ctx context.Context) error {
		s, err := js.Stream(ctx, "HUBS")
		if err != nil {
			return err
		}
		info, err := s.Info(ctx)
		if err != nil {
			return err
		}
		current := 0
		for _, r := range info.Cluster.Replicas {
			if r.Current && r.Name != "hub3" {
				current++
			}
		}
		if current != Size-1 || info.State.Msgs != 1 {
			return fault.New(fault.Busy, "", "replicas: %+v, messages: %d", info.Cluster, info.State.Msgs)
		}
		return nil
	})
}
