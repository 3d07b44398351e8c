package tree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"corpus-git/internal/vfs"
)

// action is what a build does with an entry.
type action uint8

const (
	actMake action = iota // create it, replacing what is there
	actAttr               // an existing folder: set its attributes
	actKeep               // nothing to do
)

// CopyOptions configures a copy: its source, and how it is made.
type CopyOptions struct {
	// Src has the content, at the paths of the entries; Dst becomes equal to the entries.
	Src, Dst vfs.Dir
	// Entries are in byte order of paths. The copy changes them: it records differences that it found, and the identities of the new files.
	Entries []Entry
	// Plan is what is to be done with each of them.
	Plan *Plan
	// Workers copy in parallel; twice as many if Cold is set.
	Workers int
	// Cold reports that the source is not in the page cache. It is read in the order of inodes, which is about that of its blocks.
	Cold bool
	// InPlace reports that the destination is in use. A file is replaced by a rename, so that its name is never absent.
	InPlace bool
	// Rewrite replaces the content of files where they are (Recreate). No name that the destination may have after a power failure may be that of a complete tree.
	Rewrite bool
	// TrustAttrs takes attributes from Entries, which may have some that the source does not (its owner).
	TrustAttrs bool
	// Progress is called with how far the copying has got, from any goroutine but never concurrently; it may be nil.
	Progress func(Progress)
	// Sync makes what is written durable; nil leaves that to the caller. It runs during the copying, after each SyncEvery bytes, so that
	// little is left to sync at the end.
	Sync      func() error
	SyncEvery int64
	// KeepPartial makes Partial available after an interrupted copy.
	KeepPartial bool
}

// Copier makes a destination equal to a list of entries.
type Copier struct {
	CopyOptions
	syncing  sync.WaitGroup
	unsynced int64
	syncBusy bool
	syncErr  error

	// made records which entries were made, for Partial; nil without KeepPartial. haveDirs: all folders exist.
	made     []bool
	haveDirs bool

	mu      sync.Mutex
	notes   Notes
	done    Progress
	dropped map[int]bool // vanished while they were copied
}

// NewCopier prepares a copy. One Copier makes one copy.
func NewCopier(o CopyOptions) *Copier {
	b := &Copier{CopyOptions: o, dropped: map[int]bool{}}
	if o.KeepPartial {
		b.made = make([]bool, len(o.Entries))
	}
	return b
}

// Notes returns what could not be copied exactly, once Run has ended.
func (b *Copier) Notes() Notes { return b.notes }

// Notes are what an archive could not hold exactly. Lists end after 20 names, counts do not.
type Notes struct {
	// Sockets and devices that an ordinary user can't make are skipped. A rollback moves sockets back.
	Skipped      int      `json:"skipped,omitempty"`
	SkippedNames []string `json:"skipped_names,omitempty"`
	// Owners that only root could set.
	Owners int `json:"owners,omitempty"`
	// Extended attributes that only root could set, or that the file system of the archive refuses.
	Xattrs int `json:"xattrs,omitempty"`
	// Unstable files changed each time they were read, or a folder changed after it was listed.
	Unstable      int      `json:"unstable,omitempty"`
	UnstableNames []string `json:"unstable_names,omitempty"`
	// Vanished between the listing and the copy.
	Vanished int `json:"vanished,omitempty"`
}

// Progress counts what is done of an archive, and the total.
type Progress struct {
	Files, TotalFiles int64
	Bytes, TotalBytes int64
}

const (
	// BatchFiles is how many files are handed to a worker at once.
	BatchFiles = 48
	// BatchBytes is about how large they are together.
	BatchBytes = 4 << 20
	readTries  = 3
	notedNames = 20
)

// Run makes the copy. Order: removals, folders top-down, files in parallel, hard links, attributes of folders bottom-up. Nothing is synced.
func (b *Copier) Run(ctx context.Context) error {
	for i := range b.Entries {
		if b.Plan.acts[i] == actMake && !b.Entries[i].IsDir() {
			b.done.TotalFiles++
			b.done.TotalBytes += b.Entries[i].Size
		}
	}
	dirty := b.dirty()
	if err := b.openUp(dirty); err != nil {
		return err
	}
	for _, p := range b.Plan.remove {
		if err := vfs.RemoveAll(b.Dst, p); err != nil {
			return err
		}
	}
	if err := b.mkdirs(ctx); err != nil {
		return err
	}
	b.haveDirs = true
	if err := b.files(ctx); err != nil {
		return err
	}
	if err := b.finishDirs(ctx, dirty); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.drop()
	return nil
}

