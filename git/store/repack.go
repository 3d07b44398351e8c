package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// Repack configures Maintain. The zero value joins packs whose sizes are not a geometric progression, and removes only copies.
type Repack struct {
	// ID names the quarantine in which the new pack is made.
	ID string
	// Packs and Loose are how many packs and loose objects there may be before they are consolidated.
	Packs, Loose int
	// All makes one pack of everything, whatever the sizes.
	All bool
	// Prune, if set, removes objects that nothing refers to and that are older than Grace.
	Prune *Prune
	// DryRun reports what Maintain would do, and does nothing.
	DryRun bool
	// Pause is called before each 256 KiB or so of work; its error aborts the work. nil never pauses.
	Pause func(context.Context) error
}

// Prune configures the removal of objects in a Repack.
type Prune struct {
	// Tips returns what refers to objects: all refs. It is called twice: when the walk begins, and while nobody uses the repository.
	Tips func() ([]plumbing.Hash, error)
	// Cut are commits whose parents are ignored, even if they exist: gitrepository-layout(5), shallow.
	Cut []plumbing.Hash
	// Grace is the least age of an object's file. It must be long enough that objects of running pushes and fetches are younger.
	Grace time.Duration
	// Alone calls its argument while nobody else uses the repository, or returns an error without calling it.
	Alone func(context.Context, func() error) error
}

// Maintained reports what Maintain did, or would do.
type Maintained struct {
	Before, After Counts
	// Consolidated is how many packs became one, Packed how many loose objects went into it, Written its bytes.
	Consolidated, Packed int
	Written              int64
	// Pruned counts the objects that were removed because nothing refers to them, Young those kept for their age.
	Pruned, Young int
	// Left counts removed leftovers of crashes.
	Left int
}

// Changed reports whether anything was done, or would be.
func (m Maintained) Changed() bool { return m.Consolidated+m.Packed+m.Pruned+m.Left > 0 }

// Add adds the result for another repository.
func (m *Maintained) Add(o Maintained) {
	m.Before.Add(o.Before)
	m.After.Add(o.After)
	m.Consolidated += o.Consolidated
	m.Packed += o.Packed
	m.Written += o.Written
	m.Pruned += o.Pruned
	m.Young += o.Young
	m.Left += o.Left
}

