package store

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"

	"corpus-git/git/pack"
	"corpus-git/internal/offheap"

	"github.com/go-git/go-git/v5/plumbing"
)

// links collects the objects that the objects of a pack need, while it is received: 21 bytes each, in tables shared by goroutines.
type links struct {
	parts [linkParts]linkTable

	mu       sync.Mutex
	modules  map[plumbing.Hash]bool
	conflict error
	seed     maphash.Seed
}

const linkParts = 64

type link struct {
	hash plumbing.Hash
	typ  uint8 // 0 is an empty place
}

// linkTable is a hash table with linear probing. Pushers choose the names in a tree, so they are hashed with a random seed.
type linkTable struct {
	mu  sync.Mutex
	n   int
	tab []link
	mem *offheap.Block[link] // of tab
	_   [16]byte             // pads to another cache line
}

func newLinks() *links {
	return &links{modules: map[plumbing.Hash]bool{}, seed: maphash.MakeSeed()}
}

func (l *links) module(h plumbing.Hash) {
	l.mu.Lock()
	l.modules[h] = true
	l.mu.Unlock()
}

// add records that an object of type t is needed.
func (l *links) add(h plumbing.Hash, t plumbing.ObjectType) {
	sum := maphash.Bytes(l.seed, h[:])
	p := &l.parts[sum>>58%linkParts]
	p.mu.Lock()
	was := p.add(l.seed, h, uint32(sum), uint8(t))
	p.mu.Unlock()
	if was != uint8(t) {
		l.mu.Lock()
		l.conflict = fmt.Errorf("%w: object %s is named as a %s and as a %s", pack.ErrCorrupt, h, plumbing.ObjectType(was), t)
		l.mu.Unlock()
	}
}

func (t *linkTable) add(seed maphash.Seed, h plumbing.Hash, sum uint32, typ uint8) uint8 {
	if t.n*8 >= len(t.tab)*7 {
		t.grow(seed)
	}
	e := t.place(h, sum)
	if e.typ == 0 {
		e.hash, e.typ = h, typ
		t.n++
	}
	return e.typ
}

func (t *linkTable) place(h plumbing.Hash, sum uint32) *link {
	// The table's length is not a power of two: the hash, as a fraction of it, is the index.
	for i := uint64(sum) * uint64(len(t.tab)) >> 32; ; i++ {
		if i == uint64(len(t.tab)) {
			i = 0
		}
		if e := &t.tab[i]; e.typ == 0 || e.hash == h {
			return e
		}
	}
}

func (t *linkTable) grow(seed maphash.Seed) {
	old, was := t.tab, t.mem
	t.mem = offheap.Make[link](max(16, len(old)+len(old)/2))
	t.tab = t.mem.Slice()
	for i := range old {
		if old[i].typ != 0 {
			*t.place(old[i].hash, uint32(maphash.Bytes(seed, old[i].hash[:]))) = old[i]
		}
	}
	was.Free()
}

func (l *links) clash() error { return l.conflict }

// outside lists the needed objects that are not in the pack, and compares the types of the others.
func (l *links) outside(res *pack.Result) ([]link, error) {
	defer runtime.KeepAlive(l) // its tables are outside of the heap
	var out []link
	for i := range l.parts {
		for _, e := range l.parts[i].tab {
			if e.typ == 0 {
				continue
			}
			t, ok := res.Received(e.hash)
			if !ok {
				out = append(out, e)
			} else if t != plumbing.ObjectType(e.typ) {
				return nil, fmt.Errorf("%w: object %s is a %s and is named as a %s", pack.ErrCorrupt, e.hash, t, plumbing.ObjectType(e.typ))
			}
		}
	}
	return out, nil
}
