package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pack"
)

// Rehash reads every object of the repository, without those of its alternates, and compares its content with its name. The first one that differs, or cannot be read, is an error, which wraps
// pack.ErrCorrupt where the content is wrong.
func (db *DB) Rehash(ctx context.Context) error {
	v, err := db.inventory()
	if err != nil {
		return err
	}
	for _, p := range v.packs {
		if err := rehashPack(ctx, p.Pack); err != nil {
			return fmt.Errorf("%s: %w", p.Path(), err)
		}
	}
	for _, l := range v.loose {
		if err := ctx.Err(); err != nil {
			return err
		}
		o, err := db.main.openLoose(l.hash)
		if err == nil {
			err = rehash(l.hash, o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", db.main.loosePath(l.hash), err)
		}
	}
	return nil
}

// rehashPack reads the objects in the order of the pack, in which bases are close to their deltas.
func rehashPack(ctx context.Context, p *pack.Pack) error {
	type place struct {
		off  int64
		hash plumbing.Hash
	}
	list := make([]place, 0, p.Count())
	if err := p.Each(func(h plumbing.Hash, off int64) error {
		list = append(list, place{off, h})
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.off, b.off) })
	for _, x := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, size, r, err := p.Stream(x.off)
		if err == nil {
			err = rehash(x.hash, &Object{t, size, r})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rehash compares an object with its name, and closes it.
func rehash(h plumbing.Hash, o *Object) (err error) {
	defer func() { err = errors.Join(err, o.Close()) }()
	got, err := pack.HashStream(o.Type, o.Size, o)
	if err == nil && got != h {
		err = fmt.Errorf("%w: the content of object %s has the hash %s", pack.ErrCorrupt, h, got)
	}
	return err
}
