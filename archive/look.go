package archive

import (
	"context"
	"path/filepath"
	"time"

	"corpus-git/archive/early"
	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
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
	if deploying && s.look != nil && s.look.Age() > early.MaxAge/2 {
		s.look.Drop()
		s.look = nil
	}
	if s.look != nil {
		if deploying {
			return s.DropLook
		}
		return func() {}
	}
	l := early.Begin(ctx, early.Request{Notifier: s.cfg.Looks, FS: s.fs, Dir: s.project.Dir(), Trees: trees(), Workers: s.cfg.Workers, Now: s.cfg.FileTime, Known: s.knownNames})
	s.look = l
	end := time.AfterFunc(early.MaxAge, func() { s.dropLook(l) })
	return func() {
		end.Stop()
		if deploying {
			s.DropLook()
			return
		}
		s.dropLook(l)
	}
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
