package archive

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Restore replaces the live trees with a copy of an archive's trees and deletes the live ones; the caller has made an archive of them
// before. The archive is unchanged. The copy is complete, durable and compared with the manifest before it goes live by an exchange of
// names. If the archive differs from what was recorded, in attributes or in content whose checksum is known, Restore returns a DamageError
// and the live trees are unchanged. It may be run again after any crash or error.
func (s *Store) Restore(ctx context.Context, id string, progress func(tree.Progress)) (Restored, error) {
	const op = "restore archive"
	s.work.Lock()
	defer s.work.Unlock()
	begun := s.cfg.Now()
	a, m, err := s.whole(id)
	if err != nil {
		return Restored{}, err
	}
	tmp := filepath.Join(s.dir(), tmpPrefix+"restore-"+filepath.Base(a.Path))
	if err := s.reaper.Remove(tmp); err != nil {
		return Restored{}, explain(op, err)
	}
	res := Restored{Method: methodExchange}
	if a.Packed == nil {
		if err := s.proveHeld(ctx, a, m, a.Trees, true); err != nil {
			return Restored{}, explain(op, err)
		}
	}
	entries, err := s.copyOut(ctx, a, m, tmp, false, progress)
	if err == nil {
		err = s.proveCopy(ctx, a, tmp, entries)
	}
	if err == nil {
		for _, name := range trees() {
			err = s.replace(tmp, name, m.Find(name) != nil)
			if errors.Is(err, errInPlace) {
				res.Method = methodInPlace
				entries, err = s.copyBack(ctx, tmp, entries, name)
			}
			if err != nil {
				break
			}
		}
	}
	res.Back = s.cfg.Now().Sub(begun)
	// tmp now holds what was live, or an incomplete copy.
	if rerr := s.reaper.Remove(tmp); err == nil {
		err = rerr
	}
	if err != nil {
		return Restored{}, explain(op, err)
	}
	if res.Proof, err = s.proveLive(ctx, &tree.Manifest{Entries: entries}); err != nil {
		return Restored{}, explain(op, err)
	}
	res.Took = s.cfg.Now().Sub(begun)
	return res, nil
}

// whole finds an archive that holds its tree.
func (s *Store) whole(id string) (Archive, *tree.Manifest, error) {
	a, err := s.Show(id)
	if err != nil {
		return a, nil, err
	}
	if !a.Whole {
		return a, nil, fault.New(fault.Refused, "open archive", "%w: %s went live again in a rollback", ErrNotWhole, filepath.Base(a.Path)).
			WithHint("its tree is the live one, or in a later archive: corpus-git archives list %s", s.project.Name())
	}
	m, err := s.manifest(a.Path)
	if err != nil {
		return a, nil, fault.New(fault.Internal, "open archive", "%s: %w", filepath.Base(a.Path), err)
	}
	return a, m, nil
}

// copyOut copies the trees of an archive to a new folder, durably. reserved reports that the space for them was kept free.
func (s *Store) copyOut(ctx context.Context, a Archive, m *tree.Manifest, to string, reserved bool, progress func(tree.Progress)) ([]tree.Entry, error) {
	entries := slices.Clone(m.Entries)
	if !reserved {
		if err := s.checkSpace(tree.PlanAll(entries)); err != nil {
			return nil, err
		}
	}
	if err := s.fs.Mkdir(to, 0o700); err != nil {
		return nil, err
	}
	dst, err := s.fs.OpenDir(to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dst.Close() }()
	if a.Packed != nil {
		entries, err = s.unpack(ctx, a, m, dst, progress)
	} else {
		entries, err = s.copyTrees(ctx, a.Path, entries, dst, s.cfg.Workers, progress)
	}
	if err != nil {
		return nil, err
	}
	return entries, dst.SyncFS(".")
}

