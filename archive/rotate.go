package archive

import (
	"errors"
	"io/fs"
	"path/filepath"

	"corpus-git/internal/vfs"
)

// Policy says what a rotation keeps.
type Policy struct {
	// Keep is how many archives of good deployments stay, pinned ones apart; below 1 is 1.
	Keep int
	// KeepFailed is how many archives of failed deployments stay, with the failed tree; 0 is 1, below 0 is none.
	KeepFailed int
	// Protect keeps an archive whatever its age: that of the live deployment and of the previous one. nil protects none.
	Protect func(Archive) bool
	// Squeeze frees what can be freed: the spare tree and every failed tree go too, and nothing is kept for recycling.
	// The space is free when Rotate returns.
	Squeeze bool
}

// Rotation tells what a rotation did.
type Rotation struct {
	Removed []Archive `json:"removed"`
	Kept    int       `json:"kept"`
	// Recycled tells that one removed tree waits to become the next archive (".spare"): the next Make copies only what
	// changed since.
	Recycled bool `json:"recycled,omitempty"`
}

// Rotate removes archives that the policy does not keep: from the oldest, good deployments beyond Keep, failed ones beyond
// KeepFailed. Pinned and protected archives stay, those whose deployment has no verdict or whose rollback is not done,
// and the newest good one. An archive is gone from List, durably, before anything of it is deleted; the deleting is in
// the background (Wait). Safe to run again after a crash.
func (s *Store) Rotate(p Policy) (Rotation, error) {
	all, err := s.List()
	if err != nil {
		return Rotation{}, err
	}
	p = p.normal()
	var r Rotation
	good, failed := 0, 0
	var expired []Archive
	for _, a := range all {
		switch {
		case a.Pinned || a.Verdict == Pending || (a.Rollback != nil && a.Rollback.Done.IsZero()):
			r.Kept++
			continue
		case a.Verdict == Good:
			good++
			if good <= p.Keep || p.protects(a) {
				r.Kept++
				continue
			}
		default:
			failed++
			if failed <= p.KeepFailed || p.protects(a) {
				r.Kept++
				continue
			}
		}
		expired = append(expired, a)
	}
	if p.Squeeze {
		if err := s.reaper.Remove(s.sparePath()); err != nil {
			return r, explain("rotate archives", err)
		}
	}
	for _, a := range expired {
		recycled, err := s.expire(a, !p.Squeeze && !r.Recycled)
		if err != nil {
			return r, explain("rotate archives", err)
		}
		r.Recycled = r.Recycled || recycled
		r.Removed = append(r.Removed, a)
	}
	if p.Squeeze {
		return r, s.Wait()
	}
	return r, nil
}

func (p Policy) normal() Policy {
	p.Keep = max(p.Keep, 1)
	switch {
	case p.Squeeze || p.KeepFailed < 0:
		p.KeepFailed = 0
	case p.KeepFailed == 0:
		p.KeepFailed = 1
	}
	return p
}

func (p Policy) protects(a Archive) bool { return p.Protect != nil && p.Protect(a) }

// expire takes an archive off the list and deletes it, or keeps its tree for the next archive to be built from.
func (s *Store) expire(a Archive, recycle bool) (recycled bool, err error) {
	trash := filepath.Join(s.dir(), vfs.TrashPrefix+filepath.Base(a.Path))
	if err := vfs.RenameDurable(s.fs, a.Path, trash); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if recycle && a.Whole && !s.cfg.NoSpare && len(a.Trees) > 0 {
		// Recycling only saves work: where it does not succeed the tree is deleted with the rest.
		recycled = s.makeSpare(a, trash) == nil
	}
	s.reaper.Delete(trash)
	return recycled, nil
}

// makeSpare moves the trees and the manifest of an expired archive to where Make looks for them.
func (s *Store) makeSpare(a Archive, from string) error {
	tmp := filepath.Join(s.dir(), tmpPrefix+"spare")
	for _, p := range []string{tmp, s.sparePath()} {
		if err := s.reaper.Remove(p); err != nil {
			return err
		}
	}
	if err := s.fs.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	for _, n := range append([]string{manifestFile}, a.Trees...) {
		if err := s.fs.Rename(filepath.Join(from, n), filepath.Join(tmp, n)); err != nil {
			_ = s.reaper.Remove(tmp)
			return err
		}
	}
	if err := vfs.SyncDir(s.fs, tmp); err != nil {
		_ = s.reaper.Remove(tmp)
		return err
	}
	return vfs.RenameDurable(s.fs, tmp, s.sparePath())
}
