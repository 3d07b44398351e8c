package store

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"strconv"

	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// commitHead is what a walk needs of a commit.
type commitHead struct {
	tree    plumbing.Hash
	parents []plumbing.Hash
	date    int64 // of the committer, in seconds; 0 where it cannot be read
}

// parseCommit reads the headers of a commit.
func parseCommit(h plumbing.Hash, data []byte) (c commitHead, err error) {
	bad := func(what string) (commitHead, error) {
		return c, fmt.Errorf("%w: commit %s: %s", pack.ErrCorrupt, h, what)
	}
	line, data, _ := bytes.Cut(data, []byte("\n"))
	if v, ok := bytes.CutPrefix(line, []byte("tree ")); !ok || !plumbing.IsHash(string(v)) {
		return bad("no tree")
	} else {
		c.tree = plumbing.NewHash(string(v))
	}
	for {
		line, data, _ = bytes.Cut(data, []byte("\n"))
		v, ok := bytes.CutPrefix(line, []byte("parent "))
		if !ok {
			break
		}
		if !plumbing.IsHash(string(v)) {
			return bad("a parent that is no object name")
		}
		c.parents = append(c.parents, plumbing.NewHash(string(v)))
	}
	for len(line) > 0 {
		if v, ok := bytes.CutPrefix(line, []byte("committer ")); ok {
			f := bytes.Fields(v[bytes.LastIndexByte(v, '>')+1:])
			if len(f) > 0 {
				c.date, _ = strconv.ParseInt(string(f[0]), 10, 64)
			}
			break
		}
		line, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return c, nil
}

// readCommit gives the headers of h, and a *WrongTypeError where it is no commit.
func readCommit(r Reader, h plumbing.Hash) (commitHead, error) {
	t, data, err := r.Get(h)
	if err != nil {
		return commitHead{}, err
	}
	if t != plumbing.CommitObject {
		return commitHead{}, &WrongTypeError{h, t, plumbing.CommitObject}
	}
	return parseCommit(h, data)
}

// reach knows what refs reach, and finds out no more of it than it is asked for: it walks from them by date, the youngest first.
type reach struct {
	ctx     context.Context
	r       Reader
	tips    []plumbing.Hash
	seen    map[plumbing.Hash]struct{}
	queue   dated
	started bool
}

func newReach(ctx context.Context, r Reader, tips []plumbing.Hash) *reach {
	v := &reach{ctx: ctx, r: r, tips: tips, seen: make(map[plumbing.Hash]struct{}, len(tips))}
	for _, h := range tips {
		v.seen[h] = struct{}{}
	}
	return v
}

// has tells whether a commit or tag can be reached. Where it cannot, all of history was walked.
func (v *reach) has(h plumbing.Hash) (bool, error) {
	if _, ok := v.seen[h]; ok {
		if v.started {
			return true, nil
		}
		return v.r.Has(h) // a ref may be broken
	}
	if !v.started {
		v.started = true
		for _, tip := range v.tips {
			if err := v.push(tip); err != nil {
				return false, err
			}
		}
		if _, ok := v.seen[h]; ok {
			return true, nil
		}
	}
	for n := 0; v.queue.Len() > 0; n++ {
		if n%256 == 0 {
			if err := v.ctx.Err(); err != nil {
				return false, err
			}
		}
		c := heap.Pop(&v.queue).(commitHead)
		found := false
		for _, p := range c.parents {
			if _, ok := v.seen[p]; ok {
				continue
			}
			if err := v.push(p); err != nil {
				return false, err
			}
			found = found || p == h
		}
		if found {
			return true, nil
		}
	}
	return false, nil
}

// push adds what a ref or a commit names. What is not there is passed over: a ref that is broken proves nothing, and stops nobody.
func (v *reach) push(h plumbing.Hash) error {
	for range maxPeel {
		t, data, err := v.r.Get(h)
		if errors.Is(err, ErrNotFound) {
			delete(v.seen, h)
			return nil
		}
		if err != nil {
			return err
		}
		v.seen[h] = struct{}{}
		switch t {
		case plumbing.CommitObject:
			c, err := parseCommit(h, data)
			if err != nil {
				return err
			}
			heap.Push(&v.queue, c)
			return nil
		case plumbing.TagObject:
			tag, err := GetTag(v.r, h)
			if err != nil {
				return err
			}
			h = tag.Target
		default:
			return nil
		}
	}
	return nil
}

// dated is a heap of commits, the youngest on top.
type dated []commitHead

func (d dated) Len() int           { return len(d) }
func (d dated) Less(i, j int) bool { return d[i].date > d[j].date }
func (d dated) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dated) Push(x any)        { *d = append(*d, x.(commitHead)) }
func (d *dated) Pop() any {
	last := len(*d) - 1
	c := (*d)[last]
	*d = (*d)[:last]
	return c
}
