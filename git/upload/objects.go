package upload

import (
	"context"
	"fmt"
	"math"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/store"
)

// lister lists the objects that a client lacks.
type lister struct {
	ctx  context.Context
	objs store.Reader
	f    filter

	out  []plumbing.Hash
	seen objectSet
	// depths has the least depth at which a tree was found, if the filter limits depth.
	depths map[plumbing.Hash]int
	n      int
}

// maxTreeDepth bounds the nesting of folders.
const maxTreeDepth = 2048

// reuseFrom is the number of trees and blobs from which reading the whole trees at the boundary is worthwhile: that finds objects that were
// only moved.
const reuseFrom = 500

// maxEdges bounds the commits at the boundary whose whole trees are read.
const maxEdges = 8

// list returns every object that is reachable from wants and not known to be at the client. more are wanted too; haves, cut and theirs are
// those of history.between. common reports whether the client is known to have an object: a base for thin packs.
func list(h *history, wants, haves []plumbing.Hash, b *boundary, theirs hashSet, f filter) (out []plumbing.Hash, common hashSet, err error) {
	l := &lister{ctx: h.ctx, objs: h.objs, f: f}
	if f.depth < math.MaxInt {
		l.depths = map[plumbing.Hash]int{}
	}
	var tips, roots []plumbing.Hash
	named := hashSet{}
	for _, w := range wants {
		t, id, err := l.tags(w)
		if err != nil {
			return nil, nil, err
		}
		if t == plumbing.CommitObject {
			named.add(id)
			tips = append(tips, id)
		} else {
			roots = append(roots, id)
		}
	}
	tips = append(tips, b.more...)
	base, err := h.commits(haves)
	if err != nil {
		return nil, nil, err
	}
	base = append(base, b.unshallow...) // listed by the client among the haves
	commits, err := h.between(tips, base, b.cut, theirs)
	if err != nil {
		return nil, nil, err
	}
	if f.takes(plumbing.CommitObject) {
		for _, c := range commits {
			l.out = append(l.out, c.id)
		}
	} else {
		// Objects named directly or through a tag are sent regardless of the filter.
		for _, c := range tips {
			if n := h.nodes[c]; named.has(c) && n.marks&had == 0 && l.seen.add(c) {
				l.out = append(l.out, c)
			}
		}
	}
	common = hashSet{}
	var edges []plumbing.Hash
	if f.takes(plumbing.TreeObject) || f.takes(plumbing.BlobObject) || len(roots) > 0 {
		if edges, err = l.boundary(h, commits, b.cut, common); err != nil {
			return nil, nil, err
		}
		before := len(l.out)
		if err := l.trees(commits, roots); err != nil {
			return nil, nil, err
		}
		if len(edges) > 0 && len(l.out)-before > reuseFrom {
			if err := l.moved(edges, before, common); err != nil {
				return nil, nil, err
			}
		}
	}
	return l.out, common, nil
}

// tags lists a want that is a tag, and returns its target.
func (l *lister) tags(w plumbing.Hash) (plumbing.ObjectType, plumbing.Hash, error) {
	for range 64 {
		t, _, err := l.objs.Header(w)
		if err != nil || t != plumbing.TagObject {
			return t, w, err
		}
		if l.seen.add(w) {
			l.out = append(l.out, w)
		}
		tag, err := object.ReadTag(l.objs, w)
		if err != nil {
			return 0, w, err
		}
		w = tag.Target
	}
	return 0, w, fmt.Errorf("object %s: more than 64 tags of tags", w)
}

// boundary compares the oldest commits that are sent with their parents that are not, and marks what both have as seen.
func (l *lister) boundary(h *history, commits []*node, cut, common hashSet) (edges []plumbing.Hash, err error) {
	done := hashSet{}
	for _, c := range commits {
		if cut.has(c.id) {
			continue
		}
		for _, p := range c.parents {
			n := h.nodes[p]
			if n == nil || n.marks&had == 0 {
				continue
			}
			if done.add(n.tree) {
				edges = append(edges, n.tree)
			}
			if err := l.compare(n.tree, c.tree, common, 0); err != nil {
				return nil, err
			}
		}
	}
	return edges, nil
}

