package archive

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// StagedVerdict is a verdict written to a temporary file beside the record of its archive. The zero value is none.
type StagedVerdict struct {
	path, tmp string
	id        string
	verdict   Verdict
	was       []byte // the record it is based on
	// Covered is the device number of a file system that was synced since StageVerdict, 0 for none.
	Covered uint64
	record  Record
}

// StageVerdict writes the verdict that Conclude will give the archive of a deployment, without syncing: a caller that syncs the file system
// before Conclude saves Conclude that sync. A crash leaves a temporary file. It returns the zero value if there is no such archive or the
// verdict can't be written.
func (s *Store) StageVerdict(at time.Time, id string, v Verdict) StagedVerdict {
	path := s.project.Archive(at, id)
	out := StagedVerdict{path: path, id: id, verdict: v, tmp: vfs.TempName(filepath.Join(path, recordFile))}
	var err error
	if out.was, err = vfs.ReadFile(s.fs, filepath.Join(path, recordFile)); err != nil {
		return StagedVerdict{}
	}
	a, err := s.read(path)
	if err != nil || a.ID != id {
		return StagedVerdict{}
	}
	a.Verdict = v
	out.record = a.Record
	text, err := out.record.encode()
	if err == nil {
		err = s.writeSynced(out.tmp, text, false)
	}
	if err != nil {
		_ = s.fs.Remove(out.tmp)
		return StagedVerdict{}
	}
	return out
}

// Abandon removes what was staged.
func (s *Store) Abandon(v StagedVerdict) {
	if v.tmp != "" {
		_ = s.fs.Remove(v.tmp)
	}
}

// writeSynced writes a file, and syncs it if asked to.
func (s *Store) writeSynced(path string, data []byte, sync bool) error {
	f, err := s.fs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Conclude is SetVerdict and Rotate, visible at once, and durable when settle returns, not before. Nothing that was removed from the list is
// deleted before that. If there is no such archive, nothing is done. The caller calls settle once, also after an error, and may call it
// concurrently with all other methods of the store.
func (s *Store) Conclude(id string, v Verdict, staged StagedVerdict, p Policy) (settle func() error, err error) {
	var late unsettled
	settle = func() error { return s.settle(&late) }
	if staged.id != id || staged.verdict != v || !s.putStaged(staged, &late) {
		s.Abandon(staged)
		switch err := s.SetVerdict(id, v); {
		case errors.Is(err, ErrNotFound):
			return settle, nil // it was skipped, or failed itself
		case err != nil:
			return settle, err
		}
	}
	s.work.Lock()
	defer s.work.Unlock()
	_, err = s.rotateLate(p, &late)
	return settle, err
}

// unsettled is what was renamed and is not synced yet.
type unsettled struct {
	folders []string
	// trees are archives that were removed from the list and wait to be recycled or deleted.
	trees []expiring
}

// expiring is an archive whose folder was renamed.
type expiring struct {
	a       Archive
	newest  Sizes
	recycle bool
}

// putStaged renames a staged verdict into place, unless the record has changed since.
func (s *Store) putStaged(v StagedVerdict, late *unsettled) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := vfs.ReadFile(s.fs, filepath.Join(v.path, recordFile))
	if err != nil || string(now) != string(v.was) {
		return false
	}
	if err := syncFile(s.fs, v.tmp, v.Covered); err != nil {
		return false
	}
	var old vfs.Held
	defer old.Release()
	old.Keep(s.fs, filepath.Join(v.path, recordFile))
	if err := s.fs.Rename(v.tmp, filepath.Join(v.path, recordFile)); err != nil {
		return false
	}
	late.folders = append(late.folders, v.path)
	s.releaseSpace(Archive{Record: v.record, Path: v.path})
	return true
}

// syncFile syncs the content of a file.
func syncFile(f vfs.FS, path string, covered uint64) error {
	h, err := f.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(vfs.SyncUnlessCovered(h, covered), h.Close())
}

// settle makes the renames durable, and recycles or deletes what was removed from the list.
func (s *Store) settle(late *unsettled) error {
	if len(late.trees) > 0 {
		late.folders = append(late.folders, s.dir())
	}
	for _, d := range late.folders {
		if err := vfs.SyncDir(s.fs, d); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault.New(fault.Internal, "rotate archives", "%w", err) // Sweep deletes the trees after a crash
		}
	}
	if len(late.trees) == 0 {
		return nil
	}
	s.work.Lock()
	defer s.work.Unlock()
	recycled := false
	for _, x := range late.trees {
		recycled = s.dispose(x, !recycled) || recycled
	}
	return nil
}
