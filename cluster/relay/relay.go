package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	// patience is the default of Relay.Patience.
	patience = 20 * time.Second
	// dialTime limits one attempt to reach the leader.
	dialTime = 2 * time.Second
	// retry is the pause between attempts.
	retry = 100 * time.Millisecond
	// maxWaiting limits the connections of clients, relayed or waiting, at one address.
	maxWaiting = 1024
)

// Relay relays the connections of one listener.
type Relay struct {
	Listener net.Listener
	// Leader returns the address of the leader, HOST:PORT. While there is none the error is ErrNone, which is waited for; any other is final.
	Leader func() (address string, err error)
	// Header sends the client's address first.
	Header bool
	// Refuse tells a client in its protocol why it is not relayed, and returns when that is done; nil closes the connection. why is ErrNone, what Leader returned, or
	// wraps ErrUnreachable.
	Refuse func(c net.Conn, why error)
	// Patience is how long a connection waits for a hub that leads and can be reached; 0 is 20 seconds.
	Patience time.Duration
	Log      zerolog.Logger

	mu    sync.Mutex
	conns map[net.Conn]bool
	wait  sync.WaitGroup
}

// Run relays until ctx ends, and then ends all connections. It leaves the listener open: connections that it has not accepted are for the next owner.
func (r *Relay) Run(ctx context.Context) {
	r.conns = map[net.Conn]bool{}
	deadline, _ := r.Listener.(interface{ SetDeadline(at time.Time) error })
	stop := context.AfterFunc(ctx, func() {
		if deadline != nil {
			_ = deadline.SetDeadline(time.Unix(1, 0))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for c := range r.conns {
			_ = c.Close()
		}
	})
	defer stop()
	for ctx.Err() == nil {
		c, err := r.Listener.Accept()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				r.Log.Warn().Err(err).Msg("accept a connection")
				time.Sleep(retry)
				continue
			}
			break
		}
		if !r.hold(ctx, c) {
			_ = c.Close()
			continue
		}
		r.wait.Go(func() { r.relay(ctx, c) })
	}
	r.wait.Wait()
	if deadline != nil {
		_ = deadline.SetDeadline(time.Time{})
	}
}

// hold records an open connection; it is false if the relay ends or has too many.
func (r *Relay) hold(ctx context.Context, c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil || len(r.conns) >= 2*maxWaiting {
		return false
	}
	r.conns[c] = true
	return true
}

func (r *Relay) drop(c net.Conn) {
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
	_ = c.Close()
}

func (r *Relay) relay(ctx context.Context, client net.Conn) {
	defer r.drop(client)
	leader, err := r.dial(ctx)
	if err != nil {
		r.Log.Info().Err(err).Stringer("client", client.RemoteAddr()).Msg("a connection was not relayed")
		if r.Refuse != nil && ctx.Err() == nil {
			r.Refuse(client, err)
		}
		return
	}
	if !r.hold(ctx, leader) {
		_ = leader.Close()
		return
	}
	defer r.drop(leader)
	if r.Header {
		if _, err := io.WriteString(leader, header(client.RemoteAddr(), client.LocalAddr())); err != nil {
			return
		}
	}
	var both sync.WaitGroup
	both.Go(func() { pass(leader, client) })
	pass(client, leader)
	both.Wait()
}

// pass copies one direction, and then closes that direction only.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
	_ = from.Close()
}

var (
	// ErrNone means that no hub leads.
	ErrNone = errors.New("no hub leads")
	// ErrUnreachable means that the hub that leads can't be reached from this one.
	ErrUnreachable = errors.New("the hub that leads is not reached")
)

// dial connects to the leader, and waits for one.
func (r *Relay) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.Patience, patience))
	defer cancel()
	var last error
	for {
		at, err := r.Leader()
		switch {
		case err == nil:
			d := net.Dialer{Timeout: dialTime}
			c, derr := d.DialContext(ctx, "tcp", at)
			if derr == nil {
				return c, nil
			}
			if ctx.Err() == nil || last == nil { // the reason of the attempt before says more than that the time is over
				last = fmt.Errorf("%w: %w", ErrUnreachable, derr)
			}
		case errors.Is(err, ErrNone):
			last = err
		default:
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, last
		case <-time.After(retry):
		}
	}
}

// header is the PROXY protocol's first line.
func header(client, server net.Addr) string {
	c, ok := client.(*net.TCPAddr)
	s, sok := server.(*net.TCPAddr)
	if !ok || !sok || (c.IP.To4() == nil) != (s.IP.To4() == nil) {
		return "PROXY UNKNOWN\r\n"
	}
	kind := "TCP6"
	if c.IP.To4() != nil {
		kind = "TCP4"
	}
	return fmt.Sprintf("PROXY %s %s %s %d %d\r\n", kind, c.IP, s.IP, c.Port, s.Port)
}
