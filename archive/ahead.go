package archive

import (
	"context"
	"sync"
)

// ahead is background work that began while a deployment of the project runs (Ahead), and does not delay that deployment. Once the deployment has
// ended it is like other background work: a later Pause stops it, unless a Make waits for it.
type ahead struct {
	own    <-chan struct{} // closed when the deployment during which it began has ended
	wanted chan struct{}   // closed when a Make waits for it
	want   func()
	done   chan struct{} // closed when it has ended
}

func newAhead(own <-chan struct{}) *ahead {
	a := &ahead{own: own, wanted: make(chan struct{}), done: make(chan struct{})}
	a.want = sync.OnceFunc(func() { close(a.wanted) })
	return a
}

// during reports whether the deployment during which the work began is still running; it is false for other work.
func (a *ahead) during() bool { return a != nil && !closed(a.own) }

// isWanted reports whether a Make waits for the work.
func (a *ahead) isWanted() bool { return a != nil && closed(a.wanted) }

// wantedBy returns a channel that is closed when a Make waits for the work, nil for other work.
func (a *ahead) wantedBy() <-chan struct{} {
	if a == nil {
		return nil
	}
	return a.wanted
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Ahead does, while a deployment runs, what Prepare would do after it, so that a deployment that follows at once need not wait. It is called when the
// deployment's archive is made and its tree is checked out, in its own goroutine, and returns when the work has ended.
//
// It is for the trees that a Make would pack (at least Config.HandOver files with little content), if there is no spare tree and
// deployments follow each other within ten seconds: it packs the archive that was just made, and publishes the result when the
// deployment has ended. Until then the archive is a folder. A Make that comes earlier waits for that. A first deployment has nothing to pack; its
// tree is copied by Prepare once it is live, because a copy made meanwhile would be synced with it.
//
// It only saves work, so it reports nothing. A crash leaves the same as a crash in Compact. It does nothing while other background work runs.
func (s *Store) Ahead(ctx context.Context) {
	own := s.gate.waiting()
	if own == nil || s.cfg.NoSpare || s.hasSpare() {
		return
	}
	w := &compaction{s: s, ctx: ctx, ahead: newAhead(own)}
	if !w.alone() {
		return
	}
	defer w.over()
	select {
	case s.cfg.Background.slot <- struct{}{}:
		w.held = true
	default:
		return // another project's
	}
	defer w.end()
	over, err := s.cfg.Begin()
	if err != nil {
		return
	}
	defer over()
	if all, err := s.List(); err == nil && len(all) > 0 && all[0].Sizes.Files > 0 {
		w.packAhead()
	}
}

// packAhead packs the newest archive.
func (w *compaction) packAhead() {
	s := w.s
	inBurst, err := s.inBurst()
	if err != nil || !inBurst || s.halfSpare() {
		return
	}
	a, err := s.handable()
	if err != nil || a == nil || a.Verdict != Pending {
		return // of an earlier deployment: the Make of this one packs it
	}
	s.ahead.Store(w.ahead)
	defer func() {
		s.ahead.Store(nil)
		close(w.ahead.done)
	}()
	_, _ = w.pack(*a)
}

// awaitAhead waits until an archive is packed that was being packed during the previous deployment, and lets it be published although the
// store is paused.
func (s *Store) awaitAhead(ctx context.Context) {
	a := s.ahead.Load()
	if a == nil || a.during() {
		return
	}
	a.want()
	select {
	case <-a.done:
	case <-ctx.Done():
	}
}