// Maintain consolidates packs and loose objects and removes what is no longer needed. The new pack is durable and was verified by reading
// it and computing each object's name, before anything old is removed; an error or a crash before that changes nothing, and one after it
// leaves copies, which the next call removes. Readers continue meanwhile: they find objects of a removed pack in the new one. Only one
// Maintain of a repository may run at a time. Packs with a .keep, .promisor or .mtimes are not changed.
func (db *DB) Maintain(ctx context.Context, o Repack) (m Maintained, err error) {
	v, err := db.inventory()
	if err != nil {
		return m, err
	}
	m.Before = v.counts()
	m.After = m.Before
	gone := &unreferenced{}
	if o.Prune != nil {
		if gone, err = db.unreachable(ctx, o, v, &m); err != nil {
			return m, err
		}
	}
	from, loose := o.plan(v, gone)
	m.Consolidated, m.Packed, m.Pruned, m.Left = len(from), len(loose), len(gone.objects), len(v.left)
	if o.DryRun || !m.Changed() {
		return m, nil
	}
	for _, name := range v.left {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	if len(from)+len(loose)+len(gone.objects) > 0 {
		if err := db.consolidate(ctx, o, v, from, loose, gone, &m); err != nil {
			return m, err
		}
	}
	if v, err = db.inventory(); err == nil {
		m.After = v.counts()
	}
	return m, err
}

// plan chooses what to join: packs that break the geometric progression, those that hold dead objects, and loose objects.
func (o Repack) plan(v *inventory, gone *unreferenced) (from []storedPack, loose []plumbing.Hash) {
	var free []storedPack
	for _, p := range v.packs {
		if !p.kept {
			free = append(free, p)
		}
	}
	slices.SortStableFunc(free, func(a, b storedPack) int { return a.Count() - b.Count() })
	n := 0
	switch {
	case o.All && (len(free) > 1 || len(v.loose) > 0):
		n = len(free)
	case !o.All && len(free) > o.Packs:
		counts := make([]int, len(free))
		for i, p := range free {
			counts[i] = p.Count()
		}
		n = rollUp(counts)
	}
	from = slices.Clone(free[:n])
	if len(gone.objects) > 0 {
		for _, p := range free[n:] {
			if gone.in(p) {
				from = append(from, p)
			}
		}
	}
	if o.All || len(v.loose) > o.Loose {
		for _, l := range v.loose {
			if !gone.has(l.hash) {
				loose = append(loose, l.hash)
			}
		}
	}
	if len(from) == 1 && len(loose) == 0 && !gone.in(from[0]) {
		return nil, nil // it is already what it would become
	}
	return from, loose
}

// in reports whether a pack holds a dead object.
func (d *unreferenced) in(p storedPack) bool {
	err := p.Each(func(h plumbing.Hash, _ int64) error {
		if d.has(h) {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

var errFound = errors.New("found")

// consolidate writes the new pack, publishes it, and removes what it replaces.
func (db *DB) consolidate(ctx context.Context, o Repack, v *inventory, from []storedPack, loose []plumbing.Hash, gone *unreferenced, m *Maintained) error {
	slices.SortStableFunc(from, func(a, b storedPack) int { return b.time.Compare(a.time) })
	packs := make([]*pack.Pack, len(from))
	for i, p := range from {
		packs[i] = p.Pack
	}
	var stay []*pack.Pack
	for _, p := range v.packs {
		if !slices.Contains(packs, p.Pack) {
			stay = append(stay, p.Pack)
		}
	}
	c, err := choose(db, packs, loose, func(h plumbing.Hash) (bool, error) {
		if gone.has(h) {
			return false, nil
		}
		for _, p := range stay {
			if _, ok, err := p.Find(h); ok || err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if errors.Is(err, pack.ErrClosed) {
		return errVanished
	}
	if err != nil {
		return err
	}
	written := ""
	if len(c.take) > 0 {
		if written, err = db.write(ctx, o, c, from, m); err != nil {
			return err
		}
	}
	remove := func() error { return db.drop(from, v, gone, written) }
	if len(gone.objects) == 0 {
		return remove()
	}
	removing := false
	err = o.Prune.Alone(ctx, func() error {
		if err := gone.checkRefsUnchanged(o.Prune.Tips); err != nil {
			return err
		}
		removing = true
		return remove()
	})
	if err != nil && !removing && written != "" && !slices.ContainsFunc(v.packs, func(p storedPack) bool { return filepath.Base(p.Path()) == written }) {
		// Everything that was written is still in the old packs.
		err = errors.Join(err, db.remove(filepath.Join(db.main.dir, "pack", written)))
	}
	return err
}

// write makes the pack in a quarantine, reads it back object by object, and publishes it. Its time is that of its newest part, so that
// objects do not become younger.
func (db *DB) write(ctx context.Context, o Repack, c *choice, from []storedPack, m *Maintained) (name string, err error) {
	q, err := db.NewQuarantine(o.ID)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, q.Discard()) }()
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		pw := &pack.Writer{Source: c, OfsDelta: true}
		_, err := pw.Write(ctx, w, c.take)
		_ = w.CloseWithError(err)
		wrote <- err
	}()
	x := &pack.Indexer{
		Dir: filepath.Join(q.dir, "pack"), Workers: 1, Bases: nil,
		Limits: pack.Limits{PackBytes: -1, Objects: -1, ObjectBytes: -1, DeltaBytes: -1, DeltaDepth: -1, TotalBytes: -1, DeltaTotal: -1, BaseMemory: 32 << 20},
	}
	res, err := x.Index(ctx, bufio.NewReaderSize(&pausingReader{ctx: ctx, r: r, pause: o.Pause}, 256<<10))
	_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	if werr := <-wrote; werr != nil && !errors.Is(werr, io.ErrClosedPipe) {
		err = errors.Join(werr, err) // the reader's error is a consequence
	}
	if err != nil {
		return "", fmt.Errorf("consolidate packs: %w", err)
	}
	for _, h := range c.take {
		if !res.Has(h) {
			return "", fmt.Errorf("consolidate packs: object %s is not in the new pack", h)
		}
	}
	if len(from) > 0 {
		if err := os.Chtimes(res.Pack, time.Time{}, from[0].time); err != nil {
			return "", err
		}
	}
	st, err := os.Stat(res.Pack)
	if err != nil {
		return "", err
	}
	m.Written = st.Size()
	return filepath.Base(res.Pack), q.Migrate()
}

// PauseEvery is how many bytes are written, at most, between two calls of Repack.Pause.
const PauseEvery = 256 << 10

// pausingReader calls a function before each piece that it reads, which may block or abort.
type pausingReader struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the one call that it belongs to
	r     io.Reader
	pause func(context.Context) error
	left  int
}

func (p *pausingReader) Read(b []byte) (int, error) {
	if p.left <= 0 && p.pause != nil {
		if err := p.pause(p.ctx); err != nil {
			return 0, err
		}
		p.left = PauseEvery
	}
	n, err := p.r.Read(b[:min(len(b), PauseEvery)])
	p.left -= n
	return n, err
}

// drop removes the packs whose objects are in the one just written, the loose objects that are in a pack, and the dead ones.
func (db *DB) drop(from []storedPack, v *inventory, gone *unreferenced, written string) error {
	// A multi-pack-index may name the packs; git works without it.
	if err := db.dropDerived(len(gone.objects) > 0); err != nil {
		return err
	}
	for _, p := range from {
		if filepath.Base(p.Path()) == written {
			continue // the same objects in the same order
		}
		if err := db.remove(p.Path()); err != nil {
			return err
		}
	}
	if len(from) > 0 {
		if err := syncDir(filepath.Join(db.main.dir, "pack")); err != nil {
			return err
		}
	}
	if err := db.main.rescan(); err != nil {
		return err
	}
	for _, l := range v.loose {
		if !gone.has(l.hash) {
			_, _, packed, err := db.main.locate(l.hash)
			if err != nil {
				return err
			}
			if !packed {
				continue
			}
		}
		if err := os.Remove(db.main.loosePath(l.hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// remove deletes a pack and its files, the index last, so that what a crash leaves is recognised as a leftover.
func (db *DB) remove(path string) error {
	base := strings.TrimSuffix(path, ".pack")
	for _, ext := range []string{".pack", ".rev", ".bitmap", ".idx"} {
		if err := os.Remove(base + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// dropDerived removes what git derived from the removed packs and recreates when needed: the multi-pack-index, and if objects are
// removed too the commit-graph.
func (db *DB) dropDerived(commits bool) error {
	dir := filepath.Join(db.main.dir, "pack")
	names, err := filepath.Glob(filepath.Join(dir, "multi-pack-index*"))
	if err != nil {
		return err
	}
	if commits {
		info := filepath.Join(db.main.dir, "info")
		names = append(names, filepath.Join(info, "commit-graph"), filepath.Join(info, "commit-graphs"))
	}
	for _, n := range names {
		if err := os.RemoveAll(n); err != nil {
			return err
		}
	}
	return nil
}
