package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxNewDepth limits the chains of deltas that result from joining packs: git's own default (pack.depth). Chains within one pack are kept
// as they are.
const (
	maxNewDepth = 50
	maxOldDepth = 4095
)

// choice selects, for packs that become one, the copy of each object: a delta if its base is included and the chain stays short, otherwise
// one that is stored whole. It is a pack.Source.
type choice struct {
	r     Reader
	packs []*pack.Pack
	objs  []candidate // by name, copies of one object adjacent
	at    map[plumbing.Hash]int32
	take  []plumbing.Hash // in the order of writing
}

type candidate struct {
	hash  plumbing.Hash
	off   int64
	pack  int32
	depth int16 // of the chosen copy; see the constants
	whole bool  // the chosen copy: recompressed
}

const (
	unseen  int16 = -1
	pending int16 = -2
	other   int16 = -3 // another copy of the object was chosen
)

// choose picks the objects of packs, and the loose ones, for which wanted is true, and the bases of their deltas.
func choose(r Reader, packs []*pack.Pack, loose []plumbing.Hash, wanted func(plumbing.Hash) (bool, error)) (*choice, error) {
	c := &choice{r: r, packs: packs}
	n := len(loose)
	for _, p := range packs {
		n += p.Count()
	}
	c.objs = make([]candidate, 0, n)
	for i, p := range packs {
		err := p.Each(func(h plumbing.Hash, off int64) error {
			c.objs = append(c.objs, candidate{hash: h, off: off, pack: int32(i), depth: unseen})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, h := range loose {
		c.objs = append(c.objs, candidate{hash: h, pack: -1, depth: unseen})
	}
	// They are chosen and written in the order of their packs: newest pack first, objects in their order in it.
	order := make([]int32, len(c.objs))
	for i := range order {
		order[i] = int32(i)
	}
	byName := func(a, b candidate) int {
		return cmp.Or(bytes.Compare(a.hash[:], b.hash[:]), cmp.Compare(a.pack, b.pack))
	}
	slices.SortFunc(c.objs, byName)
	c.at = make(map[plumbing.Hash]int32, len(c.objs))
	for i := len(c.objs) - 1; i >= 0; i-- {
		c.at[c.objs[i].hash] = int32(i)
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &c.objs[a], &c.objs[b]
		return cmp.Or(cmp.Compare(uint32(x.pack), uint32(y.pack)), cmp.Compare(x.off, y.off))
	})
	for _, i := range order {
		first := c.at[c.objs[i].hash]
		if c.objs[first].depth != unseen {
			continue
		}
		if ok, err := wanted(c.objs[i].hash); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		if _, err := c.pick(first); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// pick chooses the copy of the object whose first candidate is given, and those of its bases. It returns the chosen one, or -1 while that
// is being decided by a caller.
func (c *choice) pick(first int32) (int32, error) {
	h := c.objs[first].hash
	end := first
	for ; int(end) < len(c.objs) && c.objs[end].hash == h; end++ {
		switch o := &c.objs[end]; {
		case o.depth >= 0:
			return end, nil
		case o.depth == pending:
			return -1, nil
		}
	}
	whole := int32(-1)
	for i := first; i < end; i++ {
		c.objs[i].depth = pending
	}
	chosen := int32(-1)
	for i := first; i < end && chosen < 0; i++ {
		o := &c.objs[i]
		if o.pack < 0 {
			continue
		}
		p := c.packs[o.pack]
		e, err := p.Entry(o.off)
		if err != nil {
			return -1, err
		}
		if !e.Delta() {
			if whole < 0 {
				whole = i
			}
			continue
		}
		base := e.BaseHash
		if e.Type == plumbing.OFSDeltaObject {
			if base, err = p.Name(e.BaseOffset); err != nil {
				return -1, err
			}
		}
		b, ok := c.at[base]
		if !ok {
			return -1, fmt.Errorf("%w: %s: the base of %s is not in its pack", pack.ErrCorrupt, p.Path(), h)
		}
		if b, err = c.pick(b); err != nil {
			return -1, err
		}
		if b < 0 {
			continue // two objects, each the other's base in two packs
		}
		d := c.objs[b].depth + 1
		if d <= maxNewDepth || d <= maxOldDepth && c.objs[b].pack == o.pack {
			o.depth, chosen = d, i
		}
	}
	if chosen < 0 {
		if chosen = whole; chosen < 0 {
			chosen = first
			c.objs[chosen].whole = true
		}
		c.objs[chosen].depth = 0
	}
	for i := first; i < end; i++ {
		if i != chosen {
			c.objs[i].depth = other
		}
	}
	c.take = append(c.take, h)
	return chosen, nil
}

// Locate implements pack.Source.
func (c *choice) Locate(h plumbing.Hash) (*pack.Pack, int64, bool, error) {
	first, ok := c.at[h]
	if !ok {
		return nil, 0, false, nil
	}
	for i := first; int(i) < len(c.objs) && c.objs[i].hash == h; i++ {
		if o := &c.objs[i]; o.depth >= 0 {
			if o.whole || o.pack < 0 {
				return nil, 0, false, nil
			}
			return c.packs[o.pack], o.off, true, nil
		}
	}
	return nil, 0, false, nil
}

// Open implements pack.Source.
func (c *choice) Open(h plumbing.Hash) (plumbing.ObjectType, int64, io.ReadCloser, error) {
	return packSource{c.r}.Open(h)
}

// errVanished reports that a pack disappeared during consolidation: another process is consolidating.
var errVanished = errors.New("a pack vanished: another process maintains this repository too")