// compare marks what is in the folders of old that next has in another form.
func (l *lister) compare(old, next plumbing.Hash, common hashSet, depth int) error {
	common.add(old)
	l.seen.add(old)
	if old == next {
		return nil
	}
	if depth > maxTreeDepth {
		return fmt.Errorf("tree %s: folders too deep", next)
	}
	was, err := l.read(old)
	if err != nil {
		return err
	}
	now, err := l.read(next)
	if err != nil {
		return err
	}
	theirs := map[string]plumbing.Hash{}
	err = entries(old, was, func(e *object.Entry) error {
		if e.Type() == plumbing.CommitObject {
			return nil
		}
		l.seen.add(e.Hash)
		common.add(e.Hash)
		if e.Type() == plumbing.TreeObject {
			theirs[string(e.Name)] = e.Hash
		}
		return nil
	})
	if err != nil {
		return err
	}
	return entries(next, now, func(e *object.Entry) error {
		if t, ok := theirs[string(e.Name)]; ok && e.Type() == plumbing.TreeObject && t != e.Hash {
			return l.compare(t, e.Hash, common, depth+1)
		}
		return nil
	})
}

// trees lists the trees of commits, and roots, which are wanted by name or through a tag: those are sent whatever the filter, as by git.
func (l *lister) trees(commits []*node, roots []plumbing.Hash) error {
	for _, c := range commits {
		if err := l.tree(c.tree, 0); err != nil {
			return err
		}
	}
	for _, id := range roots {
		t, _, err := l.objs.Header(id)
		if err != nil {
			return err
		}
		// A named root is sent even if the boundary has it: the client requests what it lacks.
		l.out = append(l.out, id)
		l.seen.add(id)
		if t == plumbing.TreeObject {
			// git's filters ignore such a tree: its content counts as top level.
			if err := l.below(id, -1); err != nil {
				return err
			}
		}
	}
	return nil
}

// tree lists a tree and what is below it.
func (l *lister) tree(id plumbing.Hash, depth int) error {
	if l.depths != nil {
		at, ok := l.depths[id]
		if ok && at <= depth || !ok && l.seen.has(id) {
			return nil // no less deep than before, or the client's
		}
		l.depths[id] = depth
		if depth >= l.f.depth {
			return nil
		}
		if l.seen.add(id) && l.f.takes(plumbing.TreeObject) {
			l.out = append(l.out, id)
		}
		return l.below(id, depth)
	}
	if !l.seen.add(id) {
		return nil
	}
	if l.f.takes(plumbing.TreeObject) {
		l.out = append(l.out, id)
	}
	return l.below(id, depth)
}

func (l *lister) below(id plumbing.Hash, depth int) error {
	if depth > maxTreeDepth {
		return fmt.Errorf("tree %s: folders too deep", id)
	}
	data, err := l.read(id)
	if err != nil {
		return err
	}
	return entries(id, data, func(e *object.Entry) error {
		switch e.Type() {
		case plumbing.TreeObject:
			return l.tree(e.Hash, depth+1)
		case plumbing.BlobObject:
			return l.blob(e.Hash, depth+1)
		default:
			return nil // a submodule's commit is not in this repository
		}
	})
}

func (l *lister) blob(id plumbing.Hash, depth int) error {
	if l.f.blobLimit == 0 || depth >= l.f.depth || !l.f.takes(plumbing.BlobObject) || !l.seen.add(id) {
		return nil
	}
	if l.f.blobLimit < math.MaxInt64 {
		_, size, err := l.objs.Header(id)
		if err != nil {
			return err
		}
		if size >= l.f.blobLimit {
			return nil
		}
	}
	l.out = append(l.out, id)
	return nil
}

// moved removes from the list, from position from on, what the trees at the boundary have under other names.
func (l *lister) moved(edges []plumbing.Hash, from int, common hashSet) error {
	have := &lister{ctx: l.ctx, objs: l.objs, f: noFilter()}
	for _, e := range edges[:min(len(edges), maxEdges)] {
		if err := have.tree(e, 0); err != nil {
			return err
		}
	}
	kept := l.out[:from]
	for _, h := range l.out[from:] {
		if !have.seen.has(h) {
			kept = append(kept, h)
		}
	}
	l.out = kept
	have.seen.each(func(h plumbing.Hash) { common.add(h) })
	return nil
}

func (l *lister) read(id plumbing.Hash) ([]byte, error) {
	if l.n++; l.n%64 == 0 {
		if err := l.ctx.Err(); err != nil {
			return nil, err
		}
	}
	t, data, err := l.objs.Get(id)
	if err == nil && t != plumbing.TreeObject {
		err = &object.WrongTypeError{Hash: id, Got: t, Want: plumbing.TreeObject}
	}
	return data, err
}

// entries calls fn for every entry of a tree; the entry is valid until fn returns.
func entries(id plumbing.Hash, data []byte, fn func(*object.Entry) error) error {
	var e object.Entry
	var ok bool
	for len(data) > 0 {
		if e, data, ok = object.NextEntry(data); !ok {
			return fmt.Errorf("tree %s cannot be read", id)
		}
		if err := fn(&e); err != nil {
			return err
		}
	}
	return nil
}
