package remote_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/bundle"
	"corpus-git/project"
	"corpus-git/remote"
)

// breaking is a stream whose connection is lost with the first request: reading says so with an error of its own, as streams over NATS do.
type breaking struct {
	io.ReadWriteCloser
	err error
}

func (b *breaking) Write(p []byte) (int, error) { return len(p), b.Close() }

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.ReadWriteCloser.Read(p)
	if err != nil {
		err = b.err
	}
	return n, err
}

// A connection of an agent that is lost during a request is established again, however the stream says that it is lost.
func TestALostConnectionIsEstablishedAgain(t *testing.T) {
	for name, lost := range map[string]error{
		"the hub knows that it has ended": remote.NewConnectionError("the connection of the agent has ended"),
		"something was lost on the way":   errors.New("message 3 of the stream arrived in place of message 2"),
		"the agent has closed it":         io.ErrUnexpectedEOF,
	} {
		t.Run(name, func(t *testing.T) {
			h := &answers{}
			dials := 0
			n := &remote.Node{Host: &remote.Host{Target: "web1"}, Dial: func(context.Context) (io.ReadWriteCloser, error) {
				dials++
				here, there := net.Pipe()
				out := bufio.NewWriter(there)
				go func() {
					_ = remote.Serve(context.Background(), there, flushed{out}, greeting, h)
					_ = there.Close()
				}()
				if dials%2 == 1 {
					return &breaking{here, lost}, nil
				}
				return here, nil
			}}
			var told []error
			say := func(err error, _ time.Duration) { told = append(told, err) }
			require.NoError(t, n.Cancel(t.Context(), remote.CancelRequest{Project: "app", Deployment: "1"}, time.Minute, say))
			require.Equal(t, 2, dials)
			require.Len(t, told, 1)
			require.NoError(t, n.Close())
			f, err := n.Apply(t.Context(), remote.Apply{
				Project: "app", ReconnectFor: time.Minute, Lost: say,
				Send: func(_ context.Context, _ bundle.Tips, w io.Writer) error {
					_, err := io.WriteString(w, "B\n")
					return err
				},
			})
			require.NoError(t, err)
			require.Equal(t, project.Live, f.Result.State)
			require.Len(t, told, 2)
			// Without time to do so it is not, and the error is that of the connection.
			require.NoError(t, n.Close())
			err = n.Cancel(t.Context(), remote.CancelRequest{Project: "app", Deployment: "1"}, 0, say)
			require.ErrorIs(t, err, remote.ErrNoResult)
			var is *remote.ConnectionError
			require.ErrorAs(t, err, &is)
		})
	}
}

type flushed struct{ *bufio.Writer }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	return n, errors.Join(err, f.Flush())
}
