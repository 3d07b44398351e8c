package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/pack"
)

// Connect is the input of a connectivity check.
type Connect struct {
	// Tips are the new values of refs. Zero hashes are skipped.
	Tips []plumbing.Hash
	// Refs is what all refs point to now, including hidden ones: what they reach is complete.
	Refs []plumbing.Hash
	// Shallow are the commits that the client reported as present without their parents.
	Shallow []plumbing.Hash
	// Cut are commits that were fetched without their parents, where history ends.
	Cut []plumbing.Hash
}

// MissingError reports that a pushed object needs one that does not exist.
type MissingError struct {
	Hash plumbing.Hash
	Type plumbing.ObjectType
	// By is the object that needs it, zero if a ref would point to it. Commit is the commit whose tree has it, Path the path there,
	// if they are known.
	By, Commit plumbing.Hash
	Path       string
}

func (e *MissingError) Error() string {
	s := fmt.Sprintf("%s %s is missing", e.Type, e.Hash)
	if e.Type == plumbing.InvalidObject {
		s = fmt.Sprintf("object %s is missing", e.Hash)
	}
	switch {
	case e.Path != "":
		return fmt.Sprintf("%s: %q of commit %s", s, e.Path, e.Commit)
	case !e.By.IsZero():
		return fmt.Sprintf("%s: %s needs it", s, e.By)
	}
	return s
}

// ShallowError reports that a push comes from a shallow clone, and needs history that neither side has.
type ShallowError struct {
	// Roots are the commits whose parents are missing.
	Roots []plumbing.Hash
}

func (e *ShallowError) Error() string {
	return fmt.Sprintf("shallow update not allowed: the parents of %s are missing", e.Roots[0])
}

// maxTreeDepth is the deepest nesting of trees, git's core.maxTreeDepth.
const maxTreeDepth = 2048

// Connected reports whether everything that the tips need exists, from what was pushed to what the refs reach. Existing is not enough: an
// object that no ref reaches is followed as if it had been pushed. Errors: *MissingError, *ShallowError, *object.WrongTypeError,
// pack.ErrCorrupt.
func Connected(ctx context.Context, r Reader, c Connect) error {
	return newChecker(ctx, r, nil, c).walk(c.Tips)
}

// fewObjects is the size of a push up to which walking it is fast enough.
const fewObjects = 2000

// Connected is the function Connected for what the quarantine ingested. If everything that the pack's objects need is in the pack, or in
// the trees of the parent commits, nothing is read again.
func (q *Quarantine) Connected(ctx context.Context, c Connect) error {
	q.mu.Lock()
	in := q.ingested
	q.mu.Unlock()
	k := newChecker(ctx, q, in, c)
	if in != nil && in.Objects > fewObjects {
		ok, err := k.complete(c.Tips)
		if ok || err != nil {
			return err
		}
	}
	return k.walk(c.Tips)
}

// use is an object and the type it is used as: an object that is complete as a blob need not be as a tree.
type use struct {
	hash plumbing.Hash
	typ  plumbing.ObjectType
}

// checker is one check.
type checker struct {
	ctx     context.Context
	r       Reader
	in      *Ingested
	reach   *reach
	shallow map[plumbing.Hash]bool
	cut     map[plumbing.Hash]bool
	seen    map[use]struct{}
	todo    []plumbing.Hash // commits
	roots   []plumbing.Hash // shallow ones
	steps   int
}

func newChecker(ctx context.Context, r Reader, in *Ingested, c Connect) *checker {
	k := &checker{ctx: ctx, r: r, in: in, reach: newReach(ctx, r, c.Refs), shallow: map[plumbing.Hash]bool{}, cut: map[plumbing.Hash]bool{}, seen: map[use]struct{}{}}
	for _, h := range c.Shallow {
		k.shallow[h] = true
	}
	for _, h := range c.Cut {
		k.cut[h] = true
	}
	return k
}

// received returns the type of an object of the pack.
func (k *checker) received(h plumbing.Hash) (plumbing.ObjectType, bool) {
	if k.in == nil {
		return 0, false
	}
	return k.in.Received(h)
}

// step checks for cancellation.
func (k *checker) step() error {
	if k.steps++; k.steps%256 == 0 {
		return k.ctx.Err()
	}
	return nil
}

// mark reports whether h is new as a t.
func (k *checker) mark(h plumbing.Hash, t plumbing.ObjectType) bool {
	u := use{h, t}
	if _, ok := k.seen[u]; ok {
		return false
	}
	k.seen[u] = struct{}{}
	return true
}

// walk follows the tips.
func (k *checker) walk(tips []plumbing.Hash) error {
	for _, h := range tips {
		if h.IsZero() {
			continue
		}
		if err := k.tip(h, plumbing.InvalidObject, plumbing.ZeroHash); err != nil {
			return err
		}
	}
	for len(k.todo) > 0 {
		h := k.todo[len(k.todo)-1]
		k.todo = k.todo[:len(k.todo)-1]
		if err := k.commit(h); err != nil {
			return err
		}
	}
	if len(k.roots) > 0 {
		return &ShallowError{k.roots}
	}
	return nil
}

