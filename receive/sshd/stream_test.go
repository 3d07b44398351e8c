package sshd_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/receive/sshd"
)

// peers passes on the connections of sessions.
func peers(t *testing.T, l sshd.Limits) (*server, <-chan sshd.Peer) {
	t.Helper()
	out := make(chan sshd.Peer, 1)
	return serve(t, l, func(_ context.Context, sess *sshd.Session) int {
		out <- sess.Stdin.(interface{ Peer() sshd.Peer }).Peer()
		return 0
	}), out
}

// The server opens streams over a connection whose session has ended, several at a time, until the connection ends.
func TestStreams(t *testing.T) {
	s, from := peers(t, sshd.Limits{})
	client := s.dial(t)
	opened := client.HandleChannelOpen(sshd.StreamChannel)
	go func() {
		for n := range opened {
			ch, reqs, err := n.Accept()
			if err != nil {
				return
			}
			go ssh.DiscardRequests(reqs)
			go func() {
				_, _ = io.Copy(ch, ch) // what it reads, until it is closed
				_ = ch.Close()
			}()
		}
	}()
	sess, err := client.NewSession()
	require.NoError(t, err)
	require.NoError(t, sess.Run("x"))
	p := <-from
	var all []io.ReadWriteCloser
	for _, text := range []string{"one", "two"} {
		st, err := p.Open(t.Context())
		require.NoError(t, err)
		_, err = io.WriteString(st, text)
		require.NoError(t, err)
		all = append(all, st)
	}
	for i, text := range []string{"one", "two"} {
		got := make([]byte, len(text))
		_, err = io.ReadFull(all[i], got)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	require.NoError(t, all[0].Close())
	_, err = io.ReadAll(all[0]) // its end
	require.NoError(t, err)

	require.NoError(t, p.Ask(t.Context()))

	gone := make(chan struct{})
	p.Gone(func() { close(gone) })
	require.NoError(t, client.Close())
	<-gone
	_, err = io.ReadAll(all[1])
	require.NoError(t, err)
	_, err = p.Open(t.Context())
	require.Error(t, err)
	require.Error(t, p.Ask(t.Context()))
	late := make(chan struct{})
	p.Gone(func() { close(late) }) // it has gone already
	<-late
}

// A client that does not expect streams refuses them; one that does not answer is not waited for longer than the caller wants, nor than the connection lasts; and the server can end the connection.
func TestRefusedStreams(t *testing.T) {
	s, from := peers(t, sshd.Limits{})
	client := s.dial(t)
	sess, err := client.NewSession()
	require.NoError(t, err)
	require.NoError(t, sess.Run("x"))
	_, err = (<-from).Open(t.Context())
	var refused *ssh.OpenChannelError
	require.ErrorAs(t, err, &refused)

	silent := s.dial(t)
	asked := silent.HandleChannelOpen(sshd.StreamChannel)
	sess, err = silent.NewSession()
	require.NoError(t, err)
	require.NoError(t, sess.Run("x"))
	p := <-from
	ctx, end := context.WithCancel(t.Context())
	go func() {
		<-asked
		end()
	}()
	_, err = p.Open(ctx)
	require.ErrorIs(t, err, context.Canceled)
	go func() {
		<-asked
		p.End("test")
	}()
	_, err = p.Open(t.Context())
	require.Error(t, err)
	require.Error(t, silent.Wait())
}

// A client that has stopped answers nothing: it is asked as long as the caller wants.
func TestAskedInVain(t *testing.T) {
	s, from := peers(t, sshd.Limits{})
	client, f := s.dialFrozen(t)
	sess, err := client.NewSession()
	require.NoError(t, err)
	require.NoError(t, sess.Run("x"))
	p := <-from
	require.NoError(t, p.Ask(t.Context()))
	close(f.stop)
	ctx, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	require.ErrorIs(t, p.Ask(ctx), context.DeadlineExceeded)
}

// The limits on waiting apply to streams as to sessions.
func TestIdleStream(t *testing.T) {
	s, from := peers(t, sshd.Limits{ReadIdle: 50 * time.Millisecond})
	client := s.dial(t)
	opened := client.HandleChannelOpen(sshd.StreamChannel)
	sess, err := client.NewSession()
	require.NoError(t, err)
	require.NoError(t, sess.Run("x"))
	go func() {
		ch, reqs, err := (<-opened).Accept()
		if err == nil {
			go ssh.DiscardRequests(reqs)
			_, _ = io.Copy(io.Discard, ch) // it says nothing
			_ = ch.Close()
		}
	}()
	st, err := (<-from).Open(t.Context())
	require.NoError(t, err)
	_, err = io.ReadAll(st)
	require.ErrorContains(t, err, "limits.read_timeout")
}
