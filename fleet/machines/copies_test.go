package machines

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

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
