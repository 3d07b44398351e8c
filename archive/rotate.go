package archive

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// Policy defines which archives a rotation keeps.
type Policy struct {
	// Keep is the number of archives of good deployments to keep, not counting pinned ones; values below 1 mean 1.
	Keep int
	// KeepFailed is the number of archives of failed deployments to keep, with the failed tree; 0 means 1, a negative value none.
	KeepFailed int
	// MaxAge is the age at which archives of good deployments are removed, MaxFailedAge that of failed ones, counted from the deployment's
	// time. 0 means no limit.
	MaxAge, MaxFailedAge time.Duration
	// MaxBytes is the disk space that all archives of the project may take (Archive.Own, and the spare tree). Above it failed ones are removed,
	// oldest first, then good ones, then the spare tree. 0 means no limit. Archives that Rotate never removes may exceed it.
	MaxBytes int64
	// Protect reports archives to keep regardless of the limits, such as the one that a deployment is about to restore. nil protects none.
	Protect func(Archive) bool
	// Squeeze frees as much as possible: the spare tree and every failed tree are removed too, and nothing is kept for recycling. The space
	// is free when Rotate returns.
	Squeeze bool

	noSpare bool
}

// Rotation reports what a rotation did.
type Rotation struct {
	Removed []Archive `json:"removed"`
	Kept    int       `json:"kept"`
	// Freed is the disk space that removing them frees, without what other archives share with them.
	Freed int64 `json:"freed"`
	// Recycled reports that one removed tree was kept as the spare tree (".spare"): the next Make copies only what changed since.
	Recycled bool `json:"recycled,omitempty"`
}

// Rotate removes archives that the policy does not keep, oldest first: good deployments beyond Keep, failed ones beyond KeepFailed, those
// that are too old, and those over MaxBytes. It keeps pinned and protected archives, those whose deployment has no verdict or whose
// rollback is not done, the newest good one and, as far as Keep allows, the one before it. An archive is durably removed from List before
// any of it is deleted; deleting continues in the background (Wait). It is safe to run again after a crash.
func (s *Store) Rotate(p Policy) (Rotation, error) {
	s.work.Lock()
	defer s.work.Unlock()
	return s.rotate(p)
}

// Preview reports what Rotate would do now, and changes nothing.
func (s *Store) Preview(p Policy) (Rotation, error) {
	all, err := s.List()
	if err != nil {
		return Rotation{}, err
	}
	c, _ := s.chooseOf(all, p.normal())
	return Rotation{Removed: c.expired, Kept: len(c.kept), Freed: c.frees()}, nil
}

// safeGood is how many good archives are kept regardless of age and size: what was live before the live deployment, and before that.
const safeGood = 2

// choice divides archives, newest first, into those to keep and those to remove.
type choice struct {
	kept, expired []Archive
	safe          map[string]bool // IDs of those that no limit removes
}

func (p Policy) choose(all []Archive, now time.Time) choice {
	c := choice{safe: map[string]bool{}}
	good, failed := 0, 0
	old := func(a Archive, limit time.Duration) bool { return limit > 0 && now.Sub(a.At) > limit }
	for _, a := range all {
		stays := true
		switch {
		case a.Pinned || a.Verdict == Pending || (a.Rollback != nil && a.Rollback.Done.IsZero()):
			c.safe[a.ID] = true
		case a.Verdict == Good:
			good++
			c.safe[a.ID] = good <= min(safeGood, p.Keep) || p.protects(a)
			stays = c.safe[a.ID] || (good <= p.Keep && !old(a, p.MaxAge))
		default:
			failed++
			c.safe[a.ID] = p.protects(a)
			stays = c.safe[a.ID] || (failed <= p.KeepFailed && !old(a, p.MaxFailedAge))
		}
		if stays {
			c.kept = append(c.kept, a)
		} else {
			c.expired = append(c.expired, a)
		}
	}
	return c
}

// shrink moves archives beyond the size limit from those to keep to those to remove, and returns the size of the rest.
func (c *choice) shrink(limit, spare int64) (total int64) {
	use := usageOf(c.kept)
	total = spare + use.total
	for _, failedOnes := range []bool{true, false} {
		for i := len(c.kept) - 1; i >= 0 && total > limit; i-- {
			a := c.kept[i]
			if c.safe[a.ID] || (a.Verdict != Good) != failedOnes {
				continue
			}
			total -= use.without(a)
			c.kept = slices.Delete(c.kept, i, i+1)
			c.expired = append(c.expired, a)
		}
	}
	return total
}

// frees returns the space that only the removed archives take.
func (c *choice) frees() int64 { return Disk(slices.Concat(c.kept, c.expired)) - Disk(c.kept) }

func (s *Store) rotate(p Policy) (Rotation, error) { return s.rotateLate(p, nil) }

