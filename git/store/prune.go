package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/pack"
)

// pruneShare is the share of dead objects, one in so many, from which a pack is rewritten without them.
const pruneShare = 20

// unreachable lists the objects that nothing refers to and that are old enough to be removed. In a pack with few dead objects they stay
// until there are more, except with Repack.All.
func (db *DB) unreachable(ctx context.Context, o Repack, v *inventory, m *Maintained) (*unreferenced, error) {
	limit := db.opt.Now().Add(-o.Prune.Grace)
	tips, err := o.Prune.Tips()
	if err != nil {
		return nil, err
	}
	w := &walk{ctx: ctx, db: db, pause: o.Pause, seen: map[plumbing.Hash]struct{}{}, cut: map[plumbing.Hash]bool{}}
	for _, h := range o.Prune.Cut {
		w.cut[h] = true
	}
	if err := w.from(tips); err != nil {
		return nil, fmt.Errorf("walk what refs reach: %w", err)
	}
	young := map[plumbing.Hash]struct{}{} // dead, and kept for now
	note := func(h plumbing.Hash) {
		if _, ok := w.seen[h]; !ok {
			young[h] = struct{}{}
		}
	}
	var old []storedPack
	for _, p := range v.packs {
		if p.kept || p.time.After(limit) {
			err = p.Each(func(h plumbing.Hash, _ int64) error { note(h); return nil })
		} else {
			old = append(old, p)
		}
		if err != nil {
			return nil, err
		}
	}
	d := &unreferenced{objects: map[plumbing.Hash]struct{}{}, reached: w.seen}
	for _, l := range v.loose {
		if l.time.After(limit) {
			note(l.hash)
		}
	}
	// A young object keeps what it refers to: an incomplete object is useless.
	if err := w.from(slices.Collect(keys(young))); err != nil {
		return nil, fmt.Errorf("walk what is young: %w", err)
	}
	m.Young = len(young)
	for _, p := range old {
		var here []plumbing.Hash
		err := p.Each(func(h plumbing.Hash, _ int64) error {
			if _, ok := w.seen[h]; !ok {
				here = append(here, h)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if !o.All && len(here)*pruneShare < p.Count() {
			continue
		}
		for _, h := range here {
			d.objects[h] = struct{}{}
		}
	}
	for _, l := range v.loose {
		if _, ok := w.seen[l.hash]; !ok && !l.time.After(limit) {
			d.objects[l.hash] = struct{}{}
		}
	}
	return d, nil
}

func keys(m map[plumbing.Hash]struct{}) func(func(plumbing.Hash) bool) {
	return func(yield func(plumbing.Hash) bool) {
		for h := range m {
			if !yield(h) {
				return
			}
		}
	}
}

// errMoved reports that refs changed while the objects were examined.
var errMoved = errors.New("refs came or moved meanwhile; nothing was removed")

// checkRefsUnchanged returns an error unless all current refs were walked: then no object to be removed has become reachable since. A pushed object may refer
// only to what refs reach (Connected), so there is no other way.
func (d *unreferenced) checkRefsUnchanged(tips func() ([]plumbing.Hash, error)) error {
	now, err := tips()
	if err != nil {
		return err
	}
	for _, h := range now {
		if _, ok := d.reached[h]; !ok {
			return errMoved
		}
	}
	return nil
}

// unreferenced is what nothing refers to, and what was reached while finding that out.
type unreferenced struct {
	objects, reached map[plumbing.Hash]struct{}
}

func (d *unreferenced) has(h plumbing.Hash) bool {
	_, ok := d.objects[h]
	return ok
}

// walk marks everything that objects reach. Missing objects are skipped: a broken ref keeps what exists of it.
type walk struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the one call that it belongs to
	db    *DB
	pause func(context.Context) error
	seen  map[plumbing.Hash]struct{}
	cut   map[plumbing.Hash]bool
	todo  []plumbing.Hash
	n     int
}

func (w *walk) add(h plumbing.Hash) {
	if _, ok := w.seen[h]; !ok {
		w.seen[h] = struct{}{}
		w.todo = append(w.todo, h)
	}
}

func (w *walk) from(tips []plumbing.Hash) error {
	for _, h := range tips {
		w.add(h)
	}
	for len(w.todo) > 0 {
		h := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		if w.n++; w.n%1024 == 0 {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if w.pause != nil {
				if err := w.pause(w.ctx); err != nil {
					return err
				}
			}
		}
		if err := w.step(h); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) step(h plumbing.Hash) error {
	t, _, err := w.db.Header(h)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || t == plumbing.BlobObject {
		return err
	}
	_, data, err := w.db.Get(h)
	if err != nil {
		return err
	}
	switch t {
	case plumbing.CommitObject:
		c, err := object.ParseHead(h, data)
		if err != nil {
			return err
		}
		w.add(c.Tree)
		if w.cut[h] {
			c.Parents = nil
		}
		for _, p := range c.Parents {
			w.add(p)
		}
	case plumbing.TagObject:
		tag, err := object.ParseTag(h, data)
		if err != nil {
			return err
		}
		w.add(tag.Target)
	case plumbing.TreeObject:
		for len(data) > 0 {
			e, rest, ok := object.NextEntry(data)
			if !ok {
				return fmt.Errorf("%w: tree %s", pack.ErrCorrupt, h)
			}
			data = rest
			switch {
			case e.IsGitlink():
			case e.IsTree():
				w.add(e.Hash)
			default:
				w.seen[e.Hash] = struct{}{} // a blob leads nowhere
			}
		}
	}
	return nil
}
