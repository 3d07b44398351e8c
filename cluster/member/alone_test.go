package member

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"corpus-git/fleet/broker"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// The last hub becomes a server without others, whatever it did, unless its state is a part of a copy. Killed before its end, it is done again.
func TestAlone(t *testing.T) {
	nothing := func() error { return nil }
	a := founder(t)
	own := local(t, "hub1")
	_, _, err := Alone(t.Context(), a.State, nothing)
	require.Equal(t, fault.Refused, fault.KindOf(err), "it has no others")
	state := joins(t, a, own, local(t, "hub2"))
	_, _, err = Alone(t.Context(), a.State, nothing)
	require.Equal(t, fault.Refused, fault.KindOf(err), "they share nothing yet")
	joins(t, a, own, local(t, "hub3"))
	learns(t, a, state)
	config, _, err := Configure(state)
	require.NoError(t, err)
	// A restored backup has no others, either: its NATS server has the same configuration, in the folder that it will have.
	restored := t.TempDir()
	require.NoError(t, os.CopyFS(restored, os.DirFS(state.NATS())))
	require.NoError(t, broker.Restored(restored, state.NATS()))
	want, err := os.ReadFile(filepath.Join(restored, filepath.Base(config)))
	require.NoError(t, err)
	require.NoError(t, broker.Restored(restored, "elsewhere"), "that of one server stays as it is")
	require.NoError(t, broker.Restored(t.TempDir(), "without NATS"))
	write := func(path, text string) {
		require.NoError(t, vfs.MkdirAll(vfs.OS{}, filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(filepath.Join(state.JetStream(), "log"), "x")
	write(state.Clean(), "")
	for _, position := range []string{"", `{"applied":1,"copy":true}`, `{"applied":1,"until":2}`} {
		if position != "" {
			write(state.ClusterPosition(), position)
		}
		_, _, err = Alone(t.Context(), state, nothing)
		require.Equal(t, fault.Refused, fault.KindOf(err), position)
		require.ErrorContains(t, err, "a part of a copy", position)
	}
	write(state.ClusterPosition(), `{"applied":2,"until":2,"led":true}`)
	l, err := Load(state)
	require.NoError(t, err)
	beside, err := net.Listen("tcp", strings.TrimPrefix(l.Hubs[l.Find("hub2")].NATS, "tls://"))
	require.NoError(t, err)
	_, _, err = Alone(t.Context(), state, nothing)
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "is running")
	require.FileExists(t, filepath.Join(state.JetStream(), "log"))
	require.NoError(t, beside.Close())
	failed := errors.New("no space")
	_, _, err = Alone(t.Context(), state, func() error { return failed })
	require.ErrorIs(t, err, failed)
	require.FileExists(t, state.ClusterSelf())

	calls := 0
	m, at, err := Alone(t.Context(), state, func() error { calls++; return nil })
	require.NoError(t, err)
	require.Equal(t, 1, calls)
	require.Equal(t, "hub2", m.Name)
	require.Equal(t, config, at)
	for _, dir := range []string{state.NATS(), restored} {
		got, err := os.ReadFile(filepath.Join(dir, filepath.Base(config)))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	for _, path := range []string{state.Cluster(), state.JetStream(), state.Clean()} {
		require.NoFileExists(t, path)
		require.NoDirExists(t, path)
	}
	opts, err := server.ProcessConfigFile(config)
	require.NoError(t, err)
	require.False(t, opts.JetStream)
	require.Zero(t, opts.Cluster.Port)
	require.Len(t, opts.Nkeys, 2)
	runs(t, state)

	// Others join it again.
	next := &Admission{State: state}
	require.NoError(t, os.WriteFile(state.HostKey(), nil, 0o600))
	require.NoError(t, os.WriteFile(state.HostKeyECDSA(), nil, 0o600))
	var states []layout.State
	for _, name := range []string{"hub1", "hub3"} {
		states = append(states, joins(t, next, m, local(t, name)))
	}
	learns(t, next, states...)
	l, err = Load(state)
	require.NoError(t, err)
	require.True(t, l.Formed)
}

// A hub is refused by the NATS server of another one that was set up anew, and has another authority; where a hub runs, it refuses keys that are not in its list. One that is not there refuses nobody.
func TestRefusedBy(t *testing.T) {
	a := founder(t)
	own := local(t, "hub1")
	hub2, hub3 := local(t, "hub2"), local(t, "hub3")
	state := joins(t, a, own, hub2)
	lost := joins(t, a, own, hub3)
	learns(t, a, state, lost)
	require.Empty(t, RefusedBy(t.Context(), lost))
	_, _, err := Configure(state)
	require.NoError(t, err)
	s := runs(t, state)
	require.Empty(t, RefusedBy(t.Context(), lost))
	s.Shutdown()
	s.WaitForShutdown()

	fresh := layout.State(filepath.Join(t.TempDir(), "state"))
	_, err = broker.Setup(fresh.NATS(), hub2.NATS)
	require.NoError(t, err)
	runs(t, fresh)
	require.Equal(t, []string{"hub2"}, RefusedBy(t.Context(), lost), "it has an authority of its own")
}