// rotateLate is rotate with the work after the renames left to settle; if late is nil nothing is left.
func (s *Store) rotateLate(p Policy, late *unsettled) (Rotation, error) {
	all, err := s.List()
	if err != nil {
		return Rotation{}, err
	}
	p = p.normal()
	c, over := s.chooseOf(all, p)
	p.noSpare = p.noSpare || over
	var r Rotation
	r.Kept, r.Freed = len(c.kept), c.frees()
	expired := c.expired
	if p.noSpare {
		if err := s.dropSpare(); err != nil {
			return r, explain("rotate archives", err)
		}
	}
	for _, a := range expired {
		x := expiring{a: a, newest: all[0].Sizes, recycle: !p.noSpare && p.MaxBytes == 0}
		recycled, err := s.expire(x, r.Recycled, late)
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

// chooseOf applies all limits of a policy; over reports that the spare tree must be removed too.
func (s *Store) chooseOf(all []Archive, p Policy) (c choice, over bool) {
	c = p.choose(all, s.cfg.Now())
	return c, p.MaxBytes > 0 && c.shrink(p.MaxBytes, s.spareDisk()) > p.MaxBytes
}

func (p Policy) normal() Policy {
	p.Keep = max(p.Keep, 1)
	p.noSpare = p.Squeeze
	switch {
	case p.Squeeze || p.KeepFailed < 0:
		p.KeepFailed = 0
	case p.KeepFailed == 0:
		p.KeepFailed = 1
	}
	return p
}

func (p Policy) protects(a Archive) bool { return p.Protect != nil && p.Protect(a) }

// expire removes an archive from the list, and deletes it or keeps its tree as the base of the next archive, unless another one was recycled.
// If late is not nil, everything after the rename is left to settle.
func (s *Store) expire(x expiring, other bool, late *unsettled) (recycled bool, err error) {
	rename := vfs.RenameDurable
	if late != nil {
		rename = vfs.FS.Rename
	}
	if err := rename(s.fs, x.a.Path, s.trash(x.a)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if late != nil {
		late.trees = append(late.trees, x)
		return false, nil
	}
	return s.dispose(x, !other), nil
}

func (s *Store) trash(a Archive) string {
	return filepath.Join(s.dir(), vfs.TrashPrefix+filepath.Base(a.Path))
}

// dispose recycles or deletes an archive whose new name is durable. newest are the sizes of the newest one.
func (s *Store) dispose(x expiring, recycle bool) (recycled bool) {
	a, trash := x.a, s.trash(x.a)
	if x.recycle && recycle && a.Whole && a.Packed == nil && !s.cfg.NoSpare && len(a.Trees) > 0 {
		// Recycling only saves work: if it fails, the tree is deleted with the rest.
		m, err := s.recentManifest(trash)
		switch {
		case err != nil || !s.recyclable(a.Sizes, m.Scanned, x.newest):
		case s.becomesNext(a, trash, m):
			return true
		default:
			recycled = s.makeSpare(a.Trees, trash, m, m.Encode()) == nil
		}
	}
	s.reaper.Delete(trash)
	return recycled
}

// becomesNext makes the folder of an archive, at path, which no name of a whole tree can be after a power failure, the spare tree that Prepare or Compact complete, if it has
// nothing but the trees, their manifest and the record: nothing is created or removed for that.
func (s *Store) becomesNext(a Archive, path string, m *tree.Manifest) bool {
	names, err := s.fs.ReadDir(path)
	if err != nil || !s.tended.Load() || slices.ContainsFunc(names, func(n string) bool {
		return n != manifestFile && n != recordFile && !slices.Contains(a.Trees, n)
	}) {
		return false
	}
	if !s.sparing.TryLock() {
		return false
	}
	defer s.sparing.Unlock()
	if s.next != nil || s.reaper.Remove(s.sparePath()) != nil || s.fs.Rename(path, s.nextPath()) != nil { // of an earlier process there may be one
		return false
	}
	s.next = &next{m, true}
	return true
}

// makeSpare moves the trees of an archive, with their manifest, m, to where Make looks for them. None of it is durable: a spare tree
// that lost its manifest or trees in a power cut is ignored, and no archive needs the trees any more.
func (s *Store) makeSpare(names []string, from string, m *tree.Manifest, manifest []byte) error {
	tmp := filepath.Join(s.dir(), tmpPrefix+"spare")
	if err := s.reaper.Remove(tmp); err != nil {
		return err
	}
	err := s.fs.Mkdir(tmp, 0o700)
	if err == nil {
		err = s.writeSynced(filepath.Join(tmp, manifestFile), manifest, false)
	}
	for _, n := range names {
		if err == nil {
			err = s.fs.Rename(filepath.Join(from, n), filepath.Join(tmp, n))
		}
	}
	if err == nil {
		if err = s.reaper.Remove(s.sparePath()); err == nil {
			err = s.fs.Rename(tmp, s.sparePath())
		}
	}
	if err == nil {
		s.remember(s.sparePath(), m, nil)
	} else {
		_ = s.reaper.Remove(tmp) // what can't be removed now is left to Sweep
	}
	return err
}

// putSpare makes a finished tree the spare one.
func (s *Store) putSpare(tmp string) error {
	if err := s.reaper.Remove(s.sparePath()); err != nil {
		return err
	}
	return vfs.RenameDurable(s.fs, tmp, s.sparePath())
}

// Spare returns the disk space of the spare tree, according to its manifest; 0 if there is none. One that is being copied does not count yet.
func (s *Store) Spare() int64 { return s.spareDisk() }

func (s *Store) spareDisk() int64 {
	f, _ := s.spareFacts()
	if s.sparing.TryLock() {
		if s.next != nil {
			f.disk += count(s.next.m.Entries).Disk
		}
		s.sparing.Unlock()
	}
	return f.disk
}
