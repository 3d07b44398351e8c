package archive

import (
	"context"
	"path/filepath"
)

const (
	// handOverBytes and handOverMean limit the trees that are packed while a deployment waits: copying one with more content, or with
	// larger files, takes about as long as packing it.
	handOverBytes = 64 << 20
	handOverMean  = 32 << 10
	handOverFew   = 16 << 20
)

// toHandOver returns the archive to pack so that the next Make can be built from its tree: the newest one, if there is no spare tree.
// Packing a tree of many small files takes a fraction of the time that creating its files again takes. It returns nil if there is none.
func (s *Store) toHandOver() *Archive {
	if s.cfg.NoSpare || s.hasSpare() {
		return nil
	}
	if a, err := s.handable(); err == nil && a != nil && a.Verdict != Pending {
		return a
	}
	return nil
}

// handable returns the newest archive, if packing its tree takes less time than copying it; otherwise nil.
func (s *Store) handable() (*Archive, error) {
	all, err := s.List()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	a := all[0]
	if !a.Whole || a.Packed != nil || a.Rollback != nil || !s.manySmall(a.Sizes) {
		return nil, nil
	}
	return &a, nil
}

// manySmall reports whether packing a tree takes less time than copying it.
func (s *Store) manySmall(z Sizes) bool {
	return z.Files >= s.cfg.HandOver && z.Bytes <= handOverBytes && z.Bytes <= max(handOverMean*z.Files, handOverFew)
}

// halfSpare reports whether a deployment interrupted the copying of a spare tree.
func (s *Store) halfSpare() bool {
	s.sparing.Lock()
	defer s.sparing.Unlock()
	return s.next != nil
}

// packNewest is handOver in the background. A deployment waits for it instead of doing the same, so nothing else moves trees meanwhile.
func (w *compaction) packNewest() error {
	unlock, err := w.lock()
	if err != nil {
		return err
	}
	defer unlock()
	w.s.handOver(w.ctx)
	return w.ctx.Err()
}

// handOver packs the newest archive for Make, which holds the lock, so that its tree becomes the spare one. It only saves work: after an
// error the archive is a folder or files, whichever its record names, and Make copies.
func (s *Store) handOver(ctx context.Context) {
	if s.halfSpare() {
		return // a deployment interrupted the background: its partial tree is better
	}
	a := s.toHandOver()
	if a == nil || s.inUse(filepath.Join(a.Path, tmpPrefix+"packed")) {
		return
	}
	_, _ = (&compaction{s: s, ctx: ctx, front: true}).pack(*a)
}
