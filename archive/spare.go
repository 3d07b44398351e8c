package archive

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// nextSpare is where a spare tree is made. What a crash leaves there is not used, and is removed by Sweep.
const nextSpare = tmpPrefix + "next-spare"

// next is a spare tree that is being made, whose making was interrupted by a Make, or that is older than what is live. It is known in memory only.
type next struct {
	// Manifest describes what nextSpare holds: an entry of version 0 is missing or incomplete; a folder exists.
	m *tree.Manifest
	// scrap reports that after a power failure too no name of it is that of a spare tree: its files may be written to where they are.
	scrap bool
}

// base is the tree that an archive is built from: its manifest (nil for none), its path, and next.scrap.
type base struct {
	m     *tree.Manifest
	path  string
	scrap bool
}

// lockBase returns the tree to build from, and keeps the background from it until release is called; taken is called when the caller has
// moved the tree away. It waits for the copying of a spare tree to stop, which takes one file in a paused store.
func (s *Store) lockBase() (b base, taken, release func()) {
	s.sparing.Lock()
	if s.next != nil {
		if ok, err := vfs.Exists(s.fs, s.nextPath()); err == nil && ok {
			return base{s.next.m, s.nextPath(), s.next.scrap}, func() { s.next = nil }, s.sparing.Unlock
		}
		s.next = nil
	}
	return base{s.loadSpare(), s.sparePath(), false}, func() {}, s.sparing.Unlock
}

func (s *Store) nextPath() string { return filepath.Join(s.dir(), nextSpare) }

// hasNext reports whether there is an incomplete spare tree.
func (s *Store) hasNext() bool {
	s.sparing.Lock()
	defer s.sparing.Unlock()
	return s.next != nil
}

// dropNext removes it.
func (w *compaction) dropNext() error {
	unlock, err := w.lockSparing()
	if err != nil {
		return err
	}
	defer unlock()
	w.s.next = nil
	return w.s.reaper.Remove(w.s.nextPath())
}

// dropSpare removes the spare tree, and one that is being made.
func (s *Store) dropSpare() error {
	s.copying.stop()
	s.sparing.Lock()
	s.next = nil
	err := s.reaper.Remove(s.nextPath())
	s.sparing.Unlock()
	if serr := s.reaper.Remove(s.sparePath()); err == nil {
		err = serr
	}
	return err
}

// sweepNext removes an incomplete spare tree of an earlier process.
func (s *Store) sweepNext() error {
	s.sparing.Lock()
	defer s.sparing.Unlock()
	if s.next != nil {
		return nil
	}
	return s.reaper.Remove(s.nextPath())
}

// recyclable reports whether the tree of an archive is a better spare tree than the existing one: it is newer, and not from before the
// project had content.
func (s *Store) recyclable(sizes Sizes, scanned int64, newest Sizes) bool {
	if s.cfg.NoSpare || sizes.Files*2 < newest.Files {
		return false
	}
	old, ok := s.spareFacts()
	return !ok || old.scanned <= scanned
}

// burst is the interval between deployments below which the next one must not wait for packing.
const burst = 10 * time.Second

// inBurst reports whether the newest archive came within burst of the previous one.
func (s *Store) inBurst() (bool, error) {
	all, err := s.List()
	return len(all) > 1 && all[0].At.Sub(all[1].At) < burst, err
}

// Prepare makes a spare tree soon after a deployment, or brings it up to date, unless Make would copy nothing without it: a tree that it packs at
// once. If there is none it packs the oldest archive that holds about as much as the newest, whose tree becomes the spare one. If it can't, or the
// newest archive came within ten seconds of the one before, it copies the live tree, which other deployments may interrupt; an interrupted copy is continued later. Otherwise the contract is that of Compact; only
// one of the two runs at a time for a store, and the other returns without doing anything. made reports that a spare tree was made or changed.
func (s *Store) Prepare(ctx context.Context, p Policy) (made bool, err error) {
	const op = "prepare the next archive"
	w := &compaction{s: s, ctx: ctx, soon: true}
	s.tended.Store(true)
	if s.cfg.NoSpare || !w.alone() {
		return false, nil
	}
	defer w.over()
	if err := w.begin(); err != nil {
		return false, err
	}
	defer w.end()
	all, err := s.List()
	if err != nil || len(all) == 0 || s.sparedSince(all[0]) {
		return false, err
	}
	w.small = s.manySmall(all[0].Sizes)
	switch {
	case w.small && (s.hasNext() || s.hasSpare()):
		return false, nil
	case w.small && all[0].Packed != nil: // the next archive shares its base
		s.lookNow(ctx)
		return false, nil
	}
	over, err := s.cfg.Begin()
	if err != nil {
		return false, explain(op, err)
	}
	defer over()
	if !w.small {
		if made, err = w.prepare(p); err != nil {
			return made, w.failed(op, err)
		}
	}
	if w.small {
		if err = s.writeAhead(ctx, false); err != nil {
			return made, w.failed(op, err)
		}
	}
	return made, nil
}

