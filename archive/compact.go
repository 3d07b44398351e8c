package archive

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// Compacted reports what a Compact did.
type Compacted struct {
	// Busy reports that another Compact of this store was running and this one did nothing.
	Busy bool `json:"busy,omitempty"`
	// Packed archives were folders and are files now. Freed is the difference on disk; a tree that became the spare one does not count.
	Packed []Archive `json:"packed,omitempty"`
	Freed  int64     `json:"freed"`
	// Refused archives stay folders.
	Refused []Refusal `json:"refused,omitempty"`
	// Sealed counts the files of the newest archive whose checksum was recorded, for Verify to compare with.
	Sealed int `json:"sealed,omitempty"`
	// Spared reports that there was no spare tree for the next archive and that one was made.
	Spared bool `json:"spared,omitempty"`
	// Rotation is what the policy's limits removed, with their current sizes.
	Rotation Rotation `json:"rotation"`
}

// Refusal is an archive that could not be packed, and why.
type Refusal struct {
	ID  string `json:"id"`
	Err error  `json:"-"`
	Why string `json:"why"`
}

// Compact does the work that can wait until after a deployment: it packs every archive but the newest whole one into <tree>.tar.zst,
// applies the limits of the policy, makes a spare tree for the next Make if there is none (as Prepare does sooner), measures failed
// trees, and records checksums of the newest archive.
//
// It is meant to run in its own goroutine, while no deployment runs. It may run concurrently with all other methods of the store: it takes
// one slot for all projects (Config.Background), stops while the store is paused (Pause), and ends soon after ctx does. A packed archive is
// durable, was read back from the disk, and agrees with its manifest in every entry and every byte of content before its folder is touched.
// A crash leaves the folder or the files, whichever the record names; Sweep removes the other. An archive that can't be packed stays a
// folder and is listed in Refused; that is not an error.
func (s *Store) Compact(ctx context.Context, p Policy) (Compacted, error) {
	const op = "compact archives"
	var out Compacted
	w := &compaction{s: s, ctx: ctx}
	s.tended.Store(true)
	if !w.alone() {
		out.Busy = true
		return out, nil
	}
	defer w.over()
	if err := w.begin(); err != nil {
		return out, err
	}
	defer w.end()
	if all, err := s.List(); err != nil || len(all) == 0 {
		return out, err
	}
	over, err := s.cfg.Begin()
	if err != nil {
		return out, explain(op, err)
	}
	defer over()
	s.recent.drop(&s.cfg.Background.recent, &s.cfg.Background.large) // the next deployment may be far off
	s.DropAhead()
	if s.hasNext() { // what becomes the spare tree below is older
		if out.Spared, err = w.spare(p); err != nil {
			return out, w.failed(op, err)
		}
	}
	refused := map[string]bool{}
	for {
		a, ok, err := s.packable(refused)
		if err != nil {
			return out, err
		}
		if !ok {
			break
		}
		packed, err := w.pack(a)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case errors.Is(err, errMoved):
			refused[a.ID] = true // rotated or rolled back meanwhile
		case err != nil:
			err = explain(op, err)
			refused[a.ID] = true
			out.Refused = append(out.Refused, Refusal{ID: a.ID, Err: err, Why: err.Error()})
		default:
			out.Packed = append(out.Packed, packed)
			out.Freed += a.Own - packed.Own
		}
		if err := w.pause(); err != nil {
			return out, err
		}
	}
	if err := s.measure(ctx, w.pause); err != nil {
		return out, err
	}
	unlock, err := w.lock()
	if err != nil {
		return out, err
	}
	out.Rotation, err = s.rotate(p)
	unlock()
	if err != nil {
		return out, err
	}
	spared, err := w.spare(p)
	if err != nil {
		return out, w.failed(op, err)
	}
	out.Spared = out.Spared || spared
	newest, err := s.newest()
	if err != nil || newest == nil {
		return out, err
	}
	if out.Sealed, err = s.seal(*newest, w.pause); err != nil {
		if err = s.moved(*newest, err); !errors.Is(err, errMoved) {
			return out, w.failed(op, err)
		}
	}
	return out, nil
}

// failed returns the error of a compaction, or the context's if it has ended.
func (w *compaction) failed(op string, err error) error {
	if w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	return explain(op, err)
}

// errMoved reports that an archive changed after the work on it began.
var errMoved = errors.New("the archive has changed")

// plainOnes returns the archives whose trees are folders, newest first.
func (s *Store) plainOnes() ([]Archive, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(a Archive) bool { return !a.Whole || a.Packed != nil || len(a.Trees) == 0 }), nil
}

