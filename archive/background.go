package archive

import (
	"context"
	"sync"
	"sync/atomic"
)

// Background is the slot in which all stores that share it compact, one archive at a time. If Config.Background is nil, a store has its own.
type Background struct {
	slot   chan struct{}
	recent atomic.Int64 // how many entries of manifests the stores keep in memory
	large  atomic.Int64 // how many bytes of large files
	paused atomic.Int64 // how many stores are paused
}

// NewBackground creates a slot.
func NewBackground() *Background { return &Background{slot: make(chan struct{}, 1)} }

// interrupt ends one work in the background that others wait for.
type interrupt struct {
	under atomic.Pointer[context.CancelFunc]
}

// begin returns the context of the work, until done is called.
func (i *interrupt) begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, stop := context.WithCancel(ctx)
	i.under.Store(&stop)
	return ctx, func() {
		i.under.Store(nil)
		stop()
	}
}

// stop ends the context of the work that is under way.
func (i *interrupt) stop() {
	if stop := i.under.Load(); stop != nil {
		(*stop)()
	}
}

// gate stops background work while callers of Pause need the disk.
type gate struct {
	mu   sync.Mutex
	shut int
	open chan struct{} // closed when shut falls to 0
}

// Pause stops the background work of this store, at the latest after the block being read, until resume is called; calling resume again
// does nothing. A deployment pauses the store for as long as it runs. Several callers may pause at once; work continues after the last
// resume. From its return until resume nothing in the background publishes or removes an archive.
func (s *Store) Pause() (resume func()) {
	g := &s.gate
	g.mu.Lock()
	if g.shut == 0 {
		g.open = make(chan struct{})
		s.cfg.Background.paused.Add(1)
	}
	g.shut++
	g.mu.Unlock()
	s.copying.stop()
	// Anything that is publishing or removing holds the lock and checked the gate first.
	s.work.Lock()
	s.work.Unlock() //nolint:staticcheck // taken only to wait for the holder
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.shut--; g.shut == 0 {
			close(g.open)
			s.cfg.Background.paused.Add(-1)
		}
	})
}

// waiting returns a channel to wait for, nil if the gate is open.
func (g *gate) waiting() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == 0 {
		return nil
	}
	return g.open
}

// compaction is one run of background work. It holds the machine's slot except while it is paused.
type compaction struct {
	s    *Store
	ctx  context.Context
	held bool
	// front is set while a Make waits for the compaction; that Make holds the work lock and has paused the background.
	front bool
	// soon is set for work right after a deployment, which another one may follow.
	soon bool
	// small reports that the next archive is packed at once if it comes soon.
	small bool
}

// alone makes a compaction the only one of the store, until over is called; it returns false if there is another one.
func (w *compaction) alone() bool { return w.s.compacting.TryLock() }

// over is called by the only one.
func (w *compaction) over() { w.s.compacting.Unlock() }

// begin waits for an open gate and the slot.
func (w *compaction) begin() error {
	for {
		select {
		case w.s.cfg.Background.slot <- struct{}{}:
			w.held = true
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
		wait := w.s.gate.waiting()
		if wait == nil {
			return nil
		}
		w.end()
		select {
		case <-wait:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
}

// end releases the slot, if it is held.
func (w *compaction) end() {
	if w.held {
		w.held = false
		<-w.s.cfg.Background.slot
	}
}

// lock takes the store's work lock while the gate is open: a paused store changes nothing.
func (w *compaction) lock() (unlock func(), err error) {
	if w.front {
		return func() {}, w.ctx.Err()
	}
	for {
		if err := w.pause(); err != nil {
			return nil, err
		}
		w.s.work.Lock()
		if w.s.gate.waiting() == nil {
			return w.s.work.Unlock, nil
		}
		w.s.work.Unlock()
	}
}

// pause is called between blocks: it returns an error when the context ends, and releases the slot while the store is paused.
func (w *compaction) pause() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.front || w.s.gate.waiting() == nil {
		return nil
	}
	w.end()
	return w.begin()
}
