package store

import (
	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// complete tries to prove that every object that the pack refers to exists. false proves nothing.
func (k *checker) complete(tips []plumbing.Hash) (bool, error) {
	for _, h := range tips {
		if _, ok := k.received(h); ok || h.IsZero() {
			continue
		}
		if ok, err := k.reach.has(h); !ok || err != nil {
			return false, err
		}
	}
	out, err := k.in.links.outside(k.in.Result)
	if err != nil {
		return false, err
	}
	want := map[use]struct{}{}
	var trees []plumbing.Hash
	for _, l := range out {
		switch plumbing.ObjectType(l.typ) {
		case plumbing.CommitObject, plumbing.TagObject:
			ok, err := k.reach.has(l.hash)
			if !ok || err != nil {
				return false, err
			}
			if t, _, err := k.r.Header(l.hash); err != nil || t != plumbing.ObjectType(l.typ) {
				return false, err
			}
			if plumbing.ObjectType(l.typ) == plumbing.CommitObject {
				c, err := object.ReadHead(k.r, l.hash)
				if err != nil {
					return false, err
				}
				trees = append(trees, c.Tree)
			}
		default:
			want[use{l.hash, plumbing.ObjectType(l.typ)}] = struct{}{}
		}
	}
	seen := map[plumbing.Hash]struct{}{}
	for len(want) > 0 && len(trees) > 0 {
		h := trees[len(trees)-1]
		trees = trees[:len(trees)-1]
		if _, ok := seen[h]; ok {
			continue
		}
		seen[h] = struct{}{}
		delete(want, use{h, plumbing.TreeObject})
		if err := k.step(); err != nil {
			return false, err
		}
		t, data, err := k.r.Get(h)
		if err != nil || t != plumbing.TreeObject {
			return false, err
		}
		for e, rest, ok := object.NextEntry(data); ok; e, rest, ok = object.NextEntry(rest) {
			if e.IsTree() {
				trees = append(trees, e.Hash)
			} else {
				delete(want, use{e.Hash, e.Type()})
			}
		}
	}
	return len(want) == 0, nil
}
