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
	fleet *Fleet
	node  string
	// from is its connection, process which one of the node's agent offered it, "" if unknown. returned: another process had replaced that one before.
	from, process string
	returned      bool
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
	n, err := f.Get(ctx, name)
	if err != nil {
		return err
	}
	if !n.Agent {
		return fault.New(fault.Refused, "", "%s is reached by ssh, and does not dial in", name)
	}
	l := &link{Reader: in, Writer: out, fleet: f, node: name, from: from}
	f.mu.Lock()
	p := f.pool(name)
	f.mu.Unlock()
	if err := valid(); err != nil { // after taking the pool: revoking the key from here on drops it
		return err
	}
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

// offer adds a stream to a pool. finish is called once, when the stream is closed.
func (f *Fleet) offer(l *link, p *pool, finish func()) {
	f.mu.Lock()
	if f.stopped || p.dropped {
		f.mu.Unlock()
		finish()
		return
	}
	l.of, l.finish = p, finish
	replaced := p.replace(l)
	p.links = append(p.links, l)
	p.met = true
	p.wake()
	twice := p.machines()
	f.mu.Unlock()
	for _, old := range replaced {
		_ = old.Close()
	}
	if l.returned && len(twice) > 1 {
		f.Log.Warn().Str("node", l.node).Strs("from", twice).Msg("two agents use the key of one node: it is not deployed to")
	}
}

// Detach ends the streams of all agents, which then reconnect. It is called once, when no deployment runs any more and the server ends.
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
	// links are all of them, in the order in which they were offered.
	links []*link
	// met: the agent has come since Fleet.Started. dropped: its key is revoked.
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

// Drop ends the streams of a node's agent, because its key is revoked.
func (f *Fleet) Drop(name string) {
	f.mu.Lock()
	var all []*link
	if p := f.links[name]; p != nil {
		p.dropped = true
		p.wake()
		all = slices.Clone(p.links)
		f.links[name] = &pool{met: p.met, said: p.said, ousted: p.ousted}
	}
	f.mu.Unlock()
	for _, l := range all {
		_ = l.Close()
	}
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

// take takes a stream of a node; if there is none, changed is closed when there may be one. A node of which two agents are connected is fault.Refused.
func (f *Fleet) take(name string) (l *link, changed <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pool(name)
	if at := p.machines(); len(at) > 1 {
		return nil, nil, copied(name, at)
	}
	for _, l := range p.links {
		if !l.taken {
			l.taken = true
			return l, nil, nil
		}
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return nil, p.changed, nil
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
	return p != nil && len(p.links) > 0
}

// dial takes a stream of a node's agent.
func (f *Fleet) dial(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	late := time.NewTimer(f.dialWait(name))
	defer late.Stop()
	for {
		l, changed, err := f.take(name)
		if err != nil {
			return nil, err
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
