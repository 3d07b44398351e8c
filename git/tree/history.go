package tree

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// Facts are what the first line of a push's output shows of a commit.
type Facts struct {
	Commit            plumbing.Hash
	Tree              plumbing.Hash
	Parents           []plumbing.Hash
	Author, Committer object.Signature
	// Subject is the first paragraph of the message on one line, as pushed: any bytes.
	Subject string
}

// Describe reads a commit, or the target of a tag.
func Describe(objs Objects, commit plumbing.Hash) (Facts, error) {
	id, data, err := Peel(objs, commit)
	if err != nil {
		return Facts{}, err
	}
	c, err := ParseCommit(id, data)
	if err != nil {
		return Facts{}, err
	}
	return Facts{Commit: id, Tree: c.Tree, Parents: c.Parents, Author: c.Author, Committer: c.Committer, Subject: c.Subject}, nil
}

// Advance describes how a branch moves from one commit to another.
type Advance struct {
	// Commits is the number of commits that only the new one has; Lost those that only the old one has. If commit dates are not in
	// order, for example because of a wrong clock, both may be too high.
	Commits, Lost int
	// More is true if counting stopped at the limit.
	More bool
	// FastForward is true if the new one contains the old one (or there is no old one). It is exact unless More.
	FastForward bool
}

// maxAdvance limits counting: the output is then "10,000 or more".
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
	// Newest first, until only common commits are queued. Those may have ancestors with wrong dates, so a commit's colours are passed on
	// whenever they grow.
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
		id, _, err := Peel(objs, old)
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

// add colours a commit and queues it if its colours changed.
func (w *walk) add(h plumbing.Hash, colour uint8, tip bool) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	c := w.seen[h]
	if c == nil {
		id, data, err := Peel(w.objs, h)
		if err != nil {
			if tip {
				return err
			}
			w.seen[h] = &walked{missing: true, colour: 3}
			return nil
		}
		if c = w.seen[id]; c == nil {
			parsed, err := ParseCommit(id, data)
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
