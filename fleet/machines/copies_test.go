package machines

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
)

// agentAt is a connected agent: it offers a stream, and another one when it is closed, until end.
func agentAt(t *testing.T, f *Fleet, from, process string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f.Announce("web1", from, process)
	go func() {
		for ctx.Err() == nil {
			_ = f.Attach(ctx, "web1", from, func() error { return nil }, strings.NewReader(from), io.Discard)
		}
	}()
	synctest.Wait()
	return func() {
		cancel()
		synctest.Wait()
	}
}

// dialed returns the connection of the agent to which an order goes.
func dialed(t *testing.T, f *Fleet) string {
	t.Helper()
	l, err := f.dial(t.Context(), "web1")
	require.NoError(t, err)
	text, err := io.ReadAll(l)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	synctest.Wait()
	return string(text)
}

// TestCopiedKey holds a node whose machine was copied with its agent: it gets no orders until one of the two has gone.
func TestCopiedKey(t *testing.T) {
	f := newFleet(t)
	synctest.Test(t, func(t *testing.T) {
		endOwn := agentAt(t, f, "10.0.0.5:1", "own")
		require.Equal(t, "10.0.0.5:1", dialed(t, f))
		endCopy := agentAt(t, f, "10.0.0.6:1", "copy")
		for range 2 {
			_, err := f.dial(t.Context(), "web1")
			require.Equal(t, fault.Refused, fault.KindOf(err))
			require.ErrorContains(t, err, "2 agents use the key of web1 at the same time, from 10.0.0.5:1 and 10.0.0.6:1")
		}
		f.Drop("web1") // as an upgrade does; they offer their streams again, over the same connections
		synctest.Wait()
		_, err := f.dial(t.Context(), "web1")
		require.Equal(t, fault.Refused, fault.KindOf(err))
		endCopy()
		require.Equal(t, "10.0.0.5:1", dialed(t, f))
		// The copy comes back, and the own one goes.
		endCopy = agentAt(t, f, "10.0.0.6:2", "copy")
		_, err = f.dial(t.Context(), "web1")
		require.Equal(t, fault.Refused, fault.KindOf(err))
		endOwn()
		require.Equal(t, "10.0.0.6:2", dialed(t, f))
		endCopy()
	})
}

// TestRestartedAgent holds an agent that starts again while the hub still has the connection of before, which nobody answers any more: its orders go to the new one.
func TestRestartedAgent(t *testing.T) {
	f := newFleet(t)
	synctest.Test(t, func(t *testing.T) {
		f.Announce("web1", "10.0.0.5:1", "before")
		gone := make(chan struct{})
		go func() {
			_ = f.Attach(t.Context(), "web1", "10.0.0.5:1", func() error { return nil }, strings.NewReader("dead"), io.Discard)
			close(gone)
		}()
		synctest.Wait()
		end := agentAt(t, f, "10.0.0.5:2", "after")
		<-gone
		require.Equal(t, "10.0.0.5:2", dialed(t, f))
		// The same agent over a further connection, and one of an older release, which does not say who it is.
		endAgain := agentAt(t, f, "10.0.0.5:3", "after")
		end()
		require.Equal(t, "10.0.0.5:3", dialed(t, f))
		endOld := agentAt(t, f, "10.0.0.5:4", "")
		endAgain()
		require.Equal(t, "10.0.0.5:4", dialed(t, f))
		endOld()
	})
}

// accepting is a connected agent over whose connection, of its address, the hub opens streams.
func accepting(t *testing.T, f *Fleet, c *connection, process string) {
	t.Helper()
	f.Announce("web1", c.name, process)
	ok, err := f.Accept(t.Context(), "web1", c.name, func() error { return nil }, c)
	require.NoError(t, err)
	require.True(t, ok)
}