// copyTrees copies archived trees to an empty folder. Nothing is synced.
func (s *Store) copyTrees(ctx context.Context, from string, entries []tree.Entry, dst vfs.Dir, workers int, progress func(tree.Progress)) ([]tree.Entry, error) {
	src, err := s.fs.OpenDir(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	b := tree.NewCopier(tree.CopyOptions{Src: src, Dst: dst, Entries: entries, Plan: tree.PlanAll(entries), Workers: workers, TrustAttrs: true, Progress: progress})
	if err := b.Run(ctx); err != nil {
		return nil, err
	}
	if n := b.Notes().Vanished; n > 0 {
		return nil, fault.New(fault.Internal, "copy archive", "%w: %d of its files are missing", ErrNotWhole, n)
	}
	return b.Entries, nil
}

// replace exchanges one live tree with its copy in tmp.
func (s *Store) replace(tmp, name string, want bool) error {
	live, held := filepath.Join(s.project.Dir(), name), filepath.Join(tmp, name)
	_, isLive, err := s.stat(live)
	switch {
	case err != nil:
		return err
	case want && isLive:
		return s.exchange(live, held)
	case want:
		return s.rename(held, live)
	case isLive:
		return s.rename(live, held)
	}
	return nil
}

// Manifest returns the manifest of an archive, whole or not.
func (s *Store) Manifest(id string) (*tree.Manifest, error) {
	a, err := s.Show(id)
	if err != nil {
		return nil, err
	}
	return s.manifest(a.Path)
}

// CompareLive compares the live trees with what an archive recorded.
func (s *Store) CompareLive(ctx context.Context, id string) (tree.Proof, error) {
	m, err := s.Manifest(id)
	if err != nil {
		return tree.Proof{}, err
	}
	return s.proveLive(ctx, m)
}

// Sweep removes what crashes left: incomplete archives, incomplete copies, trash. Deleting continues in the background. Archives whose
// rollback was interrupted are left for Rollback.
func (s *Store) Sweep() error {
	s.work.Lock()
	defer s.work.Unlock()
	names, err := s.fs.ReadDir(s.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range names {
		p := filepath.Join(s.dir(), n)
		switch {
		case s.inUse(p):
		case n == nextSpare:
			err = s.sweepNext()
		case strings.HasPrefix(n, tmpPrefix):
			err = s.reaper.Remove(p)
		case strings.HasPrefix(n, vfs.TrashPrefix):
			s.reaper.Delete(p)
		case n == spareDir:
			if !s.hasSpare() {
				err = s.reaper.Remove(p)
			}
		default:
			err = s.sweepInside(p)
		}
		if err != nil {
			return explain("sweep archives", err)
		}
	}
	return nil
}

func (s *Store) sweepInside(dir string) error {
	names, err := s.fs.ReadDir(dir)
	if err != nil {
		return nil //nolint:nilerr // a stray file is not ours
	}
	for _, n := range names {
		p := filepath.Join(dir, n)
		switch {
		case s.inUse(p):
		case strings.HasPrefix(n, tmpPrefix):
			err = s.reaper.Remove(p)
		case strings.HasPrefix(n, vfs.TrashPrefix):
			s.reaper.Delete(p)
		}
		if err != nil {
			return err
		}
	}
	a, err := s.read(dir)
	if err != nil {
		return nil //nolint:nilerr // not an archive, or one that List returns
	}
	switch unpacked, err := vfs.Exists(s.fs, a.rollbackPath()); {
	case err != nil:
		return err
	case !unpacked:
		return s.sweepPartial(a, a.Packed != nil)
	case a.Packed != nil: // a rollback was prepared here, and is not done
		return s.sweepPartial(a, false)
	}
	// The rollback is done; if another machine did it, what this one has of it is nothing.
	here, err := vfs.ReadFile(s.fs, a.rollbackPath())
	if err != nil {
		return err
	}
	done, err := vfs.ReadFile(s.fs, filepath.Join(a.Path, manifestFile))
	if err != nil {
		return err
	}
	if err := s.sweepPartial(a, !bytes.Equal(here, done)); err != nil {
		return err
	}
	return s.reaper.Remove(a.rollbackPath())
}

// sweepPartial removes what a crash between the steps of packing or unpacking left: packed files that its record does not name, and the folders, if they are not the archive.
func (s *Store) sweepPartial(a Archive, folders bool) error {
	for _, t := range a.Trees {
		var gone []string
		if folders {
			gone = append(gone, a.treePath(t))
		}
		for _, f := range a.allPackedFiles(t) {
			if a.Packed == nil || !slices.Contains(a.packedFiles(t), f) {
				gone = append(gone, f)
			}
		}
		for _, p := range gone {
			if err := s.reaper.Remove(p); err != nil {
				return err
			}
		}
	}
	return nil
}
