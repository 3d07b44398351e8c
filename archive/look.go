package archive

import (
	"context"
	"path/filepath"
	"time"

	"corpus-git/archive/early"
	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/changed"
)

// Look begins to look at the live trees in the background, for an archive that may be made soon. It does nothing without Config.Looks, if a look is
// under way, and, unless the caller is that deployment itself, while a deployment has paused the store. drop ends the look, unless an archive was
// made of it; of the deployment's own call, whichever there is.
func (s *Store) Look(ctx context.Context, deploying bool) (drop func()) {
	if s.cfg.Looks == nil || (!deploying && s.gate.waiting() != nil) {
		return func() {}
	}
	s.lookMu.Lock()
	defer s.lookMu.Unlock()
	if s.look != nil && s.look.Age() > early.MaxAge/2 {
		s.look.Drop()
		s.look = nil
	}
	if s.look != nil {
		if deploying {
			return s.DropLook
		}
		return func() {}
	}
	l, end := s.beginLook(ctx, s.cfg.Looks)
	return func() {
		end.Stop()
		if deploying {
			s.DropLook()
			return
		}
		s.dropLook(l)
	}
}

// beginLook begins a look, which lookMu guards and end drops.
func (s *Store) beginLook(ctx context.Context, n *changed.Notifier) (l *early.Look, end *time.Timer) {
	l = early.Begin(ctx, early.Request{Notifier: n, FS: s.fs, Dir: s.project.Dir(), Trees: trees(), Workers: s.cfg.Workers, Now: s.cfg.FileTime, Known: s.knownNames})
	s.look = l
	return l, time.AfterFunc(early.MaxAge, func() { s.dropLook(l) })
}

// lookNow begins a look right after a deployment, for the archive of a push that follows soon, and returns it, or one that is under way; nil if there is none.
func (s *Store) lookNow(ctx context.Context) *early.Look {
	s.lookMu.Lock()
	defer s.lookMu.Unlock()
	if s.look == nil && s.cfg.LooksAfter != nil && s.gate.waiting() == nil {
		s.beginLook(ctx, s.cfg.LooksAfter)
	}
	return s.look
}

// lookAfter returns the live trees as they are now, and when the look at them began, by lookNow if it can. background is that of all work of the process, ctx of this one.
func (s *Store) lookAfter(background, ctx context.Context, src vfs.Dir) (t *tree.Scanned, begun time.Time, err error) {
	if l := s.lookNow(background); l != nil {
		if t, begun, err = l.Found(ctx); err == nil || ctx.Err() != nil {
			return t, begun, err
		}
		s.dropLook(l) // the kernel notes nothing here, or an archive has taken it
	}
	return s.scanNow(ctx, src)
}

// scanNow is a scan in the background without a look.
func (s *Store) scanNow(ctx context.Context, src vfs.Dir) (t *tree.Scanned, begun time.Time, err error) {
	begun = s.cfg.FileTime()
	t, err = tree.Scan(ctx, src, trees(), backgroundWorkers)
	return t, begun, err
}

// knownNames returns the names that the newest archive knows of the live trees, nil if its manifest is not in memory.
func (s *Store) knownNames() *tree.Known {
	all, err := s.List()
	if err != nil || len(all) == 0 {
		return nil // the look lists every folder
	}
	st, err := s.fs.Lstat(filepath.Join(all[0].Path, manifestFile))
	if err != nil {
		return nil
	}
	return tree.KnownFrom(s.recent.find(tree.IdentOf(st), st.Size).m)
}

// DropLook ends a look that is under way: something ran that may change the trees by other means than the kernel notes.
func (s *Store) DropLook() { s.dropLook(nil) }

// dropLook ends a look, nil for whichever there is.
func (s *Store) dropLook(l *early.Look) {
	s.lookMu.Lock()
	defer s.lookMu.Unlock()
	if s.look != nil && (l == nil || s.look == l) {
		s.look.Drop()
		s.look = nil
	}
}

// scan returns the live trees as they are now, and when the look at them began.
func (m *making) scan(ctx context.Context, src vfs.Dir) (t *tree.Scanned, begun time.Time, err error) {
	s := m.s
	s.lookMu.Lock()
	l := s.look
	s.look = nil
	s.lookMu.Unlock()
	if l != nil {
		if t, begun, err = l.Take(ctx, src); err == nil {
			return t, begun, nil
		}
	}
	t, err = tree.Scan(ctx, src, trees(), s.cfg.Workers)
	return t, m.begun, err
}
