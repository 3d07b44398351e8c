package archive

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"corpus-git/internal/vfs"
)

// action is what a build does with an entry.
type action uint8

const (
	actMake action = iota // create it; whatever file lies there is replaced
	actAttr               // a folder that is there: set its attributes
	actKeep               // right as it is
)

// builder makes a destination equal to a list of entries, reading content from a source with the same paths.
type builder struct {
	src, dst vfs.Dir
	entries  []Entry
	acts     []action
	remove   []string // destination paths to remove first, folders with all below them
	workers  int
	// cold: the source must come from the disk. It is read in the order of inodes, which is about that of its blocks, by many.
	cold bool
	// inPlace: the destination is in use. A file is replaced by a rename, so that its name is never absent.
	inPlace bool
	// trustAttrs: attributes come from entries, which describe more than the source could carry (its owner).
	trustAttrs bool
	version    *atomic.Uint64
	progress   func(Progress)
	// sync makes what is written durable, nil to leave that to the caller. It runs beside the copying, each time that
	// much more has been written: the disk has its share of the work done by the time the copying ends.
	sync      func() error
	syncEvery int64
	syncing   sync.WaitGroup
	unsynced  int64
	syncBusy  bool
	syncErr   error

	// made notes which entries were made by one, for leaveHalf; nil where nobody asks. haveDirs: all folders are there.
	made     []bool
	haveDirs bool

	mu      sync.Mutex
	notes   Notes
	done    Progress
	dropped map[int]bool // vanished while they were copied
}

// Progress counts what is done of an archive, and what there is to do.
type Progress struct {
	Files, TotalFiles int64
	Bytes, TotalBytes int64
}

const (
	batchFiles = 48
	batchBytes = 4 << 20
	readTries  = 3
	notedNames = 20
)

