package worktree

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/internal/fault"
)

// Change is one path in which two commits differ.
type Change struct {
	// Status is 'A' added, 'M' content or executable bit changed, 'T' another type, 'D' removed, as git diff --name-status prints.
	Status byte
	Path   string
}

// Changes is what two commits differ in.
type Changes struct {
	Added, Changed, Removed int
	// Bytes is what the contents of added and changed files take on disk, in blocks of 4 KiB.
	Bytes int64
	// Paths are in byte order; at most the limit of Diff, all are counted.
	Paths []Change
	// Links are the submodules among them, all of them.
	Links []LinkChange
}

// LinkChange is a path at which one of two commits, or both, have a submodule, and not the same. Zero is none.
type LinkChange struct {
	Path     string
	Old, New plumbing.Hash
}

// Files is the number of files in which the commits differ.
func (c *Changes) Files() int { return c.Added + c.Changed + c.Removed }

// Diff compares the trees of two commits, reading only folders that differ. A zero old is the empty tree, a zero next
// likewise. At most limit paths are listed; 0 lists all. Renames are a removal and an addition.
func Diff(ctx context.Context, objs Objects, old, next plumbing.Hash, limit int) (*Changes, error) {
	tree := func(h plumbing.Hash) (plumbing.Hash, error) {
		if h.IsZero() {
			return h, nil
		}
		id, data, err := peel(objs, h)
		if err != nil {
			return h, err
		}
		c, err := parseCommit(id, data)
		if err != nil {
			return h, err
		}
		return c.Tree, nil
	}
	a, err := tree(old)
	if err != nil {
		return nil, err
	}
	b, err := tree(next)
	if err != nil {
		return nil, err
	}
	d := &differ{ctx: ctx, objs: objs, limit: limit}
	return &d.out, d.dir(a, b, "", 0)
}

type differ struct {
	ctx   context.Context
	objs  Objects
	limit int
	seen  int
	out   Changes
}

func (d *differ) dir(a, b plumbing.Hash, path string, depth int) error {
	if a == b {
		return nil
	}
	if err := d.ctx.Err(); err != nil {
		return err
	}
	list := func(h plumbing.Hash) ([]treeItem, error) {
		if h.IsZero() {
			return nil, nil
		}
		return readTree(d.objs, h)
	}
	x, err := list(a)
	if err != nil {
		return inFolder(path, err)
	}
	y, err := list(b)
	if err != nil {
		return inFolder(path, err)
	}
	if d.seen += len(x) + len(y); depth > maxDepth || d.seen > 4*defaultFiles {
		return fault.New(fault.Refused, "compare", "the commits have too many files and folders")
	}
	for len(x) > 0 || len(y) > 0 {
		var old, next treeItem
		switch {
		case len(x) > 0 && len(y) > 0 && x[0].name == y[0].name && (x[0].mode == object.ModeTree) == (y[0].mode == object.ModeTree):
			old, next, x, y = x[0], y[0], x[1:], y[1:]
		case len(y) == 0 || len(x) > 0 && before(&x[0], &y[0]):
			old, x = x[0], x[1:]
		default:
			next, y = y[0], y[1:]
		}
		name := path + old.name
		if old.name == "" {
			name = path + next.name
		}
		if old.mode == object.ModeTree || next.mode == object.ModeTree {
			if err := d.dir(old.oid, next.oid, name+"/", depth+1); err != nil {
				return err
			}
			continue
		}
		if l := (LinkChange{Path: name, Old: link(&old), New: link(&next)}); l.Old != l.New {
			d.out.Links = append(d.out.Links, l)
		}
		if next.name != "" && next.oid != old.oid {
			if err := d.weigh(&next); err != nil {
				return inFolder(path, err)
			}
		}
		switch {
		case old.name == "":
			d.add('A', name)
		case next.name == "":
			d.add('D', name)
		case !sameType(old.mode, next.mode):
			d.add('T', name)
		case old.oid != next.oid || old.mode != next.mode:
			d.add('M', name)
		}
	}
	return nil
}

// link is the commit that a gitlink names, zero for anything else.
func link(it *treeItem) plumbing.Hash {
	if it.mode != object.ModeGitlink {
		return plumbing.ZeroHash
	}
	return it.oid
}

// weigh counts what a file will take.
func (d *differ) weigh(it *treeItem) error {
	if it.mode != object.ModeFile && it.mode != object.ModeExecutable {
		return nil // a link lies in its inode, a submodule is not fetched
	}
	_, size, err := d.objs.Header(it.oid)
	d.out.Bytes += (size + blockSize - 1) / blockSize * blockSize
	return err
}

