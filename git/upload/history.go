package upload

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/store"
)

// mark is a set of flags of a commit in a walk.
type mark uint8

const (
	wanted   mark = 1 << iota // reachable from a want
	had                       // the client has it
	queued                    // in the walk's queue
	theyHave                  // the client named it
)

// node is a commit as walks see it.
type node struct {
	id, tree plumbing.Hash
	parents  []plumbing.Hash
	date     int64
	marks    mark
}

// history reads commits, each once.
type history struct {
	ctx   context.Context
	objs  store.Reader
	nodes map[plumbing.Hash]*node
}

func newHistory(ctx context.Context, objs store.Reader) *history {
	return &history{ctx: ctx, objs: objs, nodes: map[plumbing.Hash]*node{}}
}

// commit reads one commit.
func (h *history) commit(id plumbing.Hash) (*node, error) {
	if n := h.nodes[id]; n != nil {
		return n, nil
	}
	if err := h.ctx.Err(); err != nil {
		return nil, err
	}
	c, err := object.ReadHead(h.objs, id)
	if err != nil {
		return nil, err
	}
	n := &node{id: id, tree: c.Tree, parents: c.Parents, date: c.Date}
	h.nodes[id] = n
	return n, nil
}

// clear removes flags from all commits.
func (h *history) clear(m mark) {
	for _, n := range h.nodes {
		n.marks &^= m
	}
}

// hashSet is a set of object names.
type hashSet map[plumbing.Hash]struct{}

func (s hashSet) has(h plumbing.Hash) bool { _, ok := s[h]; return ok }

// add reports whether h is new.
func (s hashSet) add(h plumbing.Hash) bool {
	if s.has(h) {
		return false
	}
	s[h] = struct{}{}
	return true
}

// between lists the commits that are reachable from wants and not from haves, newest first, and sets the flags wanted and had on every
// commit that it reads. The wanted side ends at the commits of cut (the client's new shallow boundary), the other at those of theirs (its
// present one). It may list too many commits if commit dates are not in order, never too few.
func (h *history) between(wants, haves []plumbing.Hash, cut, theirs hashSet) ([]*node, error) {
	h.clear(wanted | had | queued)
	var q object.Queue[*node]
	open := 0 // queued commits that are wanted and not had
	add := func(id plumbing.Hash, m mark) error {
		n, err := h.commit(id)
		if err != nil {
			return err
		}
		if n.marks&m == m {
			return nil
		}
		if n.marks&queued != 0 && n.marks&had == 0 {
			open--
		}
		n.marks |= m
		if n.marks&had == 0 {
			open++
		}
		if n.marks&queued == 0 {
			n.marks |= queued
			q.Push(n.date, n)
		}
		return nil
	}
	for _, id := range haves {
		if err := add(id, had); err != nil {
			return nil, err
		}
	}
	for _, id := range wants {
		if err := add(id, wanted); err != nil {
			return nil, err
		}
	}
	var out []*node
	for open > 0 {
		n := q.Pop()
		n.marks &^= queued
		if n.marks&had == 0 {
			open--
			out = append(out, n)
		}
		for _, p := range n.parents {
			if n.marks&had != 0 && !theirs.has(n.id) {
				if err := add(p, had); err != nil {
					return nil, err
				}
			}
			if n.marks&wanted != 0 && !cut.has(n.id) {
				if err := add(p, wanted); err != nil {
					return nil, err
				}
			}
		}
	}
	// Some became had after they were listed, or were listed twice.
	kept := out[:0]
	seen := make(hashSet, len(out))
	for _, n := range out {
		if n.marks&had == 0 && seen.add(n.id) {
			kept = append(kept, n)
		}
	}
	return kept, nil
}

// reaches reports whether each of wants is, or has an ancestor that is, a commit that the client named (theyHave). Commits older than
// oldest are skipped: they can't lead to one.
func (h *history) reaches(wants []plumbing.Hash, oldest int64) (bool, error) {
	seen := hashSet{}
	for _, w := range wants {
		id, t, err := object.Peel(h.objs, w)
		if err != nil {
			return false, err
		}
		if t != plumbing.CommitObject {
			continue
		}
		found := false
		todo := []plumbing.Hash{id}
		// What an earlier want visited is visited again for this one, because it may lead to a common commit.
		clear(seen)
		for len(todo) > 0 && !found {
			id := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if !seen.add(id) {
				continue
			}
			n, err := h.commit(id)
			if err != nil {
				return false, err
			}
			if found = n.marks&theyHave != 0; !found && n.date >= oldest {
				todo = append(todo, n.parents...)
			}
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}
