package store

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// reach finds what refs reach, as far as requested: it walks from them by date, newest first.
type reach struct {
	ctx     context.Context
	r       Reader
	tips    []plumbing.Hash
	seen    map[plumbing.Hash]struct{}
	queue   object.Queue[object.Head]
	started bool
}

func newReach(ctx context.Context, r Reader, tips []plumbing.Hash) *reach {
	v := &reach{ctx: ctx, r: r, tips: tips, seen: make(map[plumbing.Hash]struct{}, len(tips))}
	for _, h := range tips {
		v.seen[h] = struct{}{}
	}
	return v
}

// has reports whether a commit or tag can be reached. If it cannot, all of history is walked.
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
		c := v.queue.Pop()
		found := false
		for _, p := range c.Parents {
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

// push adds the target of a ref or of a commit. Missing objects are skipped: a broken ref proves nothing, and is not an error.
func (v *reach) push(h plumbing.Hash) error {
	for range object.MaxPeel {
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
			c, err := object.ParseHead(h, data)
			if err != nil {
				return err
			}
			v.queue.Push(c.Date, c)
			return nil
		case plumbing.TagObject:
			tag, err := object.ParseTag(h, data)
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
