package broker

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"corpus-git/access"
	"corpus-git/fleet/natslink"
	"corpus-git/remote"
)

// connection is one agent's connection.
type connection struct {
	name string
	who  access.Identity
	// ctx ends with the connection.
	ctx     context.Context //nolint:containedctx // the verbs of the connection run until it ends
	end     context.CancelCauseFunc
	offered sync.Once
	// here reports that a request has arrived over it.
	here atomic.Bool
}

// connection returns the connection of a subject, nil if it has ended.
func (b *Broker) connection(subject string) *connection {
	parts := strings.Split(subject, ".")
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(parts) < 2 {
		return nil
	}
	return b.agents[parts[1]]
}

// offer offers the streams of a node's agent to the fleet until its connection ends: the next one when a session has begun on the last, as an agent does over ssh.
func (b *Broker) offer(c *connection, node string) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, links)
	for c.ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-c.ctx.Done():
			return
		}
		l := &lazy{broker: b, of: c, used: make(chan struct{})}
		done := make(chan struct{})
		wg.Go(func() {
			defer func() { <-slots }()
			defer close(done)
			var said strings.Builder
			code := b.cfg.Run(c.ctx, c.who, []string{"node", "attach", node}, l, l, &said)
			l.close()
			if code != 0 && c.ctx.Err() == nil {
				b.cfg.Log.Warn().Str("node", node).Str("reason", strings.TrimSpace(said.String())).Msg("the agent is not accepted any more")
				b.forget(c, context.Canceled)
			}
		})
		select {
		case <-l.used:
		case <-done:
		}
	}
}

// lazy is a stream that is opened when it is first used.
type lazy struct {
	broker *Broker
	of     *connection
	used   chan struct{}

	once   sync.Once
	stream *natslink.Stream
	cancel func() bool
	err    error
}

// open asks the agent to begin its side.
func (l *lazy) open() (*natslink.Stream, error) {
	l.once.Do(func() {
		close(l.used)
		name, id := l.of.name, nuid.Next()
		if l.stream, l.err = natslink.Open(l.broker.hub, natslink.ToHub(name, id), natslink.ToAgent(name, id)); l.err != nil {
			return
		}
		s := l.stream
		l.cancel = context.AfterFunc(l.of.ctx, func() { s.Fail(remote.NewConnectionError("the connection of the agent has ended")) })
		ctx, cancel := context.WithTimeout(l.of.ctx, answerTime)
		defer cancel()
		if _, err := l.broker.hub.RequestMsgWithContext(ctx, &nats.Msg{Subject: natslink.Begin(name), Data: []byte(id)}); err != nil {
			l.err = remote.NewConnectionError("the agent does not begin a session")
			s.Fail(l.err)
		}
	})
	return l.stream, l.err
}

// Read implements io.Reader.
func (l *lazy) Read(p []byte) (int, error) {
	s, err := l.open()
	if err != nil {
		return 0, err
	}
	return s.Read(p)
}

// Write implements io.Writer.
func (l *lazy) Write(p []byte) (int, error) {
	s, err := l.open()
	if err != nil {
		return 0, err
	}
	return s.Write(p)
}

// close ends the stream, if it was opened.
func (l *lazy) close() {
	l.once.Do(func() { l.err = io.ErrClosedPipe })
	if l.stream != nil {
		l.cancel()
		_ = l.stream.CloseWrite()
		_ = l.stream.Close() // the session has ended
	}
}
