package sshd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/receive/sshd"
)

type keeper interface {
	Keep(gone func()) (finish func(exit int))
}

// A session that is kept goes on after its handler has returned: until it is finished, with its streams and its exit status, or until the client has gone. Shutdown waits for it.
func TestKeptSession(t *testing.T) {
	type kept struct {
		*sshd.Session
		finish func(exit int)
		gone   chan struct{}
	}
	sessions := make(chan kept, 1)
	s := serve(t, sshd.Limits{}, func(_ context.Context, sess *sshd.Session) int {
		k := kept{Session: sess, gone: make(chan struct{})}
		k.finish = sess.Stdin.(keeper).Keep(func() { close(k.gone) })
		sessions <- k
		return 9 // does not matter
	})
	client := s.dial(t)

	sess, err := client.NewSession()
	require.NoError(t, err)
	in, err := sess.StdinPipe()
	require.NoError(t, err)
	out, err := sess.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, sess.Start("x"))
	k := <-sessions
	_, err = io.WriteString(in, "ping")
	require.NoError(t, err)
	got := make([]byte, 4)
	_, err = io.ReadFull(k.Stdin, got)
	require.NoError(t, err)
	fmt.Fprintf(k.Stdout, "%s back", got)
	k.finish(3)
	k.finish(4) // does nothing
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Equal(t, "ping back", string(text))
	var exit *ssh.ExitError
	require.ErrorAs(t, sess.Wait(), &exit)
	require.Equal(t, 3, exit.ExitStatus())
	select {
	case <-k.gone:
		t.Error("it was finished before the client had gone")
	default:
	}

	sess, err = client.NewSession()
	require.NoError(t, err)
	require.NoError(t, sess.Start("x"))
	k = <-sessions
	require.NoError(t, sess.Close())
	<-k.gone
	k.finish(0)

	sess, err = client.NewSession()
	require.NoError(t, err)
	require.NoError(t, sess.Start("x"))
	k = <-sessions
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.WithoutCancel(t.Context())) }()
	for exit := 0; exit == 0; { // until it has begun: new sessions are refused then
		next, err := client.NewSession()
		require.NoError(t, err)
		require.NoError(t, next.Start("x"))
		select {
		case other := <-sessions:
			other.finish(0)
		case exit = <-refused(next):
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("shut down while a session was kept: %v", err)
	default:
	}
	k.finish(0)
	require.NoError(t, <-ended)
}

// refused returns the exit status of a session that does not reach the handler.
func refused(s *ssh.Session) <-chan int {
	out := make(chan int, 1)
	go func() {
		var exit *ssh.ExitError
		if errors.As(s.Wait(), &exit) {
			out <- exit.ExitStatus()
		}
	}()
	return out
}
