package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// MakeRequest asks for an archive.
type MakeRequest struct {
	Facts
	// Progress is called with how far the copying has got, from any goroutine but never concurrently; it may be nil.
	Progress func(tree.Progress)
	// Later is what will be written to the same file system after the archive is made; there must be room for it too.
	Later Later
	// Beside is called when the content of the archive, and everything written to its file system before Make, is durable, and before the
	// archive gets its name. The caller renames its own files there (covered is that file system's device number); if the file system
	// commits changes in their order, the sync of the archive's name makes those durable too. An error means that there is no archive.
	// Beside may be nil. It is not called if the deployment already has an archive.
	Beside func(covered uint64) error
	// Named, if not nil, is given the sync of the archive's name when it has it, and Make leaves that to the caller; covered is the device number of
	// a file system that was synced since, 0 for none. A crash before it may leave the archive, complete, under the name that Finish looks for.
	Named func(sync func(covered uint64) error)
	// Begin is called right before the trees are looked at, beside the reading of the archives; it may be nil. It is not called if the deployment already has an archive.
	Begin func()
	// Folder reports whether the trees must be folders while the deployment runs, because a hook or a step may read them; nil is never. It is
	// called only if they would be files otherwise, and not with Config.Files.
	Folder func() bool
}

// Later is an amount of disk space.
type Later struct{ Bytes, Inodes uint64 }

// Make archives the project's trees as they are now. When it returns nil the archive is durable (but see MakeRequest.Named), complete, and shares no inode with the
// live tree or with another archive. If the deployment already has an archive, it returns that one. After an error there is no archive
// and the live tree is unchanged; the error wraps *SpaceError if there is too little room.
func (s *Store) Make(ctx context.Context, req MakeRequest) (Archive, error) {
	const op = "make archive"
	s.work.Lock()
	defer s.work.Unlock()
	look, begun := s.cfg.FileTime(), s.cfg.Now()
	final := s.project.Archive(req.At, req.ID)
	if a, err := s.read(final); err == nil && a.ID == req.ID {
		return a, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Archive{}, err
	}
	if err := vfs.MkdirAll(s.fs, s.dir(), 0o700); err != nil {
		return Archive{}, explain(op, err)
	}
	tmp := s.unnamed(final)
	if err := s.reaper.Remove(tmp); err != nil {
		return Archive{}, explain(op, err)
	}
	m := &making{s: s, tmp: tmp, asked: begun, begun: look, req: req, rewrite: true}
	err := m.build(ctx)
	if err == nil {
		err = s.takeHookOutput(final, tmp)
	}
	published := false
	if err == nil && req.Beside != nil {
		err = req.Beside(m.dev)
	}
	if err == nil {
		err = s.fs.Rename(tmp, final)
		published = err == nil
	}
	name := func(covered uint64) error {
		if err := vfs.SyncParentsUnlessCovered(s.fs, covered, final); err != nil {
			return explain(op, err)
		}
		return nil
	}
	switch {
	case published && req.Named != nil:
		req.Named(name)
	case published:
		err = name(0)
	}
	if err != nil {
		_ = s.reaper.Remove(tmp) // what can't be removed now is left to Sweep
		if published {
			_ = s.reaper.Remove(final)
		}
		return Archive{}, explain(op, err)
	}
	made := Archive{Record: m.rec, Path: final, Scan: m.snap}
	a, err := s.describe(made)
	if err != nil {
		a = made // the archive is durable: only reading it failed
		a.Own, a.Whole = m.rec.Sizes.Disk, true
	}
	return a, nil
}

// unnamed returns the path of an archive that is being made.
func (s *Store) unnamed(final string) string {
	return filepath.Join(s.dir(), tmpPrefix+filepath.Base(final))
}

// Finish gives the archive of a deployment its name if a crash took that (MakeRequest.Named), and makes it durable. The caller knows that it was
// complete: something was about to be changed. If there is no archive without its name, nothing is done. Sweep would remove it.
func (s *Store) Finish(at time.Time, id string) error {
	s.work.Lock()
	defer s.work.Unlock()
	final := s.project.Archive(at, id)
	if _, err := s.read(final); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	a, err := s.read(s.unnamed(final))
	if errors.Is(err, fs.ErrNotExist) || err == nil && a.ID != id {
		return nil
	}
	if err == nil {
		err = vfs.RenameDurable(s.fs, s.unnamed(final), final)
	}
	if err != nil {
		return explain("finish archive", err)
	}
	return nil
}

// takeHookOutput moves what a hook put at the archive's path (a dump made before it) into the archive.
func (s *Store) takeHookOutput(final, tmp string) error {
	names, err := s.fs.ReadDir(final)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range names {
		to := filepath.Join(tmp, n)
		if ok, err := vfs.Exists(s.fs, to); err != nil || ok {
			return fault.New(fault.Refused, "make archive", "%s is in the way (%w)", filepath.Join(final, n), errors.Join(fs.ErrExist, err)).
				WithHint("a hook may put anything into an archive but project, pillar, manifest and deployment.json")
		}
		if err := s.fs.Rename(filepath.Join(final, n), to); err != nil {
			return err
		}
	}
	if err := vfs.SyncDir(s.fs, tmp); err != nil {
		return err
	}
	return s.fs.Remove(final)
}