// drop removes the entries that vanished.
func (b *Copier) drop() {
	if len(b.dropped) == 0 {
		return
	}
	kept := b.Entries[:0]
	for i := range b.Entries {
		if !b.dropped[i] {
			kept = append(kept, b.Entries[i])
		}
	}
	b.Entries, b.dropped = kept, map[int]bool{}
}

// Partial describes what an interrupted Run left at the destination; ok is false if not all folders exist. Entries that are missing
// or incomplete, and folders whose attributes may not be set yet, get version 0, so that a plan makes them again. Names stay in the list,
// so that a plan removes those that are no longer wanted.
func (b *Copier) Partial() (entries []Entry, ok bool) {
	if !b.haveDirs {
		return nil, false
	}
	kept := b.Entries[:0]
	for i := range b.Entries {
		if b.dropped[i] {
			continue
		}
		e := b.Entries[i]
		switch {
		case e.IsDir():
			e.Version = 0
		case b.Plan.acts[i] != actKeep && !b.made[i]:
			e.Version, e.Copy, e.Blocks = 0, Ident{}, 0
		}
		kept = append(kept, e)
	}
	b.Entries = kept
	return kept, true
}

// dirty returns the indexes of folders whose content or attributes are about to change, top-down.
func (b *Copier) dirty() []int {
	touched := map[string]bool{}
	last := ""
	for i := range b.Entries {
		if b.Plan.acts[i] != actMake {
			continue
		}
		if d := parent(b.Entries[i].Path); d != last {
			touched[d], last = true, d
		}
	}
	for _, p := range b.Plan.remove {
		touched[path.Dir(p)] = true
	}
	var out []int
	for i := range b.Entries {
		if b.Entries[i].IsDir() && (b.Plan.acts[i] != actKeep || touched[b.Entries[i].Path]) {
			out = append(out, i)
		}
	}
	return out
}