// TestCopiedKeyAccepting is TestCopiedKey with agents over whose connections the hub opens streams, and with one of each kind: no order goes to either.
func TestCopiedKeyAccepting(t *testing.T) {
	refused := func(t *testing.T, f *Fleet, from string) {
		t.Helper()
		for range 2 {
			_, err := f.dial(t.Context(), "web1")
			require.Equal(t, fault.Refused, fault.KindOf(err))
			require.ErrorContains(t, err, "2 agents use the key of web1 at the same time, from "+from)
		}
	}
	const both = "10.0.0.5:1 and 10.0.0.6:1"
	for _, run := range []struct {
		name string
		do   func(t *testing.T, f *Fleet)
	}{
		{"accepting", func(t *testing.T, f *Fleet) {
			own, other := &connection{name: "10.0.0.5:1"}, &connection{name: "10.0.0.6:1"}
			accepting(t, f, own, "own")
			require.Equal(t, "10.0.0.5:1", dialed(t, f))
			accepting(t, f, other, "copy") // no time passes until the next order
			refused(t, f, both)
			f.drop("web1", true)
			refused(t, f, both)
			other.End("gone")
			synctest.Wait()
			require.Equal(t, "10.0.0.5:1", dialed(t, f))
			// The copy comes back, and the own one, which was replaced, goes and comes.
			again := &connection{name: "10.0.0.6:2"}
			accepting(t, f, again, "copy")
			refused(t, f, "10.0.0.5:1 and 10.0.0.6:2")
			own.End("gone")
			synctest.Wait()
			require.Equal(t, "10.0.0.6:2", dialed(t, f))
			accepting(t, f, &connection{name: "10.0.0.5:2"}, "own")
			refused(t, f, "10.0.0.5:2 and 10.0.0.6:2")
			f.Drop("web1")
			synctest.Wait()
			require.False(t, f.Connected("web1"))
			accepting(t, f, &connection{name: "10.0.0.5:3"}, "own")
			accepting(t, f, &connection{name: "10.0.0.6:3"}, "copy")
			refused(t, f, "10.0.0.5:3 and 10.0.0.6:3")
		}},
		{"in use", func(t *testing.T, f *Fleet) {
			own := &connection{name: "10.0.0.5:1"}
			accepting(t, f, own, "own")
			l, err := f.dial(t.Context(), "web1")
			require.NoError(t, err)
			accepting(t, f, &connection{name: "10.0.0.6:1"}, "copy")
			refused(t, f, both)
			require.Empty(t, own.ended, "what runs there goes on")
			require.NoError(t, l.Close())
			refused(t, f, both)
		}},
		{"accepting after offering", func(t *testing.T, f *Fleet) {
			end := agentAt(t, f, "10.0.0.5:1", "own")
			accepting(t, f, &connection{name: "10.0.0.6:1"}, "copy")
			synctest.Wait()
			refused(t, f, both)
			end()
			require.Equal(t, "10.0.0.6:1", dialed(t, f))
		}},
		{"offering after accepting", func(t *testing.T, f *Fleet) {
			own := &connection{name: "10.0.0.5:1"}
			accepting(t, f, own, "own")
			end := agentAt(t, f, "10.0.0.6:1", "copy")
			refused(t, f, both)
			own.End("gone")
			synctest.Wait()
			require.Equal(t, "10.0.0.6:1", dialed(t, f))
			end()
		}},
	} {
		t.Run(run.name, func(t *testing.T) {
			f := newFleet(t)
			synctest.Test(t, func(t *testing.T) { run.do(t, f) })
		})
	}
}

// TestRestartedAgentAccepting is TestRestartedAgent with agents over whose connections the hub opens streams: an order waits until it is known that nobody is left at the other end of the last one.
func TestRestartedAgentAccepting(t *testing.T) {
	f := newFleet(t)
	synctest.Test(t, func(t *testing.T) {
		before, after := &connection{name: "10.0.0.5:1", fails: true}, &connection{name: "10.0.0.5:2"}
		accepting(t, f, before, "before")
		accepting(t, f, after, "after")
		begun := time.Now()
		require.Equal(t, "10.0.0.5:2", dialed(t, f))
		require.Equal(t, askTimeout, time.Since(begun))
		require.Contains(t, before.ended, "another process of the agent has connected")
		// The same agent over a further connection, and one that does not say who it is.
		accepting(t, f, &connection{name: "10.0.0.5:3"}, "after")
		require.Equal(t, "10.0.0.5:3", dialed(t, f))
		accepting(t, f, &connection{name: "10.0.0.5:4"}, "")
		require.Equal(t, "10.0.0.5:4", dialed(t, f))
		require.Empty(t, after.ended)
		// One that ends while it is asked, as an agent that is stopped and started.
		g := &Fleet{Store: f.Store}
		ends := &connection{name: "10.0.0.5:5", fails: true}
		accepting(t, g, ends, "before")
		accepting(t, g, &connection{name: "10.0.0.5:6"}, "after")
		ends.End("stopped")
		begun = time.Now()
		require.Equal(t, "10.0.0.5:6", dialed(t, g))
		require.Zero(t, time.Since(begun))
	})
}
