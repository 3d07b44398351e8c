package cluster

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"corpus-git/cluster/natstest"
	"corpus-git/cluster/stream"
)

// A request of a hub that copies is sent again if it, or its answer, is lost with a connection; not to a hub that leads no more.
func TestALostRequestIsSentAgain(t *testing.T) {
	servers := natstest.Start(t)
	here, err := servers.Connect(0)
	require.NoError(t, err)
	t.Cleanup(here.Close)
	there, err := servers.Connect(1)
	require.NoError(t, err)
	t.Cleanup(there.Close)
	log, err := stream.Open(t.Context(), here)
	require.NoError(t, err)
	var asked atomic.Int32
	_, err = there.Subscribe("hubs."+copyTopic+"hub2", func(m *nats.Msg) {
		if asked.Add(1) > 1 {
			_ = m.Respond([]byte("osum"))
		}
	})
	require.NoError(t, err)
	require.NoError(t, there.Flush())
	var leads atomic.Bool
	leads.Store(true)
	r := remote{log: log, leader: "hub2", hub: "hub1", heard: func() (Hub, uint64, bool) { return Hub{Name: "hub2"}, 1, leads.Load() }}
	sum, err := r.Sum(t.Context(), "state/x")
	require.NoError(t, err)
	require.Equal(t, "sum", string(sum))
	require.EqualValues(t, 2, asked.Load())

	leads.Store(false)
	_, err = r.Sum(t.Context(), "state/x")
	require.ErrorContains(t, err, "hub2 no longer leads")
	require.EqualValues(t, 2, asked.Load())
}

// A hub whose disk is full does not copy again at once: the hub that leads looks at all its files for that, and pushes wait meanwhile.
func TestPauseAfter(t *testing.T) {
	require.Equal(t, fullAgain, pauseAfter(fmt.Errorf("change of the database: %w", syscall.ENOSPC)))
	require.Equal(t, again, pauseAfter(errors.New("hub1 no longer leads")))
}
