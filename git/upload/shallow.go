package upload

import (
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// infinite is the depth that git fetch --unshallow requests.
const infinite = 0x7fffffff

// deepen is a client's request about its shallow boundary. The zero value requests nothing.
type deepen struct {
	depth    int
	relative bool
	since    int64
	not      []string
}

func (d *deepen) asked() bool { return d.depth > 0 || d.since > 0 || len(d.not) > 0 }

// boundary is the answer to a deepen request.
type boundary struct {
	// shallow are commits of the new boundary that the client must record, unshallow those that it must remove.
	shallow, unshallow []plumbing.Hash
	// cut is the whole boundary that the client has afterwards: commits beyond it are not sent.
	cut hashSet
	// more are the parents of unshallow commits: they are wanted although the client has those commits.
	more []plumbing.Hash
}

var errNoShallow = errors.New("no commits selected for shallow requests")

// bound computes the boundary for wants, from a client that is shallow at theirs. visible are the refs that it may read.
func (h *history) bound(d *deepen, wants, visible, theirs, not []plumbing.Hash) (*boundary, error) {
	b := &boundary{cut: hashSet{}}
	if !d.asked() {
		for _, s := range theirs {
			b.cut.add(s)
		}
		return b, nil
	}
	tips, err := h.commits(wants)
	if err != nil {
		return nil, err
	}
	var edge []plumbing.Hash
	var inside hashSet
	switch {
	case d.depth >= infinite:
		// A complete clone stays complete: for a client that lacks only a tag, wants is only that, and its whole boundary is removed, as
		// in git (upload-pack.c, deepen). Except for commits that lead to what the client may not read.
		var tip []plumbing.Hash
		if tip, err = h.commits(visible); err != nil {
			return nil, err
		}
		inside = hashSet{}
		found, err := h.reachable(append(tips, tip...), theirs)
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			inside.add(id)
		}
	case d.depth > 0:
		depth := d.depth
		if d.relative {
			// The depth counts from the whole boundary of the client that some ref reaches, wanted or not (upload-pack.c,
			// get_reachable_list).
			seen, err := h.commits(visible)
			if err != nil {
				return nil, err
			}
			if tips, err = h.reachable(seen, theirs); err != nil {
				return nil, err
			}
			depth++
		}
		edge, inside, err = h.levels(tips, depth)
	default:
		edge, inside, err = h.recent(tips, d.since, not)
	}
	if err != nil {
		return nil, err
	}
	client := hashSet{}
	for _, s := range theirs {
		client.add(s)
	}
	for _, e := range edge {
		b.cut.add(e)
		if !client.has(e) {
			b.shallow = append(b.shallow, e)
		}
	}
	for _, s := range theirs {
		if b.cut.has(s) {
			continue
		}
		if !inside.has(s) {
			b.cut.add(s)
			continue
		}
		b.unshallow = append(b.unshallow, s)
		n, err := h.commit(s)
		if err != nil {
			return nil, err
		}
		b.more = append(b.more, n.parents...)
	}
	return b, nil
}

// commits peels names to commits; other objects are skipped.
func (h *history) commits(ids []plumbing.Hash) ([]plumbing.Hash, error) {
	var out []plumbing.Hash
	for _, id := range ids {
		c, t, err := object.Peel(h.objs, id)
		if err != nil {
			return nil, err
		}
		if t == plumbing.CommitObject {
			out = append(out, c)
		}
	}
	return out, nil
}

// levels walks depth commits deep, counted from the nearest of tips. edge are the commits at that depth, inside those before it.
func (h *history) levels(tips []plumbing.Hash, depth int) (edge []plumbing.Hash, inside hashSet, err error) {
	inside = hashSet{}
	seen := hashSet{}
	level := tips
	for at := 1; len(level) > 0; at++ {
		var next []plumbing.Hash
		for _, id := range level {
			if !seen.add(id) {
				continue
			}
			n, err := h.commit(id)
			if err != nil {
				return nil, nil, err
			}
			if at >= depth {
				edge = append(edge, id)
				continue
			}
			inside.add(id)
			next = append(next, n.parents...)
		}
		level = next
	}
	return edge, inside, nil
}

// recent walks the commits that are not older than since and not reachable from not. edge are those of them with a parent outside.
func (h *history) recent(tips []plumbing.Hash, since int64, not []plumbing.Hash) (edge []plumbing.Hash, inside hashSet, err error) {
	out := hashSet{}
	todo := not
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !out.add(id) {
			continue
		}
		n, err := h.commit(id)
		if err != nil {
			return nil, nil, err
		}
		todo = append(todo, n.parents...)
	}
	inside = hashSet{}
	todo = tips
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if inside.has(id) || out.has(id) {
			continue
		}
		n, err := h.commit(id)
		if err != nil {
			return nil, nil, err
		}
		if n.date < since {
			continue
		}
		inside.add(id)
		todo = append(todo, n.parents...)
	}
	if len(inside) == 0 {
		return nil, nil, errNoShallow
	}
	for id := range inside {
		for _, p := range h.nodes[id].parents {
			if !inside.has(p) {
				edge = append(edge, id)
				break
			}
		}
	}
	plumbing.HashesSort(edge)
	return edge, inside, nil
}

// reachable returns those of targets that tips lead to.
func (h *history) reachable(tips, targets []plumbing.Hash) ([]plumbing.Hash, error) {
	left := hashSet{}
	for _, t := range targets {
		left.add(t)
	}
	var out []plumbing.Hash
	seen := hashSet{}
	todo := append([]plumbing.Hash(nil), tips...)
	for len(todo) > 0 && len(left) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen.add(id) {
			continue
		}
		if left.has(id) {
			delete(left, id)
			out = append(out, id)
		}
		n, err := h.commit(id)
		if err != nil {
			return nil, err
		}
		todo = append(todo, n.parents...)
	}
	return out, nil
}