// run builds. Order: removals, folders from the top, files in parallel, further names of files, attributes of folders
// from the bottom. Nothing is synced.
func (b *builder) run(ctx context.Context) error {
	b.dropped = map[int]bool{}
	for i := range b.entries {
		if b.acts[i] == actMake && !b.entries[i].IsDir() {
			b.done.TotalFiles++
			b.done.TotalBytes += b.entries[i].Size
		}
	}
	dirty := b.dirty()
	if err := b.openUp(dirty); err != nil {
		return err
	}
	for _, p := range b.remove {
		if err := vfs.RemoveAll(b.dst, p); err != nil {
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
	if len(b.dropped) > 0 {
		kept := b.entries[:0]
		for i := range b.entries {
			if !b.dropped[i] {
				kept = append(kept, b.entries[i])
			}
		}
		b.entries = kept
	}
	return ctx.Err()
}

// leaveHalf makes of entries what a run that was interrupted, with all folders made, has left at the destination. What is not there, or not whole,
// or a folder whose attributes may still be to set, gets version 0, which is no version: a plan makes it anew. Names stay, so that a plan removes what
// is no longer wanted.
func (b *builder) leaveHalf() {
	kept := b.entries[:0]
	for i := range b.entries {
		if b.dropped[i] {
			continue
		}
		e := b.entries[i]
		switch {
		case e.IsDir():
			e.Version = 0
		case b.acts[i] != actKeep && !b.made[i]:
			e.Version, e.Copy, e.Blocks = 0, Ident{}, 0
		}
		kept = append(kept, e)
	}
	b.entries = kept
}

// dirty gives the indexes of folders whose content or attributes are about to change, from the top.
func (b *builder) dirty() []int {
	touched := map[string]bool{}
	last := ""
	for i := range b.entries {
		if b.acts[i] != actMake {
			continue
		}
		if d := parent(b.entries[i].Path); d != last {
			touched[d], last = true, d
		}
	}
	for _, p := range b.remove {
		touched[path.Dir(p)] = true
	}
	var out []int
	for i := range b.entries {
		if b.entries[i].IsDir() && (b.acts[i] != actKeep || touched[b.entries[i].Path]) {
			out = append(out, i)
		}
	}
	return out
}

// openUp lets the owner write to folders that are there and about to change.
func (b *builder) openUp(dirty []int) error {
	for _, i := range dirty {
		e := &b.entries[i]
		if b.acts[i] == actMake || (e.Mode&0o700 == 0o700 && !b.inPlace) {
			continue
		}
		st, err := b.dst.Lstat(e.Path)
		if err != nil {
			return err
		}
		if st.Perm()&0o700 != 0o700 {
			if err := b.dst.Chmod(e.Path, st.Perm()|0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// parent is the folder of a path, "." for the root of a tree.
func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return "."
}

// mkdirs makes folders, each after the one that it lies in.
func (b *builder) mkdirs(ctx context.Context) error {
	in := map[string][]string{} // names of new folders
	var tops []string
	made := map[string]bool{}
	for i := range b.entries {
		if !b.entries[i].IsDir() || b.acts[i] != actMake {
			continue
		}
		p := b.entries[i].Path
		d := parent(p)
		if len(in[d]) == 0 && !made[d] {
			tops = append(tops, d)
		}
		in[d] = append(in[d], path.Base(p))
		made[p] = true
	}
	work := newPool(ctx)
	var fill func(at string) error
	fill = func(at string) error {
		d, err := b.dst.OpenDir(at)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }() // opened for reading
		for _, name := range in[at] {
			if err := d.Mkdir(name, 0o700); err != nil {
				return named(at, err)
			}
			if sub := path.Join(at, name); len(in[sub]) > 0 {
				work.add(func() error { return fill(sub) })
			}
		}
		return nil
	}
	for _, at := range tops {
		work.add(func() error { return fill(at) })
	}
	return work.run(b.workers)
}

// finishDirs sets the attributes of folders whose content is in place. Folders that shut their owner out come last and from
// the bottom, since the way to what lies in them goes through them.
func (b *builder) finishDirs(ctx context.Context, dirty []int) error {
	work := newPool(ctx)
	var shut []int
	for len(dirty) > 0 {
		n := min(len(dirty), batchFiles)
		batch := dirty[:n]
		dirty = dirty[n:]
		work.add(func() error {
			for _, i := range batch {
				if b.entries[i].Mode&0o700 != 0o700 {
					continue
				}
				if err := b.finishDir(i); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
		for _, i := range batch {
			if b.entries[i].Mode&0o700 != 0o700 {
				shut = append(shut, i)
			}
		}
	}
	if err := work.run(b.workers); err != nil {
		return err
	}
	for _, i := range slices.Backward(shut) {
		if err := b.finishDir(i); err != nil {
			return err
		}
	}
	return nil
}

// order are the indexes of all entries in the order in which they are added to the pool, which takes the last first.
func (b *builder) order() []int {
	out := make([]int, len(b.entries))
	for i := range out {
		out[i] = i
	}
	if b.cold {
		slices.SortStableFunc(out, func(x, y int) int { return cmp.Compare(b.entries[y].Live.Ino, b.entries[x].Live.Ino) })
	}
	return out
}

// files copies everything that is no folder, in batches of neighbours.
func (b *builder) files(ctx context.Context) error {
	p := newPool(ctx)
	groups := map[uint32][]int{}
	var batch []int
	var bytes int64
	flush := func() {
		if len(batch) > 0 {
			mine := batch
			if b.cold {
				slices.Reverse(mine)
			}
			p.add(func() error { return b.batch(ctx, mine) })
		}
		batch, bytes = nil, 0
	}
	for _, i := range b.order() {
		e := &b.entries[i]
		switch {
		case e.IsDir() || b.acts[i] != actMake:
			continue
		case e.Link != 0:
			groups[e.Link] = append(groups[e.Link], i)
			continue
		}
		batch = append(batch, i)
		bytes += e.Size
		if len(batch) >= batchFiles || bytes >= batchBytes {
			flush()
		}
	}
	flush()
	for _, g := range groups {
		p.add(func() error { return b.group(ctx, g) })
	}
	workers := b.workers
	if b.cold {
		workers *= 2
	}
	err := p.run(workers)
	b.syncing.Wait()
	if err == nil {
		err = b.syncErr
	}
	return err
}

func (b *builder) batch(ctx context.Context, idx []int) error {
	src, dst := cursor{root: b.src}, cursor{root: b.dst, target: true}
	defer src.close()
	defer dst.close()
	var bytes int64
	for _, i := range idx {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := b.one(i, &src, &dst); err != nil {
			return err
		}
		bytes += b.entries[i].Size
	}
	b.report(int64(len(idx)), bytes)
	return nil
}

// group copies a file that has several names once, and links the others.
func (b *builder) group(ctx context.Context, idx []int) error {
	src, dst := cursor{root: b.src}, cursor{root: b.dst, target: true}
	defer src.close()
	defer dst.close()
	leader := -1
	for _, i := range idx {
		if err := ctx.Err(); err != nil {
			return err
		}
		if leader < 0 {
			ok, err := b.one(i, &src, &dst)
			if err != nil {
				return err
			}
			if ok {
				leader = i
			}
			continue
		}
		e, l := &b.entries[i], &b.entries[leader]
		target := e.Path
		if b.inPlace {
			target = vfs.TempName(e.Path)
		} else if err := b.dst.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := b.dst.Link(l.Path, target); err != nil {
			return err
		}
		if b.inPlace {
			if err := b.dst.Rename(target, e.Path); err != nil {
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
	st, err := b.dst.Lstat(b.entries[leader].Path) // its ctime moved with every link
	if err != nil {
		return err
	}
	for _, i := range idx {
		b.entries[i].Copy = ident(st)
	}
	b.report(int64(len(idx)), b.entries[leader].Size)
	return nil
}

func (b *builder) report(files, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done.Files += files
	b.done.Bytes += bytes
	b.unsynced += bytes
	if b.sync != nil && b.unsynced >= b.syncEvery && !b.syncBusy && b.syncErr == nil {
		b.unsynced, b.syncBusy = 0, true
		b.syncing.Go(b.early)
	}
	if b.progress != nil {
		b.progress(b.done)
	}
}

// early syncs while the copying goes on. Its error is the build's: a file system reports a failed write once.
func (b *builder) early() {
	err := b.sync()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.syncBusy = false
	if b.syncErr == nil {
		b.syncErr = err
	}
}

// flag marks what a copy lacks. Entries of a manifest keep saying what the archive has: a proof then shows the lack.
func (b *builder) flag(e *Entry, f Flags) {
	if !b.trustAttrs {
		e.Flags |= f
	}
}

func (b *builder) note(f func(*Notes)) {
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
