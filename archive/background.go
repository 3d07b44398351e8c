package archive

import (
	"context"
	"sync"
	"sync/atomic"
)

// Background is the slot in which the stores of a machine compact, one archive at a time over all of them. Give the same
// one to every Config; a nil one is the store's own.
type Background struct {
	slot   chan struct{}
	recent atomic.Int64 // how many entries of manifests the stores keep in memory
}

// NewBackground makes a slot.
func NewBackground() *Background { return &Background{slot: make(chan struct{}, 1)} }

// gate is shut while somebody needs the disk for something better.
type gate struct {
	mu   sync.Mutex
	shut int
	open chan struct{} // closed when shut falls to 0
}

// Pause holds up the background work of this store, within a block of what it reads, until resume is called; more than
// once is once. A deployment pauses the store for as long as it runs. Pauses of several callers add up. When Pause returns,
// nothing in the background publishes or removes an archive, and nothing does until resume.
func (s *Store) Pause() (resume func()) {
	g := &s.gate
	g.mu.Lock()
	if g.shut == 0 {
		g.open = make(chan struct{})
	}
	g.shut++
	g.mu.Unlock()
	s.interruptSparing()
	// What is publishing or removing right now holds the lock, and looks at the gate before.
	s.work.Lock()
	s.work.Unlock() //nolint:staticcheck // to have waited is all
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.shut--; g.shut == 0 {
			close(g.open)
		}
	})
}

// waiting is a channel to wait for, nil where the gate is open.
func (g *gate) waiting() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == 0 {
		return nil
	}
	return g.open
}

// compaction is background work under way. It holds the machine's slot but while it is paused.
type compaction struct {
	s    *Store
	ctx  context.Context
	held bool
	// front: a Make waits for it, which holds the lock of what moves trees and has paused the background.
	front bool
}

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

// end gives the slot back, if it is held.
func (w *compaction) end() {
	if w.held {
		w.held = false
		<-w.s.cfg.Background.slot
	}
}

// lock takes the lock of what moves trees, with the gate open: a paused store changes nothing.
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

// pause is taken between blocks: it gives up when the context ends, and gives the slot to others while it is paused.
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
