package sshd

import (
	"context"
	"io"

	gossh "golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

// StreamChannel is the type of the channels that the server opens to a client (RFC 4250, 4.9.1: a local name has the domain of who defines it).
const StreamChannel = "stream@corpus-git"

// Peer is the connection of a session, which lasts longer than the session. Its methods are safe for concurrent use.
type Peer = interface {
	// Open opens a stream to the client, which must accept channels of the type StreamChannel. It returns when the client has, when it refuses, or when ctx or the connection ends. The limits on reading and writing of sessions
	// apply: one that exceeds them ends the stream.
	Open(ctx context.Context) (io.ReadWriteCloser, error)
	// Ask asks the client for a sign of life. It returns when the client has answered, or when ctx or the connection ends.
	Ask(ctx context.Context) error
	// Gone calls f in a goroutine of its own when the connection has ended, and at once if it has already.
	Gone(f func())
	// End closes the connection for a reason that is logged.
	End(why string)
}

// Peer returns the connection that the session belongs to.
func (t *timedReader) Peer() Peer { return t.peer }

// peer implements Peer.
type peer struct {
	server *Server
	conn   *conn
	ssh    *gossh.ServerConn
}

// End implements Peer.
func (p *peer) End(why string) { p.conn.end(why) }

// Gone implements Peer.
func (p *peer) Gone(f func()) {
	p.conn.asking.Lock()
	defer p.conn.asking.Unlock()
	if p.conn.closed {
		go f()
		return
	}
	p.conn.gone = append(p.conn.gone, f)
}

// errEnded is the error of a connection that is closed.
var errEnded = fault.New(fault.Busy, "", "the connection has ended")

// Ask implements Peer.
func (p *peer) Ask(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		_, _, err := p.ssh.SendRequest("keepalive@openssh.com", true, nil) // any answer counts
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-p.conn.over:
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Open implements Peer. It does not wait for the library once the connection is closed: in it, opening a channel while the connection ends can block forever (x/crypto/ssh, mux.openChannel).
func (p *peer) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	type opened struct {
		ch   gossh.Channel
		reqs <-chan *gossh.Request
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		ch, reqs, err := p.ssh.OpenChannel(StreamChannel, nil)
		done <- opened{ch, reqs, err}
	}()
	abandon := func(why error) error {
		go func() {
			if o := <-done; o.err == nil {
				_ = o.ch.Close()
				gossh.DiscardRequests(o.reqs)
			}
		}()
		return why
	}
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		go gossh.DiscardRequests(o.reqs)
		return p.stream(o.ch), nil
	case <-p.conn.over:
		return nil, abandon(errEnded)
	case <-ctx.Done():
		return nil, abandon(context.Cause(ctx))
	}
}

// stream applies the limits to a channel.
func (p *peer) stream(ch gossh.Channel) *stream {
	end := func(why string) {
		p.server.Log.Info().Str("from", p.conn.RemoteAddr().String()).Str("why", why).Msg("stream ended")
		_ = ch.Close()
	}
	return &stream{
		&timedReader{r: ch, limit: p.conn.limits.ReadIdle, end: end},
		&timedWriter{w: ch, limit: p.conn.limits.WriteIdle, end: end},
		ch,
	}
}

// stream is a channel that the server has opened.
type stream struct {
	io.Reader
	io.Writer
	ch gossh.Channel
}

// Close implements io.Closer. It may wait for a client that does not read.
func (s *stream) Close() error { return s.ch.Close() }
