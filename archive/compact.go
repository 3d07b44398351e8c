package archive

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
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
	s.recent.drop(&s.cfg.Background.recent) // the next deployment may be far off
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
	if out.Spared, err = w.spare(p); err != nil {
		return out, w.failed(op, err)
	}
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

// unpackHeld turns the trees of a packed archive into folders, for a rollback that exchanges them with the live ones.
func (s *Store) unpackHeld(ctx context.Context, a Archive, m *tree.Manifest) (Archive, *tree.Manifest, error) {
	fail := func(err error) (Archive, *tree.Manifest, error) { return a, m, err }
	if a.Rollback != nil {
		return fail(fault.New(fault.Internal, "roll back", "%w: packed in the middle of a rollback", ErrNotWhole))
	}
	tmp := filepath.Join(a.Path, tmpPrefix+"unpacked")
	for _, p := range append([]string{tmp}, a.treePaths()...) {
		if err := s.reaper.Remove(p); err != nil {
			return fail(err)
		}
	}
	reserved := s.releaseSpace(a)
	entries, err := s.copyOut(ctx, a, m, tmp, reserved, nil)
	if err != nil {
		_ = s.reaper.Remove(tmp)
		return fail(err)
	}
	plain := &tree.Manifest{ID: m.ID, Scanned: m.Scanned, Entries: entries}
	if err := s.writeManifest(a.Path, plain); err != nil {
		return fail(err)
	}
	for _, t := range a.Trees {
		if err := s.fs.Rename(filepath.Join(tmp, t), a.treePath(t)); err != nil {
			return fail(err)
		}
	}
	if err := vfs.SyncDir(s.fs, a.Path); err != nil {
		return fail(err)
	}
	now, err := s.update(a.ID, "roll back", func(r *Record) error { r.Packed = nil; return nil })
	if err != nil {
		return fail(err)
	}
	for _, p := range append([]string{tmp}, a.packedPaths()...) {
		_ = s.reaper.Remove(p) // the folders are the archive now; what can't be removed is left to Sweep
	}
	return now, plain, nil
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
