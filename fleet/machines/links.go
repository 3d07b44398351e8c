package machines

import (
	"context"
	"io"
	"sync"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/remote"
)

// link is one stream of a connected agent, which can carry one session of the hub.
type link struct {
	io.Reader
	io.Writer
	closed chan struct{}
	once   sync.Once
}

// Close implements io.Closer: the verb that brought the stream returns. Idempotent.
func (l *link) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Attach offers a stream of a node's agent whose key valid accepts, and returns when a session over it has ended, or ctx has.
func (f *Fleet) Attach(ctx context.Context, name string, valid func() error, in io.Reader, out io.Writer) error {
	n, err := f.Get(ctx, name)
	if err != nil {
		return err
	}
	if !n.Agent {
		return fault.New(fault.Refused, "", "%s is reached by ssh, and does not dial in", name)
	}
	l := &link{Reader: in, Writer: out, closed: make(chan struct{})}
	p := f.pool(name)
	if err := valid(); err != nil { // after taking the pool: revoking the key from here on drops it
		return err
	}
	f.meet(name, 1)
	defer f.meet(name, -1)
	select {
	case p.free <- l:
	case <-p.dropped:
		return nil
	case <-f.detached():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-l.closed:
	case <-p.dropped:
	case <-f.detached():
	case <-ctx.Done():
	}
	return nil
}

// detached is closed when no deployment runs any more.
func (f *Fleet) detached() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped == nil {
		f.stopped = make(chan struct{})
	}
	return f.stopped
}

// Detach ends the streams of all agents, which then reconnect. It is called once, when the server ends.
func (f *Fleet) Detach() { close(f.detached()) }

// pool is where the streams of one node's agent are offered and taken. dropped is closed when its key is revoked.
type pool struct {
	free    chan *link
	dropped chan struct{}
}

// Drop ends the streams that a node's agent has offered, because its key is revoked.
func (f *Fleet) Drop(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.links[name]; p != nil {
		close(p.dropped)
		delete(f.links, name)
	}
}

// pool returns the streams of a node that wait for a session.
func (f *Fleet) pool(name string) *pool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.links == nil {
		f.links = map[string]*pool{}
	}
	if f.links[name] == nil {
		f.links[name] = &pool{free: make(chan *link), dropped: make(chan struct{})}
	}
	return f.links[name]
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
	if f.met[name] {
		return dialTimeout
	}
	return max(dialTimeout, time.Until(f.Started.Add(firstDialTimeout)))
}

// meet notes that a node's agent has come, and by how many its streams have changed.
func (f *Fleet) meet(name string, streams int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.met == nil {
		f.met, f.attached = map[string]bool{}, map[string]int{}
	}
	f.met[name] = true
	if f.attached[name] += streams; f.attached[name] <= 0 {
		delete(f.attached, name)
	}
}

// Connected reports whether a node's agent is connected to this process.
func (f *Fleet) Connected(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attached[name] > 0
}

// dial takes a stream of a node's agent.
func (f *Fleet) dial(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	late := time.NewTimer(f.dialWait(name))
	defer late.Stop()
	for {
		p := f.pool(name)
		select {
		case l := <-p.free:
			return l, nil
		case <-p.dropped: // the agent joined again meanwhile: its streams are offered to the next pool
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late.C:
			return nil, remote.NewConnectionError("the agent of " + name + " is not connected").WithHint("look at it there: its service runs  corpus-git agent")
		}
	}
}