// openUp gives the owner write permission in existing folders that are about to change.
func (b *Copier) openUp(dirty []int) error {
	for _, i := range dirty {
		e := &b.Entries[i]
		if b.Plan.acts[i] == actMake || (e.Mode&0o700 == 0o700 && !b.InPlace) {
			continue
		}
		st, err := b.Dst.Lstat(e.Path)
		if err != nil {
			return err
		}
		if st.Perm()&0o700 != 0o700 {
			if err := b.Dst.Chmod(e.Path, st.Perm()|0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// parent returns the folder of a path, "." for the root of a tree.
func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return "."
}

// mkdirs makes folders, each after its parent.
func (b *Copier) mkdirs(ctx context.Context) error {
	in := map[string][]string{} // names of new folders
	var tops []string
	made := map[string]bool{}
	for i := range b.Entries {
		if !b.Entries[i].IsDir() || b.Plan.acts[i] != actMake {
			continue
		}
		p := b.Entries[i].Path
		d := parent(p)
		if len(in[d]) == 0 && !made[d] {
			tops = append(tops, d)
		}
		in[d] = append(in[d], path.Base(p))
		made[p] = true
	}
	work := NewPool(ctx)
	var fill func(at string) error
	fill = func(at string) error {
		d, err := b.Dst.OpenDir(at)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }() // opened for reading
		for _, name := range in[at] {
			if err := d.Mkdir(name, 0o700); err != nil {
				return Named(at, err)
			}
			if sub := path.Join(at, name); len(in[sub]) > 0 {
				work.Add(func() error { return fill(sub) })
			}
		}
		return nil
	}
	for _, at := range tops {
		work.Add(func() error { return fill(at) })
	}
	return work.Run(b.Workers)
}

// finishDirs sets the attributes of folders whose content is complete. Folders whose mode excludes their owner come last and bottom-up,
// because their content is reached through them.
func (b *Copier) finishDirs(ctx context.Context, dirty []int) error {
	work := NewPool(ctx)
	var shut []int
	for len(dirty) > 0 {
		n := min(len(dirty), BatchFiles)
		batch := dirty[:n]
		dirty = dirty[n:]
		work.Add(func() error {
			for _, i := range batch {
				if b.Entries[i].Mode&0o700 != 0o700 {
					continue
				}
				if err := b.finishDir(i); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
		for _, i := range batch {
			if b.Entries[i].Mode&0o700 != 0o700 {
				shut = append(shut, i)
			}
		}
	}
	if err := work.Run(b.Workers); err != nil {
		return err
	}
	for _, i := range slices.Backward(shut) {
		if err := b.finishDir(i); err != nil {
			return err
		}
	}
	return nil
}

// order returns the indexes of all entries in the order in which they are added to the pool, which takes the last first.
func (b *Copier) order() []int {
	out := make([]int, len(b.Entries))
	for i := range out {
		out[i] = i
	}
	if b.Cold {
		slices.SortStableFunc(out, func(x, y int) int { return cmp.Compare(b.Entries[y].Live.Ino, b.Entries[x].Live.Ino) })
	}
	return out
}

// files copies everything that is not a folder, in batches of neighbours.
func (b *Copier) files(ctx context.Context) error {
	p := NewPool(ctx)
	groups := map[uint32][]int{}
	var batch []int
	var bytes int64
	flush := func() {
		if len(batch) > 0 {
			mine := batch
			if b.Cold {
				slices.Reverse(mine)
			}
			p.Add(func() error { return b.batch(ctx, mine) })
		}
		batch, bytes = nil, 0
	}
	for _, i := range b.order() {
		e := &b.Entries[i]
		switch {
		case e.IsDir() || b.Plan.acts[i] != actMake:
			continue
		case e.Link != 0:
			groups[e.Link] = append(groups[e.Link], i)
			continue
		}
		batch = append(batch, i)
		bytes += e.Size
		if len(batch) >= BatchFiles || bytes >= BatchBytes {
			flush()
		}
	}
	flush()
	for _, g := range groups {
		p.Add(func() error { return b.group(ctx, g) })
	}
	workers := b.Workers
	if b.Cold {
		workers *= 2
	}
	err := p.Run(workers)
	b.syncing.Wait()
	if err == nil {
		err = b.syncErr
	}
	return err
}

func (b *Copier) batch(ctx context.Context, idx []int) error {
	src, dst := NewCursor(b.Src), &Cursor{root: b.Dst, target: true}
	defer src.Close()
	defer dst.Close()
	var bytes int64
	for _, i := range idx {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := b.one(ctx, i, src, dst); err != nil {
			return err
		}
		bytes += b.Entries[i].Size
	}
	b.report(int64(len(idx)), bytes)
	return nil
}

// group copies a file that has several names once, and hard-links the others.
func (b *Copier) group(ctx context.Context, idx []int) error {
	src, dst := NewCursor(b.Src), &Cursor{root: b.Dst, target: true}
	defer src.Close()
	defer dst.Close()
	leader := -1
	for _, i := range idx {
		if err := ctx.Err(); err != nil {
			return err
		}
		if leader < 0 {
			ok, err := b.one(ctx, i, src, dst)
			if err != nil {
				return err
			}
			if ok {
				leader = i
			}
			continue
		}
		e, l := &b.Entries[i], &b.Entries[leader]
		target := e.Path
		if b.InPlace {
			target = vfs.TempName(e.Path)
		} else if err := b.Dst.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := b.Dst.Link(l.Path, target); err != nil {
			return err
		}
		if b.InPlace {
			if err := b.Dst.Rename(target, e.Path); err != nil {
				return err
			}
		}
		name := e.Path
		*e = *l
		e.Path = name
	}
	if leader < 0 {
		return nil
	}
	st, err := b.Dst.Lstat(b.Entries[leader].Path) // each link changed its ctime
	if err != nil {
		return err
	}
	for _, i := range idx {
		b.Entries[i].Copy = IdentOf(st)
	}
	b.report(int64(len(idx)), b.Entries[leader].Size)
	return nil
}

func (b *Copier) report(files, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done.Files += files
	b.done.Bytes += bytes
	b.unsynced += bytes
	if b.Sync != nil && b.unsynced >= b.SyncEvery && !b.syncBusy && b.syncErr == nil {
		b.unsynced, b.syncBusy = 0, true
		b.syncing.Go(b.early)
	}
	if b.Progress != nil {
		b.Progress(b.done)
	}
}

// early syncs during the copying. Its error must fail the copy: a file system reports a failed write once.
func (b *Copier) early() {
	err := b.Sync()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.syncBusy = false
	if b.syncErr == nil {
		b.syncErr = err
	}
}

// flag marks what a copy lacks. The manifest's entries still describe the archived file, so that a comparison shows the difference.
func (b *Copier) flag(e *Entry, f Flags) {
	if !b.TrustAttrs {
		e.Flags |= f
	}
}

func (b *Copier) note(f func(*Notes)) {
	b.mu.Lock()
	f(&b.notes)
	b.mu.Unlock()
}

func noteName(list []string, name string) []string {
	if len(list) < notedNames {
		list = append(list, name)
	}
	return list
}
