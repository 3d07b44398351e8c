package machines

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/db"
)

// TestDialOverDrop holds a push that came before its node's agent: the join drops the streams that were offered before, and who waits for
// one gets the first that the agent offers after it.
func TestDialOverDrop(t *testing.T) {
	f := newFleet(t)
	synctest.Test(t, func(t *testing.T) {
		type dialed struct {
			link io.ReadWriteCloser
			err  error
		}
		done := make(chan dialed)
		go func() {
			l, err := f.dial(t.Context(), "web1")
			done <- dialed{l, err}
		}()
		synctest.Wait() // dial waits
		f.Drop("web1")
		go func() {
			_ = f.Attach(t.Context(), "web1", "", func() error { return nil }, strings.NewReader("hello"), io.Discard)
		}()
		got := <-done
		require.NoError(t, got.err)
		text, err := io.ReadAll(got.link)
		require.NoError(t, err)
		require.Equal(t, "hello", string(text))
		require.NoError(t, got.link.Close())
	})
}

// TestDialAfterRestart holds a rollout that goes on after the hub's restart: agents are still on their way then, and one that has come and gone is not waited for as long.
func TestDialAfterRestart(t *testing.T) {
	f := newFleet(t)
	synctest.Test(t, func(t *testing.T) {
		f.Started = time.Now()
		wait := func() time.Duration {
			begun := time.Now()
			_, err := f.dial(t.Context(), "web1")
			require.ErrorContains(t, err, "the agent of web1 is not connected")
			return time.Since(begun)
		}
		require.Equal(t, firstDialTimeout, wait())
		require.Equal(t, dialTimeout, wait(), "a while after the start")
		f.Started = time.Now()
		ctx, end := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			gone <- f.Attach(ctx, "web1", "", func() error { return nil }, strings.NewReader(""), io.Discard)
		}()
		synctest.Wait()
		end()
		require.ErrorIs(t, <-gone, context.Canceled)
		require.Equal(t, dialTimeout, wait())
	})
}

func newFleet(t *testing.T) *Fleet {
	t.Helper()
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	s, err := fleet.Open(t.Context(), d)
	require.NoError(t, err)
	require.NoError(t, s.Add(t.Context(), fleet.Node{Name: "web1", Agent: true, Added: time.Now()}))
	return &Fleet{Store: s}
}
