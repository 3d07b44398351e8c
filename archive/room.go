package archive

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"corpus-git/archive/tree"
)

// Room returns the error that Make would return for a lack of space, and makes nothing: it looks at the trees as they are now. later is MakeRequest.Later.
func (s *Store) Room(ctx context.Context, later Later) error {
	s.work.Lock()
	defer s.work.Unlock()
	src, err := s.fs.OpenDir(s.project.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return s.checkNeed(Later{}, later)
	}
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	from, _, release := s.lockBase()
	defer release()
	m := &making{s: s, begun: s.cfg.FileTime(), req: MakeRequest{Later: later}}
	t, err := tree.Scan(ctx, src, trees(), s.cfg.Workers)
	if err != nil {
		return err
	}
	p := tree.NewPlan(t.Entries, s.reference(), from.m, m.begun)
	here, err := s.fs.Lstat(s.there())
	if err != nil {
		return err
	}
	if m.packsAtOnce(t.Entries, p, here.Dev) {
		if err := m.filesRoom(t); err == nil || s.cfg.Files {
			return err
		}
	}
	return s.checkRoom(p, later)
}

// there is the folder of the archives, or if there is none yet the nearest one above it that there is.
func (s *Store) there() string {
	for dir := s.dir(); ; dir = filepath.Dir(dir) {
		if _, err := s.fs.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}
