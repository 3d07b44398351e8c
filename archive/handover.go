package archive

import (
	"context"
	"path/filepath"
)

const (
	// handOverBytes and handOverMean limit the trees that are packed while a deployment waits: copying one with more, or with larger files,
	// takes about as long as packing it.
	handOverBytes = 64 << 20
	handOverMean  = 32 << 10
	handOverFew   = 16 << 20
)

// toHandOver returns the archive to pack so that the next Make can be built from its tree: the newest one, where there is no spare tree.
// Packing a tree of many small files takes a fraction of the time that creating its files again takes. It returns nil where there is none.
func (s *Store) toHandOver() *Archive {
	if s.cfg.NoSpare || s.hasSpare() {
		return nil
	}
	all, err := s.List()
	if err != nil || len(all) == 0 {
		return nil
	}
	a := all[0]
	switch z := a.Sizes; {
	case !a.Whole, a.Packed != nil, a.Rollback != nil, a.Verdict == Pending, z.Files < s.cfg.HandOver, z.Bytes > handOverBytes, z.Bytes > max(handOverMean*z.Files, handOverFew):
		return nil
	}
	return &a
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
	s.sparing.Lock()
	half := s.next != nil
	s.sparing.Unlock()
	if half {
		return // a deployment interrupted the background: its partial tree is better
	}
	a := s.toHandOver()
	if a == nil || s.inUse(filepath.Join(a.Path, tmpPrefix+"packed")) {
		return
	}
	_, _ = (&compaction{s: s, ctx: ctx, front: true}).pack(*a)
}