// tip follows the target of a ref or a tag. want is InvalidObject if any type is allowed.
func (k *checker) tip(h plumbing.Hash, want plumbing.ObjectType, by plumbing.Hash) error {
	for range object.MaxPeel {
		t, _, err := k.r.Header(h)
		if errors.Is(err, ErrNotFound) {
			return &MissingError{Hash: h, Type: want, By: by}
		}
		if err != nil {
			return err
		}
		if want != plumbing.InvalidObject && t != want {
			return &object.WrongTypeError{Hash: h, Got: t, Want: want}
		}
		if _, ok := k.received(h); !ok {
			if ok, err := k.reach.has(h); ok || err != nil {
				return err
			}
		}
		if t == plumbing.TreeObject {
			return k.tree(h, nil, plumbing.ZeroHash, "", 0) // which marks it
		}
		if !k.mark(h, t) {
			return nil
		}
		switch t {
		case plumbing.CommitObject:
			k.todo = append(k.todo, h)
			return nil
		case plumbing.TagObject:
			tag, err := object.ReadTag(k.r, h)
			if err != nil {
				return err
			}
			h, want, by = tag.Target, tag.Type, h
		default:
			return nil
		}
	}
	return fmt.Errorf("%w: tag %s: more than %d tags of tags", pack.ErrCorrupt, h, object.MaxPeel)
}

// commit follows a commit that is not reached from a ref.
func (k *checker) commit(h plumbing.Hash) error {
	if err := k.step(); err != nil {
		return err
	}
	c, err := object.ReadHead(k.r, h)
	if err != nil {
		return err
	}
	var before []plumbing.Hash
	if k.cut[h] {
		c.Parents = nil
	}
	for _, p := range c.Parents {
		_, came := k.received(p)
		if !came {
			ok, err := k.reach.has(p)
			if err != nil {
				return err
			}
			came = ok
			if ok {
				k.mark(p, plumbing.CommitObject)
			}
		}
		if !came {
			if ok, err := k.r.Has(p); err != nil {
				return err
			} else if !ok {
				if k.shallow[h] {
					k.roots = append(k.roots, h)
					continue
				}
				return &MissingError{Hash: p, Type: plumbing.CommitObject, By: h}
			}
		}
		if k.mark(p, plumbing.CommitObject) {
			k.todo = append(k.todo, p)
		}
		pc, err := object.ReadHead(k.r, p)
		if err != nil {
			return err
		}
		before = append(before, pc.Tree)
	}
	return k.tree(c.Tree, before, h, "", 0)
}

// tree follows a tree. Entries that are in one of the trees of before, which are complete or are walked themselves, are skipped.
func (k *checker) tree(h plumbing.Hash, before []plumbing.Hash, commit plumbing.Hash, path string, depth int) error {
	if depth > maxTreeDepth {
		return fmt.Errorf("%w: trees of commit %s are nested deeper than %d", pack.ErrCorrupt, commit, maxTreeDepth)
	}
	for _, b := range before {
		if b == h {
			return nil
		}
	}
	if !k.mark(h, plumbing.TreeObject) {
		return nil
	}
	if err := k.step(); err != nil {
		return err
	}
	t, data, err := k.r.Get(h)
	if errors.Is(err, ErrNotFound) {
		return &MissingError{Hash: h, Type: plumbing.TreeObject, By: commit, Commit: commit, Path: path}
	}
	if err != nil {
		return err
	}
	if t != plumbing.TreeObject {
		return &object.WrongTypeError{Hash: h, Got: t, Want: plumbing.TreeObject}
	}
	old := make([]cursor, 0, len(before))
	for _, b := range before {
		if t, data, err := k.r.Get(b); err == nil && t == plumbing.TreeObject {
			old = append(old, cursor{rest: data})
		}
	}
	var below []plumbing.Hash
	for {
		e, rest, ok := object.NextEntry(data)
		if !ok {
			if len(rest) > 0 {
				return fmt.Errorf("%w: tree %s cannot be read", pack.ErrCorrupt, h)
			}
			return nil
		}
		data = rest
		same := false
		below = below[:0]
		for i := range old {
			if o := old[i].at(&e); o != nil {
				same = same || o.Hash == e.Hash && o.Type() == e.Type()
				if o.IsTree() {
					below = append(below, o.Hash)
				}
			}
		}
		switch {
		case same || e.IsGitlink():
		case e.IsTree():
			err = k.tree(e.Hash, append([]plumbing.Hash(nil), below...), commit, join(path, e.Name), depth+1)
		default:
			err = k.blob(&e, commit, path)
		}
		if err != nil {
			return err
		}
	}
}

func join(path string, name []byte) string {
	if path == "" {
		return string(name)
	}
	return path + "/" + string(name)
}

func (k *checker) blob(e *object.Entry, commit plumbing.Hash, path string) error {
	if !k.mark(e.Hash, plumbing.BlobObject) {
		return nil
	}
	t, ok := k.received(e.Hash)
	if !ok {
		var err error
		t, _, err = k.r.Header(e.Hash)
		if errors.Is(err, ErrNotFound) {
			return &MissingError{Hash: e.Hash, Type: plumbing.BlobObject, By: commit, Commit: commit, Path: join(path, e.Name)}
		}
		if err != nil {
			return err
		}
	}
	if t != plumbing.BlobObject {
		return &object.WrongTypeError{Hash: e.Hash, Got: t, Want: plumbing.BlobObject}
	}
	return nil
}

// cursor reads a tree in step with another one.
type cursor struct {
	cur  object.Entry
	ok   bool
	rest []byte
}

// at returns the entry of e's name and type, or nil. Names must be requested in ascending order.
func (c *cursor) at(e *object.Entry) *object.Entry {
	for {
		if c.ok {
			switch d := object.Compare(&c.cur, e); {
			case d == 0:
				return &c.cur
			case d > 0:
				return nil
			}
		}
		if c.cur, c.rest, c.ok = object.NextEntry(c.rest); !c.ok {
			return nil
		}
	}
}
