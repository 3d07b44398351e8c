package machines

import (
	"context"
	"io"
	"slices"
	"time"
)

// Peer is the connection of an agent that accepts streams: see sshd.Peer.
type Peer = interface {
	// Open opens a stream to the agent.
	Open(ctx context.Context) (io.ReadWriteCloser, error)
	// Ask asks the other side for a sign of life.
	Ask(ctx context.Context) error
	// Gone calls f in a goroutine of its own when the connection has ended.
	Gone(f func())
	// End closes the connection for a reason that is logged.
	End(why string)
}

// Called is the input of a verb whose connection outlives it.
type Called interface{ Peer() Peer }

const (
	// streams is the number of sessions over one connection of an agent at a time.
	streams = 4
	// openTimeout is how long an agent may take to accept a stream.
	openTimeout = 10 * time.Second
)

// caller is a connection over which streams are opened when they are needed. Its fields are held with Fleet.mu.
type caller struct {
	Peer
	origin
	// using counts its streams; asked: see Fleet.ask.
	using int
	asked bool
}

// Accept takes the connection from, that of in, of a node's agent whose key valid accepts: the hub opens streams over it by itself from then on, until the connection ends. It returns at once. ok is false if in has no such
// connection.
func (f *Fleet) Accept(ctx context.Context, name, from string, valid func() error, in io.Reader) (ok bool, err error) {
	verb, ok := in.(Called)
	if !ok {
		return false, nil
	}
	p, err := f.poolOf(ctx, name, valid)
	if err != nil {
		return true, err
	}
	c := &caller{Peer: verb.Peer(), origin: origin{from: from}}
	f.mu.Lock()
	if f.stopped || p.dropped {
		f.mu.Unlock()
		c.End("the hub accepts no streams of " + name + " at the moment")
		return true, nil
	}
	replaced, asked := p.replace(&c.origin)
	p.callers = append(p.callers, c)
	p.met = true
	p.wake()
	returned, twice := c.returned, p.machines()
	f.mu.Unlock()
	c.Gone(func() { f.gone(name, c) })
	f.replaced(name, replaced, asked)
	if returned {
		f.warn(name, twice)
	}
	return true, nil
}

// gone removes a connection that has ended, or is of no use.
func (f *Fleet) gone(name string, c *caller) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pool(name)
	p.hangUp(c)
	p.wake()
}

// hangUp removes a connection. Called with mu held.
func (p *pool) hangUp(c *caller) {
	p.callers = slices.DeleteFunc(p.callers, func(x *caller) bool { return x == c })
}

// caller returns the newest connection over which a stream can be opened, nil if there is none: an older one of the same agent may be lost without its end having been noticed. Called with mu held.
func (p *pool) caller() *caller {
	for _, c := range slices.Backward(p.callers) {
		if c.using < streams {
			return c
		}
	}
	return nil
}

// call opens a stream over a connection that take has returned; nil if there is none, and the caller looks again.
func (f *Fleet) call(ctx context.Context, name string, p *pool, c *caller) (*link, error) {
	leave := func() {
		f.mu.Lock()
		c.using--
		f.pool(name).wake()
		f.mu.Unlock()
	}
	opening, end := context.WithTimeout(ctx, openTimeout)
	defer end()
	s, err := c.Open(opening)
	if err != nil {
		leave()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f.gone(name, c)
		c.End("it opens no stream: " + err.Error())
		return nil, nil //nolint:nilnil // the agent connects again
	}
	l := &link{Reader: s, Writer: s, fleet: f, node: name, of: p, taken: true}
	l.finish = func() {
		leave()
		go s.Close() // it may wait for a machine that does not read
	}
	f.mu.Lock()
	p.links = append(p.links, l)
	late := f.stopped || p.dropped
	f.mu.Unlock()
	if late {
		_ = l.Close()
		return nil, nil //nolint:nilnil // as above
	}
	return l, nil
}
