package upload

import (
	"encoding/binary"
	"math/bits"

	"github.com/go-git/go-git/v5/plumbing"
)

// objectSet is a set of object names for walks over millions of tree entries: one table with linear probing, which costs one cache miss
// where a map costs two. Object names are already hashes; names that share their first 64 bits are hard to find. The zero value is empty.
// The zero hash must not be added.
type objectSet struct {
	slots []plumbing.Hash
	n     int
}

func (s *objectSet) slot(h *plumbing.Hash) *plumbing.Hash {
	mask := uint64(len(s.slots) - 1)
	// Multiplied, so that names that agree in some bits are spread.
	i := binary.LittleEndian.Uint64(h[:]) * 0x9e3779b97f4a7c15 >> (64 - bits.Len64(mask))
	for {
		p := &s.slots[i&mask]
		if *p == *h || p.IsZero() {
			return p
		}
		i++
	}
}

func (s *objectSet) has(h plumbing.Hash) bool {
	return s.n > 0 && !s.slot(&h).IsZero()
}

// add reports whether h is new.
func (s *objectSet) add(h plumbing.Hash) bool {
	if s.n*2 >= len(s.slots) {
		old := s.slots
		s.slots = make([]plumbing.Hash, max(1024, 2*len(old)))
		for i := range old {
			if !old[i].IsZero() {
				*s.slot(&old[i]) = old[i]
			}
		}
	}
	p := s.slot(&h)
	if !p.IsZero() || h.IsZero() {
		return false
	}
	*p = h
	s.n++
	return true
}

// each calls fn with every name, in no order.
func (s *objectSet) each(fn func(plumbing.Hash)) {
	for i := range s.slots {
		if !s.slots[i].IsZero() {
			fn(s.slots[i])
		}
	}
}