// newest returns the newest archive that is a folder, or nil.
func (s *Store) newest() (*Archive, error) {
	all, err := s.plainOnes()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// packable returns the oldest archive that may be packed: the newest whole one stays a folder.
func (s *Store) packable(refused map[string]bool) (Archive, bool, error) {
	all, err := s.List()
	if err != nil {
		return Archive{}, false, err
	}
	all = slices.DeleteFunc(all, func(a Archive) bool { return !a.Whole || len(a.Trees) == 0 })
	for i := len(all) - 1; i > 0; i-- {
		if a := all[i]; a.Packed == nil && a.Verdict != Pending && !refused[a.ID] {
			return a, true, nil
		}
	}
	return Archive{}, false, nil
}

// rollbackFile is the manifest of the folders into which a packed archive was unpacked here, for a rollback that is not done. Other machines with a copy of the archive do not have it.
const rollbackFile = ".rollback"

func (a Archive) rollbackPath() string { return filepath.Join(a.Path, rollbackFile) }

// unpackHeld turns the trees of a packed archive into folders, for a rollback that exchanges them with the live ones. The packed files stay until the rollback is done: another machine, which has copies of
// them, may have to begin it again.
func (s *Store) unpackHeld(ctx context.Context, a Archive, m *tree.Manifest) (*tree.Manifest, error) {
	if plain, err := s.unpackedBefore(a); err != nil || plain != nil {
		return plain, err
	}
	if err := s.reaper.Remove(a.rollbackPath()); err != nil {
		return nil, err
	}
	tmp := filepath.Join(a.Path, tmpPrefix+"unpacked")
	for _, p := range append([]string{tmp}, a.treePaths()...) {
		if err := s.reaper.Remove(p); err != nil {
			return nil, err
		}
	}
	for _, t := range trees() { // of a rollback here that another machine has taken over
		if err := s.reaper.Remove(a.failedPath(t)); err != nil {
			return nil, err
		}
	}
	reserved := s.releaseSpace(a)
	entries, err := s.copyOut(ctx, a, m, tmp, reserved, nil)
	if err != nil {
		_ = s.reaper.Remove(tmp)
		return nil, err
	}
	plain := &tree.Manifest{ID: m.ID, Scanned: m.Scanned, Entries: entries}
	if err := s.writeManifest(a.Path, plain); err != nil {
		return nil, err
	}
	// It comes first: folders without it would be taken for the archive when another machine has done the rollback.
	if err := s.fs.Link(filepath.Join(a.Path, manifestFile), a.rollbackPath()); err != nil {
		return nil, err
	}
	if err := vfs.SyncDir(s.fs, a.Path); err != nil {
		return nil, err
	}
	for _, t := range a.Trees {
		if err := s.fs.Rename(filepath.Join(tmp, t), a.treePath(t)); err != nil {
			return nil, err
		}
	}
	if err := vfs.SyncDir(s.fs, a.Path); err != nil {
		return nil, err
	}
	_ = s.reaper.Remove(tmp) // what can't be removed is left to Sweep
	return plain, nil
}

// unpackedBefore returns the manifest of the folders that an earlier attempt unpacked here, nil if there are none, or if they are no longer the ones: another hub led since, and the live trees were replaced.
func (s *Store) unpackedBefore(a Archive) (*tree.Manifest, error) {
	b, err := vfs.ReadFile(s.fs, a.rollbackPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := tree.DecodeManifest(b)
	if err != nil {
		return nil, nil //nolint:nilerr // it is unpacked again
	}
	if _, err := s.heldTrees(a, m); errors.Is(err, ErrNotWhole) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return m, s.writeManifest(a.Path, m) // that of another machine may have come meanwhile
}

// dropPacked removes the packed files of an archive whose rollback is done. What can't be removed is left to Sweep.
func (s *Store) dropPacked(a Archive) {
	for _, p := range append(a.packedPaths(), a.rollbackPath()) {
		_ = s.reaper.Remove(p)
	}
}

func (a Archive) treePaths() (out []string) {
	for _, t := range a.Trees {
		out = append(out, a.treePath(t))
	}
	return out
}

func (a Archive) packedPaths() (out []string) {
	for _, t := range a.Trees {
		out = append(out, a.packedFiles(t)...)
	}
	return out
}

// writeManifest replaces a manifest durably.
func (s *Store) writeManifest(dir string, m *tree.Manifest) error {
	return vfs.WriteFileAtomic(s.fs, filepath.Join(dir, manifestFile), m.Encode(), 0o600)
}
