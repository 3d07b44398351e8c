package archive

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// nextFiles is where the base of the next archive is written ahead. What a crash leaves there is not used, and is removed by Sweep.
const nextFiles = tmpPrefix + "next-files"

// ahead is the base that was written for the next archive (ADR 4), known in memory only. mu is held while it is written or used.
type ahead struct {
	mu      sync.Mutex
	ready   *ready
	writing interrupt
	// asFolder reports that the archive made last had to be a folder, so that a base would be of no use.
	asFolder bool
}

// ready is such a base: packed trees that no archive has yet, and what they hold.
type ready struct {
	of   Archive // Path is the folder of the files
	m    *tree.Manifest
	over func() // forgets that the folder exists
}

// Ahead writes the base of the next archive while a first deployment ends, whose trees will not change any more: what the disk still has to write leaves the processor idle. ctx
// ends it. It does nothing while another project has the slot for background work: Prepare comes later. The error is only to be logged.
func (s *Store) Ahead(ctx context.Context) error {
	if s.cfg.NoSpare {
		return nil
	}
	select {
	case s.cfg.Background.slot <- struct{}{}:
		defer func() { <-s.cfg.Background.slot }()
		return s.writeAhead(ctx, true)
	default:
		return nil
	}
}

// writeAhead packs the live trees as the next Make would if it came now, unless that can take most of them from an archive. That Make, at the latest, uses the result or drops it:
// it waits for one that is being written, which takes no longer than writing it itself. A deployment that begins meanwhile therefore does not pause it. Nothing is written while as many
// other projects are deployed as there are processors.
func (s *Store) writeAhead(background context.Context, deploying bool) error {
	s.ahead.mu.Lock()
	defer s.ahead.mu.Unlock()
	others := s.cfg.Background.paused.Load()
	if deploying {
		others--
	} else if s.gate.waiting() != nil {
		return nil
	}
	if s.ahead.asFolder || others >= int64(runtime.GOMAXPROCS(0)) {
		return nil
	}
	if s.ahead.ready != nil {
		s.lookNow(background)
		return nil
	}
	ctx, done := s.ahead.writing.begin(background)
	defer done()
	err := s.packAhead(background, ctx)
	if ctx.Err() != nil || vfs.IsFull(err) || errors.Is(err, errNotAtOnce) {
		return nil // the next Make does without
	}
	return err
}

func (s *Store) packAhead(background, ctx context.Context) error {
	src, err := s.fs.OpenDir(s.project.Dir())
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // opened for reading
	t, begun, err := s.lookAfter(background, ctx, src)
	if err != nil {
		return err
	}
	here, err := s.fs.Lstat(s.dir())
	if err != nil {
		return err
	}
	z := count(t.Entries)
	if !s.manySmall(z) || !s.restorable(t.Entries, here.Dev) || s.checkNeed(Later{uint64(z.tar()), 3}, Later{}) != nil {
		return nil // a folder, then
	}
	n := int64(len(t.Entries))
	if total := &s.cfg.Background.recent; n > recentEach || total.Load()+n > recentAll {
		return nil
	}
	all, err := s.List()
	if err != nil {
		return err
	}
	p := tree.NewPlan(t.Entries, s.referenceIn(all), nil, begun)
	m := &making{s: s, tmp: filepath.Join(s.dir(), nextFiles), syncs: true}
	w, of := &compaction{s: s, ctx: ctx, front: true}, m.pending(t.Entries)
	if inc, err := w.increment(all, of, &tree.Manifest{Entries: t.Entries}); inc != nil || ctx.Err() != nil {
		return err
	}
	if err := s.reaper.Remove(m.tmp); err != nil {
		return err
	}
	end, err := s.cfg.Begin()
	if err != nil {
		return err
	}
	used := s.use(m.tmp)
	over := func() { used(); end() }
	err = s.fs.Mkdir(m.tmp, 0o700)
	var out *packed
	if err == nil {
		out, err = m.packAtOnce(ctx, src, t.Entries, p, nil)
	}
	if err != nil {
		err = errors.Join(err, s.reaper.Remove(m.tmp))
		over()
		return err
	}
	of.Packed = &out.Packed
	r := &ready{of: of, m: &tree.Manifest{Scanned: begun.UnixNano(), Entries: out.entries}, over: over}
	tree.MarkRacy(r.m.Entries, begun)
	tree.AsRead(r.m.Entries)
	s.cfg.Background.recent.Add(int64(len(r.m.Entries)))
	s.recent.keepLarge(out.large, &s.cfg.Background.large)
	s.ahead.ready = r
	return nil
}

// aheadFor returns the base that was written ahead, nil if there is none, and keeps others from it until done is called, which drops what was not used. It waits for one that is
// being written; the end of ctx ends that.
func (s *Store) aheadFor(ctx context.Context) (r *ready, done func()) {
	defer context.AfterFunc(ctx, s.ahead.writing.stop)()
	s.ahead.mu.Lock()
	return s.ahead.ready, sync.OnceFunc(func() {
		defer s.ahead.mu.Unlock()
		s.dropAhead()
	})
}

// DropAhead removes a base that was written ahead: no deployment is expected soon.
func (s *Store) DropAhead() {
	s.ahead.mu.Lock()
	defer s.ahead.mu.Unlock()
	s.dropAhead()
}

// dropAhead is DropAhead of a caller that holds ahead.mu.
func (s *Store) dropAhead() {
	r := s.ahead.ready
	if r == nil {
		return
	}
	s.ahead.ready = nil
	s.cfg.Background.recent.Add(-int64(len(r.m.Entries)))
	if vfs.RemoveAll(s.fs, r.of.Path) == nil { // otherwise it is left to the next start
		r.over()
	}
}

// increment is that of an archive whose base this is, nil if too much has changed since.
func (r *ready) increment(s *Store, a Archive, m *tree.Manifest) *increment {
	if r == nil {
		return nil
	}
	inc := incrementOf(s, r.of, r.m, nil, a, m)
	if inc != nil {
		inc.move = true
	}
	return inc
}

// recognize gives entries the versions that the base has.
func (r *ready) recognize(entries []tree.Entry) {
	if r != nil {
		tree.Recognize(entries, r.m)
	}
}

// restorable reports whether a rollback by this process restores entries of files exactly. dev is the file system of the archives.
func (s *Store) restorable(entries []tree.Entry, dev uint64) bool {
	uid, gid := s.cfg.User()
	for i := range entries {
		e := &entries[i]
		// What a rollback could not restore exactly is noted by a copy.
		if t := e.Type(); t == syscall.S_IFCHR || t == syscall.S_IFBLK || e.Live.Dev != dev || (uid != 0 && (int(e.UID) != uid || int(e.GID) != gid)) {
			return false
		}
	}
	return true
}
