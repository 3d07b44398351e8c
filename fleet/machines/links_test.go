package machines

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
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

// connection is an agent's connection in a test: what it opens reads as its name. One that fails does not respond.
type connection struct {
	name  string
	fails bool
	mu    sync.Mutex
	gone  []func()
	ended string
	open  int
}

func (c *connection) Peer() Peer { return c }

func (c *connection) Read([]byte) (int, error) { return 0, io.EOF }

func (c *connection) Ask(ctx context.Context) error {
	if !c.fails {
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	c.Gone(end)
	<-ctx.Done()
	return ctx.Err()
}

func (c *connection) Gone(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != "" {
		go f()
		return
	}
	c.gone = append(c.gone, f)
}

func (c *connection) End(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = why
	for _, f := range c.gone {
		go f()
	}
	c.gone = nil
}

type opened struct {
	io.Reader
	io.Writer
	of *connection
}

func (o *opened) Close() error {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.of.open--
	return nil
}

func (c *connection) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	if c.fails {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	return &opened{strings.NewReader(c.name), io.Discard, c}, nil
}

// The hub opens streams over the newest connection of an agent, some at a time, and closes what they are opened over when the key is revoked.
func TestAccept(t *testing.T) {
	f := newFleet(t)
	accept := func(c *connection) {
		ok, err := f.Accept(t.Context(), "web1", "", func() error { return nil }, c)
		require.NoError(t, err)
		require.True(t, ok)
	}
	ok, err := f.Accept(t.Context(), "web1", "", func() error { return nil }, strings.NewReader(""))
	require.NoError(t, err)
	require.False(t, ok, "it ends with the verb")
	refused := errors.New("revoked")
	_, err = f.Accept(t.Context(), "web1", "", func() error { return refused }, &connection{})
	require.ErrorIs(t, err, refused)
	require.False(t, f.Connected("web1"))
	synctest.Test(t, func(t *testing.T) {
		lost, first, second := &connection{name: "lost", fails: true}, &connection{name: "first"}, &connection{name: "second"}
		accept(first)
		require.True(t, f.Connected("web1"))
		accept(second)
		accept(lost)
		begun := time.Now()
		var links []io.Closer
		for i := range 2 * streams {
			l, err := f.dial(t.Context(), "web1")
			require.NoError(t, err)
			text, err := io.ReadAll(l)
			require.NoError(t, err)
			require.Equal(t, map[bool]string{true: "second", false: "first"}[i < streams], string(text))
			links = append(links, l)
		}
		require.Equal(t, openTimeout, time.Since(begun), "one that opens none is given up")
		require.Contains(t, lost.ended, "it opens no stream")
		ctx, end := context.WithCancelCause(t.Context())
		waiting := make(chan string)
		go func() {
			l, err := f.dial(ctx, "web1")
			if err != nil {
				waiting <- err.Error()
				return
			}
			text, _ := io.ReadAll(l)
			waiting <- string(text)
		}()
		synctest.Wait() // dial waits
		require.NoError(t, links[0].Close())
		require.NoError(t, links[0].Close(), "once only")
		require.Equal(t, "second", <-waiting)
		go func() {
			_, err := f.dial(ctx, "web1")
			waiting <- err.Error()
		}()
		synctest.Wait()
		end(errors.New("no more"))
		require.Equal(t, "no more", <-waiting)

		second.End("gone")
		synctest.Wait()
		require.True(t, f.Connected("web1"))
		f.drop("web1", true) // as an upgrade does
		synctest.Wait()
		require.Empty(t, first.ended)
		require.True(t, f.Connected("web1"))
		f.Drop("web1")
		synctest.Wait()
		require.Contains(t, first.ended, "revoked")
		require.False(t, f.Connected("web1"))
		require.Zero(t, first.open)
		third := &connection{name: "third"}
		accept(third)
		l, err := f.dial(t.Context(), "web1")
		require.NoError(t, err)
		require.NoError(t, l.Close())
		f.Detach()
		accept(third)
		require.Contains(t, third.ended, "accepts no streams")
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