// Settled is how long after a deployment Prepare is worth calling: until it looks at the trees, what the last step changed is not racy any more in most
// deployments. What still is, is copied again by the next one.
const Settled = tree.RacyWindow / 2

func (w *compaction) prepare(p Policy) (bool, error) {
	s := w.s
	if s.hasNext() || s.hasSpare() {
		return w.spare(p)
	}
	all, err := s.plainOnes()
	if err != nil {
		return false, err
	}
	inBurst, err := s.inBurst()
	if err != nil {
		return false, err
	}
	for i := len(all) - 1; i > 0 && !inBurst; i-- {
		a := all[i]
		if a.Verdict == Pending || a.Sizes.Files == 0 || a.Sizes.Files*2 < all[0].Sizes.Files {
			continue
		}
		if _, err := w.pack(a); err == nil {
			return s.hasSpare(), nil
		} else if w.ctx.Err() != nil {
			return false, err
		}
		break // Compact reports why it can't be packed
	}
	return w.spare(p)
}

// sparedSince reports whether there is a spare tree that is not older than what the deployment of the newest archive made live.
func (s *Store) sparedSince(newest Archive) bool {
	f, ok := s.spareFacts()
	return ok && f.scanned >= newest.At.UnixNano()
}

// lockSparing is lock, for what changes where the spare tree is.
func (w *compaction) lockSparing() (unlock func(), err error) {
	over, err := w.lock()
	if err != nil {
		return nil, err
	}
	w.s.sparing.Lock()
	return func() { w.s.sparing.Unlock(); over() }, nil
}

// reopen makes the spare tree the one that copyLive continues, if it is older than what is live.
func (w *compaction) reopen() (bool, error) {
	s := w.s
	unlock, err := w.lockSparing()
	if err != nil {
		return false, err
	}
	defer unlock()
	all, err := s.List()
	if err != nil || len(all) == 0 || s.next != nil || s.sparedSince(all[0]) {
		return false, err
	}
	m := s.loadSpare()
	if m == nil {
		return false, nil
	}
	if err := s.reaper.Remove(s.nextPath()); err != nil {
		return false, err
	}
	if err := s.fs.Rename(s.sparePath(), s.nextPath()); err != nil {
		return false, err
	}
	s.next = &next{m, false} // its name is not durable
	return true, nil
}

// spare makes a spare tree of what is live, or brings the existing one up to date, so that the next archive need not be copied. It stops as soon as a
// deployment needs the disk, and the archive of that deployment reuses what was copied; otherwise the next call continues.
func (w *compaction) spare(p Policy) (made bool, err error) {
	s := w.s
	if s.cfg.NoSpare {
		return false, nil
	}
	if p.MaxBytes > 0 {
		all, err := s.List()
		if err != nil || len(all) == 0 {
			return false, err
		}
		total := all[0].Sizes.Disk + Disk(all)
		if total > p.MaxBytes {
			return false, w.dropNext()
		}
	}
	defer s.use(s.nextPath())()
	if !s.hasNext() && s.hasSpare() {
		if open, err := w.reopen(); err != nil || !open {
			return false, err
		}
	}
	for {
		m, err := w.copyLive()
		switch {
		case vfs.IsFull(err):
			return false, s.dropSpare() // a spare tree is optional
		case err != nil:
			return false, err
		case m != nil:
			return w.publishSpare(m)
		case s.gate.waiting() == nil:
			return false, nil // no room, or interrupted
		}
		// A deployment has the disk. Unless its archive reuses the copy, copying continues afterwards.
		if err := w.pause(); err != nil || s.hasSpare() {
			return false, err
		}
	}
}