// blockSize is what a file system hands out at least, nearly everywhere.
const blockSize = 4096

func (d *differ) add(status byte, path string) {
	switch status {
	case 'A':
		d.out.Added++
	case 'D':
		d.out.Removed++
	default:
		d.out.Changed++
	}
	if d.limit <= 0 || len(d.out.Paths) < d.limit {
		d.out.Paths = append(d.out.Paths, Change{status, path})
	}
}

// Facts are what a push's first line says of a commit.
type Facts struct {
	Commit            plumbing.Hash
	Tree              plumbing.Hash
	Parents           []plumbing.Hash
	Author, Committer object.Signature
	// Subject is the first paragraph of the message on one line, as pushed: any bytes.
	Subject string
}

// Describe reads a commit, or what a tag names.
func Describe(objs Objects, commit plumbing.Hash) (Facts, error) {
	id, data, err := peel(objs, commit)
	if err != nil {
		return Facts{}, err
	}
	c, err := parseCommit(id, data)
	if err != nil {
		return Facts{}, err
	}
	return Facts{Commit: id, Tree: c.Tree, Parents: c.Parents, Author: c.Author, Committer: c.Committer, Subject: c.Subject}, nil
}

// Advance says how a branch moves from one commit to another.
type Advance struct {
	// Commits is the number of commits that the new one has and the old one has not; Lost those of the old one alone. Where the
	// dates of commits run backwards, as after a clock was wrong, both may be too high.
	Commits, Lost int
	// More is true where counting ended at the limit.
	More bool
	// FastForward is true where the new one contains the old one (or there is no old one). It is exact unless More.
	FastForward bool
}

// maxAdvance bounds a count: what a person reads is "10,000 or more".
const maxAdvance = 10_000

// Compare counts the commits between old (zero: none) and next. The work is bounded: see Advance.More. Parents that are not in
// the store (a shallow repository) end the walk.
func Compare(ctx context.Context, objs Objects, old, next plumbing.Hash) (Advance, error) {
	const left, right, both = 1, 2, 3
	w := &walk{ctx: ctx, objs: objs, seen: map[plumbing.Hash]*walked{}}
	var adv Advance
	if old.IsZero() {
		adv.FastForward = true
	} else if err := w.add(old, left, true); err != nil {
		return adv, err
	}
	if err := w.add(next, right, true); err != nil {
		return adv, err
	}
	// Newest first, until nothing but common commits waits. Those may still be below a wrongly dated one, so a
	// commit's colours are handed on whenever they grow.
	for n := 0; w.pending > 0; n++ {
		if n >= maxAdvance {
			adv.More = true
			break
		}
		c := w.queue.Pop()
		c.queued = false
		if c.colour != both {
			w.pending--
		}
		for _, p := range c.parents {
			if err := w.add(p, c.colour, false); err != nil {
				return adv, err
			}
		}
	}
	for _, c := range w.seen {
		switch c.colour {
		case left:
			adv.Lost++
		case right:
			adv.Commits++
		}
	}
	if !old.IsZero() {
		id, _, err := peel(objs, old)
		if err != nil {
			return adv, err
		}
		adv.FastForward = w.seen[id].colour == both
	}
	return adv, nil
}

type walked struct {
	parents []plumbing.Hash
	date    int64
	colour  uint8
	queued  bool
	missing bool
}

type walk struct {
	ctx     context.Context
	objs    Objects
	seen    map[plumbing.Hash]*walked
	queue   object.Queue[*walked]
	pending int // queued commits of one colour
}

// add colours a commit and queues it if that is news.
func (w *walk) add(h plumbing.Hash, colour uint8, tip bool) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	c := w.seen[h]
	if c == nil {
		id, data, err := peel(w.objs, h)
		if err != nil {
			if tip {
				return err
			}
			w.seen[h] = &walked{missing: true, colour: 3}
			return nil
		}
		if c = w.seen[id]; c == nil {
			parsed, err := parseCommit(id, data)
			if err != nil {
				return err
			}
			c = &walked{parents: parsed.Parents, date: parsed.Date}
			w.seen[id] = c
		}
	}
	if c.missing || c.colour|colour == c.colour {
		return nil
	}
	if c.queued && c.colour != 3 {
		w.pending--
	}
	c.colour |= colour
	if c.colour != 3 {
		w.pending++
	}
	if !c.queued {
		c.queued = true
		w.queue.Push(c.date, c)
	}
	return nil
}
