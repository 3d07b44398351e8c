package upload

import (
	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// unreachable returns one of ids that no tip reaches, or ok false. Objects of hidden refs and of failed pushes are in the same store, so
// existing is not permission. The search goes from the newest commits back and ends when all are found, so that a partial clone that requests
// the files of a branch's tip costs one tree.
func (h *history) unreachable(ids, tips []plumbing.Hash) (one plumbing.Hash, bad bool, err error) {
	left, tipSet := hashSet{}, hashSet{}
	for _, t := range tips {
		tipSet.add(t)
	}
	for _, id := range ids {
		if !tipSet.has(id) {
			left.add(id)
		}
	}
	if len(left) == 0 {
		return one, false, nil
	}
	s := &searcher{lister: lister{ctx: h.ctx, objs: h.objs}, left: left}
	// Missing objects need no search; commits need no trees.
	trees := false
	for id := range left {
		t, _, err := h.objs.Header(id)
		if err != nil {
			return id, true, nil
		}
		trees = trees || t != plumbing.CommitObject
	}
	var q object.Queue[*node]
	push := func(id plumbing.Hash) error {
		if !s.seen.add(id) {
			return nil
		}
		n, err := h.commit(id)
		if err == nil {
			q.Push(n.date, n)
		}
		return err
	}
	for _, t := range tips {
		typ, id, err := s.tags(t)
		if err != nil {
			return one, false, err
		}
		switch typ {
		case plumbing.CommitObject:
			err = push(id)
		case plumbing.TreeObject:
			err = s.tree(id, 0)
		default:
			delete(left, id)
		}
		if err != nil {
			return one, false, err
		}
	}
	for _, id := range s.out {
		delete(left, id)
	}
	for q.Len() > 0 && len(left) > 0 {
		n := q.Pop()
		delete(left, n.id)
		if trees {
			if err := s.tree(n.tree, 0); err != nil {
				return one, false, err
			}
		}
		for _, p := range n.parents {
			if err := push(p); err != nil {
				return one, false, err
			}
		}
	}
	for id := range left {
		return id, true, nil
	}
	return one, false, nil
}

// searcher walks trees and removes what it finds from a list.
type searcher struct {
	lister
	left hashSet
}

func (s *searcher) tree(id plumbing.Hash, depth int) error {
	if len(s.left) == 0 || depth > maxTreeDepth || !s.seen.add(id) {
		return nil
	}
	delete(s.left, id)
	data, err := s.read(id)
	if err != nil {
		return err
	}
	return entries(id, data, func(e *object.Entry) error {
		switch e.Type() {
		case plumbing.TreeObject:
			return s.tree(e.Hash, depth+1)
		case plumbing.BlobObject:
			delete(s.left, e.Hash)
		}
		return nil
	})
}