// copyLive continues the next spare tree. It returns its manifest when it is complete, and nil if it was interrupted or there is no room.
func (w *compaction) copyLive() (whole *tree.Manifest, err error) {
	s := w.s
	s.sparing.Lock()
	defer s.sparing.Unlock()
	ctx, done := s.copying.begin(w.ctx)
	defer done()
	if s.gate.waiting() != nil {
		return nil, nil
	}
	src, err := s.fs.OpenDir(s.project.Dir())
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	t, begun, err := w.scan(ctx, src)
	if ctx.Err() != nil {
		return nil, w.ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if w.small = s.manySmall(count(t.Entries)); w.soon && w.small {
		return nil, nil
	}
	var have *tree.Manifest
	scrap := true
	if s.next != nil {
		have, scrap = s.next.m, s.next.scrap
	}
	pl := tree.NewPlan(t.Entries, s.reference(), have, begun)
	if err := s.checkSpace(pl); err != nil {
		return nil, nil //nolint:nilerr // a spare tree is optional
	}
	s.next = nil
	if have == nil {
		if err := s.reaper.Remove(s.nextPath()); err != nil {
			return nil, err
		}
		if err := s.fs.Mkdir(s.nextPath(), 0o700); err != nil {
			return nil, err
		}
	}
	dst, err := s.fs.OpenDir(s.nextPath())
	if err != nil {
		return nil, err
	}
	defer func() { _ = dst.Close() }()
	b := tree.NewCopier(tree.CopyOptions{Src: src, Dst: dst, Entries: t.Entries, Plan: pl, Workers: backgroundWorkers, Cold: t.Cold, Rewrite: scrap, KeepPartial: true})
	err = b.Run(ctx)
	if err != nil && ctx.Err() != nil {
		if have, ok := b.Partial(); ok {
			tree.MarkRacy(have, begun)
			s.next = &next{&tree.Manifest{Scanned: begun.UnixNano(), Entries: have}, scrap}
		}
		return nil, w.ctx.Err()
	}
	if err == nil {
		err = tree.RefreshRoots(dst, b.Entries)
	}
	if err != nil {
		return nil, err
	}
	tree.MarkRacy(b.Entries, begun)
	whole = &tree.Manifest{Scanned: begun.UnixNano(), Entries: b.Entries}
	if err := s.rewriteManifest(dst, whole, scrap); err != nil {
		return nil, err
	}
	tree.AsRead(whole.Entries)
	s.next = &next{whole, scrap}
	return whole, nil
}

// scan returns the live trees as they are now, and when the look at them began.
func (w *compaction) scan(ctx context.Context, src vfs.Dir) (t *tree.Scanned, begun time.Time, err error) {
	if w.soon {
		return w.s.lookAfter(w.ctx, ctx, src)
	}
	return w.s.scanNow(ctx, src)
}

// publishSpare makes a copied tree the spare one, unless a deployment has taken it meanwhile.
func (w *compaction) publishSpare(m *tree.Manifest) (bool, error) {
	s := w.s
	dst, err := s.fs.OpenDir(s.nextPath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = dst.SyncFS(".")
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return false, err
	}
	unlock, err := w.lockSparing()
	if err != nil {
		return false, err
	}
	defer unlock()
	if s.next == nil || s.next.m != m {
		return false, nil
	}
	s.next = nil
	if err := s.putSpare(s.nextPath()); err != nil {
		return false, err
	}
	if w.soon {
		s.remember(s.sparePath(), m, nil)
	}
	return true, nil
}

// backgroundWorkers is how many workers copy a spare tree: few, because nothing waits for it.
const backgroundWorkers = 2

// reference returns the newest manifest that can be read, or nil.
func (s *Store) reference() *tree.Reference {
	all, err := s.List()
	if err != nil {
		return nil // a full copy needs no reference
	}
	return s.referenceIn(all)
}

// referenceIn is reference of a list of archives.
func (s *Store) referenceIn(all []Archive) *tree.Reference {
	for _, a := range all {
		m, err := s.recentManifest(a.Path)
		if err != nil {
			continue
		}
		r := &tree.Reference{Manifest: m}
		if a.Rollback != nil && a.Rollback.Method == methodExchange {
			r.LiveSince = a.Rollback.Begun.Add(-vfs.LongestTick).UnixNano()
		}
		return r
	}
	return nil
}

// manifest reads the manifest in a folder.
func (s *Store) manifest(dir string) (*tree.Manifest, error) {
	b, err := vfs.ReadFile(s.fs, filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	return tree.DecodeManifest(b)
}

// rewriteManifest writes the manifest of an unfinished tree without syncing it, with rewrite over an earlier one. What is cached of that one is dropped, because within a tick of the
// clock it could be taken for the new one.
func (s *Store) rewriteManifest(dst vfs.Dir, m *tree.Manifest, rewrite bool) error {
	if st, err := dst.Lstat(manifestFile); err == nil {
		s.recent.forget(st.Dev, st.Ino, &s.cfg.Background.recent)
		s.spareRead.Store(nil)
		if !rewrite {
			if err := dst.Remove(manifestFile); err != nil {
				return err
			}
		}
	}
	return tree.Rewrite(dst, manifestFile, m.Encode(), 0o600)
}