// explain adds the hint to a disk error.
func explain(op string, err error) error {
	var fe *fault.Error
	if errors.As(err, &fe) {
		return err
	}
	switch {
	case vfs.IsFull(err):
		return fault.New(fault.Failed, op, "%w", err).WithHint("the disk is full, or a quota of it: corpus-git archives prune, or free some space")
	case errors.Is(err, syscall.EROFS):
		return fault.New(fault.Internal, op, "%w", err).WithHint("the file system is mounted read-only, as the kernel does after an error: see its log, fix and remount it, and push again")
	case errors.Is(err, syscall.EIO):
		return fault.New(fault.Internal, op, "%w", err).WithHint("the disk failed: see the kernel's log")
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Internal, op, "%w", err).WithHint("run the server as root, or let its user read the project and write to its archives")
	}
	return fault.New(fault.Internal, op, "%w", err)
}

// making is the state of one Make.
type making struct {
	s   *Store
	tmp string
	// asked is when Make was called, begun when the look at the trees began, by the file system's clock.
	asked, begun time.Time
	req          MakeRequest
	// all are the archives that there are; listed is why they are not known.
	all    []Archive
	listed error
	// Results of build: the record and the scan of the live trees.
	rec  Record
	snap *tree.Snapshot
	// rewrite reports that the manifest may be written over that of the tree which the archive is built from: after a power failure that tree is none, or still what either describes.
	rewrite bool
	// syncs has each packed file synced by itself: an error of writing it back could be reported to a sync of somebody else before the one of the archive that takes it.
	syncs bool
	// ahead is a base that was written ahead, until drop is called, which may be called again.
	ahead *ready
	drop  func()
	// dev is the file system that build synced.
	dev uint64
}

// build makes the archive at tmp; everything but its name is durable on return.
func (m *making) build(ctx context.Context) error {
	s := m.s
	src, err := s.fs.OpenDir(s.project.Dir())
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	var ref *tree.Reference
	var from base
	var taken, release func()
	var loading sync.WaitGroup
	loading.Go(func() {
		if m.all, m.listed = s.List(); m.listed == nil {
			ref = s.referenceIn(m.all)
		}
	})
	loading.Go(func() { from, taken, release = s.lockBase() })
	loading.Go(func() { m.ahead, m.drop = s.aheadFor(ctx) })
	if m.req.Begin != nil {
		m.req.Begin()
	}
	t, begun, err := m.scan(ctx, src)
	loading.Wait()
	defer release()
	defer m.drop()
	if err != nil {
		return err
	}
	m.begun = begun
	p := tree.NewPlan(t.Entries, ref, from.m, m.begun)
	here, err := s.fs.Lstat(s.dir())
	if err != nil {
		return err
	}
	if m.packsAtOnce(t.Entries, p, here.Dev) {
		if err = m.files(ctx, src, t, p); !errors.Is(err, errNotAtOnce) {
			return err
		}
		if err := s.reaper.Remove(m.tmp); err != nil {
			return err
		}
		if t, m.begun, err = m.scan(ctx, src); err != nil { // the entries are those of files now
			return err
		}
		p = tree.NewPlan(t.Entries, ref, from.m, m.begun)
	}
	return m.folders(ctx, src, t, p, from, taken)
}

// files makes an archive whose trees are files. The entries of the scan are changed.
func (m *making) files(ctx context.Context, src vfs.Dir, t *tree.Scanned, p *tree.Plan) error {
	s := m.s
	z := count(t.Entries)
	m.ahead.recognize(t.Entries)
	if err := m.filesRoom(t); err != nil {
		if s.cfg.Files {
			return err
		}
		return fmt.Errorf("%w: %w", errNotAtOnce, err) // a folder takes less
	}
	if err := s.fs.Mkdir(m.tmp, 0o700); err != nil {
		return err
	}
	if err := m.holdSpace(z.Disk); err != nil {
		return err
	}
	for i := range t.Entries {
		t.Entries[i].Copy, t.Entries[i].Flags = tree.Ident{}, 0 // those of a copy in the spare tree
	}
	inc, err := m.shared(ctx, t.Entries)
	if err != nil {
		return err
	}
	out, err := m.packAtOnce(ctx, src, t.Entries, p, inc)
	if err != nil {
		return err
	}
	m.drop() // its manifest takes the memory that this one is kept in
	if m.req.Progress != nil {
		m.req.Progress(tree.Progress{Files: out.written, TotalFiles: out.written, Bytes: out.bytes, TotalBytes: out.bytes})
	}
	out.notes.Vanished += t.Vanished
	stats := MakeStats{Copied: out.written, CopiedBytes: out.bytes, Kept: out.held, Changed: p.Changed, Notes: out.notes}
	return m.finish(out.entries, stats, out)
}

