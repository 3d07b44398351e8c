package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/cluster/natstest"
	"corpus-git/cluster/replica"
	"corpus-git/cluster/stream"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
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

// A hub that copies shows how far it is, and no longer that the leader did not answer; how an earlier copy failed is shown until one has succeeded.
func TestCopyInProgress(t *testing.T) {
	servers := natstest.Start(t)
	here, err := servers.Connect(0)
	require.NoError(t, err)
	t.Cleanup(here.Close)
	log, err := stream.Open(t.Context(), here)
	require.NoError(t, err)
	root := layout.Root(t.TempDir())
	files := replica.Files{FS: vfs.OS{}, Root: root, State: root.DefaultState()}
	c := &Cluster{c: Config{Self: Hub{Name: "hub1"}, State: files.State, Log: zerolog.Nop()}, log: log, files: files}
	c.heard, c.heardAt = beat{Hub: Hub{Name: "hub2"}}, time.Now().Add(time.Hour)
	err = c.copyFrom(t.Context(), "hub2")
	require.ErrorIs(t, err, nats.ErrNoResponders)
	c.setTrouble(err)

	type seen struct {
		trouble error
		copied  int64
	}
	at := make(chan seen, 10)
	_, err = here.Subscribe("hubs."+copyTopic+"hub2", func(m *nats.Msg) {
		var q copyRequest
		_ = json.Unmarshal(m.Data, &q)
		answer := `n`
		switch {
		case q.Op == copyBegin:
			answer = `o{"seq":1,"epoch":1}`
		case q.Op == copyItems && q.Name == "state":
			answer = `o{"items":[{"name":"state/a","kind":"file","mode":384},{"name":"state/b","kind":"file","mode":384}]}`
		case q.Op == copyEnd:
			c.mu.Lock()
			at <- seen{c.trouble, c.copied}
			c.mu.Unlock()
			answer = `o{"seq":2,"epoch":1}`
		}
		_ = m.Respond([]byte(answer))
	})
	require.NoError(t, err)
	require.NoError(t, c.copyFrom(t.Context(), "hub2"))
	require.Equal(t, seen{nil, 2}, <-at)
	require.Zero(t, c.copied)
	require.FileExists(t, filepath.Join(string(files.State), "b"))

	full := fmt.Errorf("change of %q: %w", "state/b", syscall.ENOSPC)
	c.setTrouble(full)
	require.NoError(t, c.copyFrom(t.Context(), "hub2"))
	require.Equal(t, seen{full, 2}, <-at)
}

// A hub whose disk is full does not copy again at once: the hub that leads looks at all its files for that, and pushes wait meanwhile.
func TestPauseAfter(t *testing.T) {
	require.Equal(t, fullAgain, pauseAfter(fmt.Errorf("change of the database: %w", syscall.ENOSPC)))
	require.Equal(t, again, pauseAfter(errors.New("hub1 no longer leads")))
}
