package machines

import (
	"context"
	"io"
	"slices"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/remote"
)

// link is one stream of a connected agent, which can carry one session of the hub.
type link struct {
	io.Reader
	io.Writer
	origin
	fleet *Fleet
	node  string
	// of is its pool; taken reports that a session uses it; finish ends it, nil once it was called. They are held with fleet.mu.
	of     *pool
	taken  bool
	finish func()
}

// Close implements io.Closer: the stream ends. Idempotent.
func (l *link) Close() error {
	l.fleet.mu.Lock()
	finish := l.finish
	if finish != nil {
		l.of.links = slices.DeleteFunc(l.of.links, func(x *link) bool { return x == l })
		l.finish = nil
	}
	l.fleet.mu.Unlock()
	if finish != nil {
		finish()
	}
	return nil
}

// Keeper is the input of a verb that can go on after the verb has returned: see sshd.Session.
type Keeper interface {
	Keep(gone func()) (finish func(exit int))
}

// Attach offers a stream of a node's agent, over the connection from, whose key valid accepts. It returns when a session over it has ended, or ctx has; if in is a Keeper, at once, and the stream stays until then: a hub may have thousands that wait.
func (f *Fleet) Attach(ctx context.Context, name, from string, valid func() error, in io.Reader, out io.Writer) error {
	p, err := f.poolOf(ctx, name, valid)
	if err != nil {
		return err
	}
	l := &link{Reader: in, Writer: out, fleet: f, node: name, origin: origin{from: from}}
	if k, ok := in.(Keeper); ok {
		finish := k.Keep(func() { _ = l.Close() })
		f.offer(l, p, func() { go finish(0) }) // it may wait for a machine that does not read
		return nil
	}
	done := make(chan struct{})
	f.offer(l, p, func() { close(done) })
	defer l.Close()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// poolOf returns the streams of a node that has an agent, whose key valid accepts.
func (f *Fleet) poolOf(ctx context.Context, name string, valid func() error) (*pool, error) {
	n, err := f.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if !n.Agent {
		return nil, fault.New(fault.Refused, "", "%s is reached by ssh, and does not dial in", name)
	}
	f.mu.Lock()
	p := f.pool(name)
	f.mu.Unlock()
	return p, valid() // after taking the pool: revoking the key from here on drops it
}

// offer adds a stream to a pool. finish is called once, when the stream is closed.
func (f *Fleet) offer(l *link, p *pool, finish func()) {
	f.mu.Lock()
	if f.stopped || p.dropped {
		f.mu.Unlock()
		finish()
		return
	}
	l.of, l.finish = p, finish
	replaced, asked := p.replace(&l.origin)
	p.links = append(p.links, l)
	p.met = true
	p.wake()
	twice := p.machines()
	f.mu.Unlock()
	f.replaced(l.node, replaced, asked)
	if l.returned {
		f.warn(l.node, twice)
	}
}

// Detach ends the streams of all agents, which reconnect when their connections are closed. It is called once, when no deployment runs any more and the server ends.
func (f *Fleet) Detach() {
	f.mu.Lock()
	f.stopped = true
	var all []*link
	for _, p := range f.links {
		all = append(all, p.links...)
	}
	f.mu.Unlock()
	for _, l := range all {
		_ = l.Close()
	}
}

// pool has the streams of one node's agent. Its fields are held with Fleet.mu.
type pool struct {
	// links are all of them, in the order in which they were offered or opened.
	links []*link
	// callers are the connections over which more can be opened, the newest last.
	callers []*caller
	// met: the agent has come since Fleet.Started. dropped: its key is revoked, or another pool has taken its place.
	met, dropped bool
	// changed is closed at the next change; nil if nobody waits for one.
	changed chan struct{}
	// said are the processes of the last connections, ousted the last processes that another one replaced.
	said   []announced
	ousted []string
}

// wake wakes who waits for a change.
func (p *pool) wake() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// Drop ends the streams of a node's agent and the connections over which they are opened, because its key is revoked.
func (f *Fleet) Drop(name string) {
	for _, c := range f.drop(name, false) {
		c.End("the key of the agent of " + name + " is revoked")
	}
}

// drop ends the streams of a node's agent, and returns the connections over which others can be opened: if keep is true, they still can.
func (f *Fleet) drop(name string, keep bool) (callers []*caller) {
	f.mu.Lock()
	var all []*link
	if p := f.links[name]; p != nil {
		p.dropped = true
		all, callers = slices.Clone(p.links), p.callers
		next := &pool{met: p.met, said: p.said, ousted: p.ousted}
		if keep {
			next.callers = slices.Clone(callers)
		}
		f.links[name] = next
		p.wake()
	}
	f.mu.Unlock()
	for _, l := range all {
		_ = l.Close()
	}
	return callers
}

// pool returns the streams of a node. Called with mu held.
func (f *Fleet) pool(name string) *pool {
	if f.links == nil {
		f.links = map[string]*pool{}
	}
	if f.links[name] == nil {
		f.links[name] = &pool{}
	}
	return f.links[name]
}

// take takes a stream of a node, or else a connection of pool p to open one over; if there is none, or it is being found out which agent there is, changed is closed when there may be one. A node of which two agents are connected is fault.Refused.
func (f *Fleet) take(name string) (l *link, p *pool, c *caller, changed <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p = f.pool(name)
	if !p.asking() {
		if at := p.machines(); len(at) > 1 {
			return nil, nil, nil, nil, copied(name, at)
		}
		for _, l := range p.links {
			if !l.taken {
				l.taken = true
				return l, p, nil, nil, nil
			}
		}
		if c := p.caller(); c != nil && !f.stopped {
			c.using++
			return nil, p, c, nil, nil
		}
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return nil, p, nil, p.changed, nil
}

// dialTimeout is how long to wait for a stream of an agent; firstDialTimeout, from the hub's start, for one that has not come since: agents try
// again within a minute.
const (
	dialTimeout      = 10 * time.Second
	firstDialTimeout = 75 * time.Second
)

// dialWait returns how long to wait for a stream of a node's agent now.
func (f *Fleet) dialWait(name string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.links[name]; p != nil && p.met {
		return dialTimeout
	}
	return max(dialTimeout, time.Until(f.Started.Add(firstDialTimeout)))
}

// Connected reports whether a node's agent is connected to this process.
func (f *Fleet) Connected(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.links[name]
	return p != nil && len(p.links)+len(p.callers) > 0
}

// dial takes a stream of a node's agent.
func (f *Fleet) dial(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	late := time.NewTimer(f.dialWait(name))
	defer late.Stop()
	for {
		l, p, c, changed, err := f.take(name)
		if err != nil {
			return nil, err
		}
		if c != nil {
			if l, err = f.call(ctx, name, p, c); err != nil {
				return nil, err
			}
			if l == nil {
				continue
			}
		}
		if l != nil {
			return l, nil
		}
		select {
		case <-changed: // or the agent joined again meanwhile: its streams are offered to the next pool
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late.C:
			return nil, remote.NewConnectionError("the agent of " + name + " is not connected").WithHint("look at it there: its service runs  corpus-git agent")
		}
	}
}