// filesRoom compares what an archive as files takes with what is free.
func (m *making) filesRoom(t *tree.Scanned) error {
	z := count(t.Entries)
	return m.s.checkNeed(Later{uint64(z.tar() + z.Disk), uint64(len(t.Entries))}, m.req.Later)
}

// folders makes an archive whose trees are folders, from a tree that exists already.
func (m *making) folders(ctx context.Context, src vfs.Dir, t *tree.Scanned, p *tree.Plan, from base, taken func()) error {
	s := m.s
	if err := s.checkRoom(p, m.req.Later); err != nil {
		return err
	}
	var err error
	if from.m != nil {
		m.rewrite = from.scrap || p.Nothing()
		if err = s.fs.Rename(from.path, m.tmp); err == nil {
			taken()
		}
	} else {
		err = s.fs.Mkdir(m.tmp, 0o700)
	}
	if err != nil {
		return err
	}
	dst, err := s.fs.OpenDir(m.tmp)
	if err != nil {
		return err
	}
	defer func() { _ = dst.Close() }()
	b := tree.NewCopier(tree.CopyOptions{
		Src: src, Dst: dst, Entries: t.Entries, Plan: p, Workers: s.cfg.Workers, Cold: t.Cold, Rewrite: from.scrap, Progress: m.req.Progress,
		Sync: func() error { return dst.SyncFS(".") }, SyncEvery: s.cfg.SyncEvery,
	})
	if err := b.Run(ctx); err != nil {
		return tree.ReadError(err)
	}
	if err := tree.RefreshRoots(dst, b.Entries); err != nil {
		return err
	}
	notes := b.Notes()
	notes.Vanished += t.Vanished
	return m.finish(b.Entries, MakeStats{Copied: p.Copies, CopiedBytes: p.Bytes, Kept: p.Kept, Changed: p.Changed, Notes: notes}, nil)
}

// finish writes the manifest and the record, and makes everything durable.
func (m *making) finish(entries []tree.Entry, stats MakeStats, files *packed) error {
	s := m.s
	dst, err := s.fs.OpenDir(m.tmp)
	if err != nil {
		return err
	}
	defer func() { _ = dst.Close() }()
	man := &tree.Manifest{ID: m.req.ID, Scanned: m.begun.UnixNano(), Entries: entries}
	tree.MarkRacy(man.Entries, m.begun)
	rec, err := m.record(man)
	if err != nil {
		return err
	}
	stats.Took = s.cfg.Now().Sub(m.asked)
	rec.Made = stats
	var newer map[string]bool
	if files != nil {
		rec.Packed, newer = &files.Packed, files.newer
	}
	// One syncfs makes the tree, the manifest and the record durable together, before the rename that publishes them.
	if err := s.rewriteManifest(dst, man, m.rewrite); err != nil {
		return err
	}
	text, err := rec.encode()
	if err != nil {
		return err
	}
	if err := tree.Rewrite(dst, recordFile, text, 0o600); err != nil {
		return err
	}
	tree.AsRead(man.Entries)
	s.remember(m.tmp, man, newer)
	if files != nil {
		s.recent.keepLarge(files.large, &s.cfg.Background.large)
	}
	m.rec, m.snap = rec, tree.NewSnapshot(m.begun, man.Entries)
	if st, err := dst.Lstat("."); err == nil {
		m.dev = st.Dev
	}
	return dst.SyncFS(".")
}

func count(entries []tree.Entry) Sizes {
	var z Sizes
	links := map[uint32]bool{}
	for i := range entries {
		e := &entries[i]
		if e.Flags&tree.FlagSkipped != 0 {
			continue
		}
		if e.IsDir() {
			z.Dirs++
			z.Disk += 4096
			continue
		}
		z.Files++
		if e.Link != 0 {
			if links[e.Link] {
				continue
			}
			links[e.Link] = true
		}
		if e.IsRegular() {
			z.Bytes += e.Size
		}
		z.Disk += e.Blocks * 512
	}
	return z
}

// record describes the archive of a manifest, except how it was made.
func (m *making) record(man *tree.Manifest) (Record, error) {
	rec := Record{Schema: Schema, Seq: 1, Facts: m.req.Facts, Trees: []string{}, Sizes: count(man.Entries)}
	if m.listed != nil {
		return rec, m.listed
	}
	if len(m.all) > 0 {
		rec.Seq = m.all[0].Seq + 1
	}
	for _, n := range trees() {
		if i := man.Find(n); i != nil {
			rec.Trees = append(rec.Trees, n)
		}
	}
	return rec, nil
}

// sparePath returns the tree that the next archive is built from.
func (s *Store) sparePath() string { return filepath.Join(s.dir(), spareDir) }
