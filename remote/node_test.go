package remote_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/bundle"
	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/remote"
)

// waits is answers whose deployments wait if they are told to.
type waits struct{ answers }

func (w *waits) Apply(ctx context.Context, q remote.ApplyRequest, in *bufio.Reader, send func(remote.Frame) error) error {
	return w.answers.Apply(ctx, remote.ApplyRequest{StoreOnly: q.Hold}, in, send)
}

// A node is asked for what it has with the first request of a session, and not again while it waits with what it was sent: only in a new session.
func TestTipsAreAskedOnce(t *testing.T) {
	there := &waits{}
	var last net.Conn
	n := &remote.Node{
		Host: &remote.Host{Target: "web1"}, Project: "app",
		Dial: func(context.Context) (io.ReadWriteCloser, error) {
			near, far := net.Pipe()
			last = far
			go func() {
				_ = remote.Serve(context.Background(), far, far, greeting, there) //nolint:contextcheck // the other machine's
				_ = far.Close()
			}()
			return near, nil
		},
	}
	_, err := n.Open(t.Context(), "k")
	require.NoError(t, err)
	var mu sync.Mutex // what is sent over a lost connection may still be sent when the next one begins
	var had []bundle.Tips
	apply := remote.Apply{
		Project: "app", Brings: bundle.Tips{Code: []project.Commit{"d"}, KV: "x"}, Show: func(event.Event) error { return nil },
		Send: func(_ context.Context, have bundle.Tips, w io.Writer) error {
			mu.Lock()
			had = append(had, have)
			mu.Unlock()
			_, err := io.WriteString(w, "B\n")
			return err
		},
	}
	hold := apply
	hold.Hold = true
	_, err = n.Apply(t.Context(), hold)
	require.NoError(t, err)
	f, err := n.Apply(t.Context(), apply)
	require.NoError(t, err)
	require.Equal(t, project.Live, f.Result.State)
	require.Equal(t, []string{"trust k", "tips app", "apply B", "apply B"}, there.asked)
	mu.Lock()
	require.Equal(t, []bundle.Tips{{Code: []project.Commit{"c"}}, apply.Brings}, had)
	mu.Unlock()

	// After a result it may have more.
	_, err = n.Apply(t.Context(), hold)
	require.NoError(t, err)
	require.Equal(t, []string{"tips app", "apply B"}, there.asked[4:])
	// What waited in a session that is lost is asked for in the next one.
	require.NoError(t, last.Close())
	apply.ReconnectFor, apply.Lost = 1<<40, func(error, time.Duration) {}
	_, err = n.Apply(t.Context(), apply)
	require.NoError(t, err)
	require.Equal(t, []string{"trust k", "tips app", "apply B"}, there.asked[6:])

	// A key that is not taken is the error, as before.
	require.NoError(t, n.Close())
	_, err = n.Open(t.Context(), "bad")
	require.ErrorContains(t, err, "not a key")
	require.NoError(t, n.Close())
}
