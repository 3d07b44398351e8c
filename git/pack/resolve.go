package pack

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"corpus-git/internal/offheap"

	"github.com/go-git/go-git/v5/plumbing"
)

// resolver is the second pass: it resolves every delta, walking the forest of deltas from its roots. Goroutines share the work child by
// child, so that one big family keeps all of them busy. An object that has deltas is held until the last of them is resolved, or until
// memory is short; then it is dropped, and resolved again for the next one.
type resolver struct {
	workers int
	g       *run
	mu      sync.Mutex
	cond    *sync.Cond
	// stack has the objects with unresolved deltas, newest last: depth first holds few of them.
	stack   []*node
	root    int32 // the next record to check for being a root
	roots   []*node
	busy    int
	used    int64
	err     error
	buffers bufferPool
}

// node is an object that is the base of deltas.
type node struct {
	at     int32 // the record's index
	rec    *record
	parent *node // nil at a root
	added  bool
	depth  int
	data   []byte // nil before it is loaded, and when dropped
	note   any
	ofs    int32 // next child of each kind
	ref    int32
	pins   int // goroutines that use data
}

func (g *run) resolve() error {
	if g.deltas == int(g.early.Load()) {
		return nil
	}
	workers := g.workers
	// What one goroutine holds of large objects at a time: a base and a result, and one more object while a base is read from the
	// repository.
	if need := 3*g.large + 2*g.largeDelta; need > smallDeltas {
		workers = 1
		release, err := g.lim.Memory.take(g.ctx, need)
		if err != nil {
			return err
		}
		defer release()
	}
	first, next := offheap.Make[int32](g.recs.n), offheap.Make[int32](g.recs.n)
	defer func() {
		g.first, g.next = nil, nil
		first.Free()
		next.Free()
	}()
	g.first, g.next = first.Slice(), next.Slice()
	g.link()
	r := &resolver{g: g, workers: workers, buffers: bufferPool{most: maxBuffers}}
	defer r.buffers.close()
	r.cond = sync.NewCond(&r.mu)
	if err := r.run(); err != nil {
		return err
	}
	return g.complement(r)
}

// link makes the lists of children. Objects that were resolved in the first pass are in them only if deltas of them are left; if
// deltas name their bases, that may be any object.
func (g *run) link() {
	for i := range g.first {
		g.first[i], g.next[i] = -1, -1
	}
	for i := int32(g.recs.n) - 1; i >= 0; i-- {
		if b := g.recs.at(i).base; b >= 0 && (g.recs.at(i).real == 0 || g.first[i] >= 0 || len(g.refs) > 0) {
			g.next[i] = g.first[b]
			g.first[b] = i
		}
	}
	slices.SortFunc(g.refs, func(a, b refDelta) int {
		return cmp.Or(bytes.Compare(a.base[:], b.base[:]), cmp.Compare(a.rec, b.rec))
	})
	g.taken = make([]atomic.Bool, len(g.refs))
}

// takeRefs returns the index in g.refs of the first delta that names h as its base, -1 if there is none, or if another object of that name
// already took them: a pack may hold an object twice, and one of the two may be a delta of the other. So each delta has one base, and a pass
// over the deltas of a pack resolves each of them once.
func (g *run) takeRefs(h plumbing.Hash) int32 {
	if len(g.refs) == 0 {
		return -1
	}
	i, ok := slices.BinarySearchFunc(g.refs, h, func(d refDelta, h plumbing.Hash) int { return bytes.Compare(d.base[:], h[:]) })
	if !ok || g.taken[i].Swap(true) {
		return -1
	}
	return int32(i)
}

// newNode returns nil if nothing has the record as its base. It is called once for each record.
func (g *run) newNode(i int32, rec *record, parent *node) *node {
	ofs, ref := int32(-1), g.takeRefs(rec.hash)
	if int(i) < len(g.first) {
		ofs = g.first[i]
	}
	if ofs < 0 && ref < 0 {
		return nil
	}
	n := &node{at: i, rec: rec, parent: parent, ofs: ofs, ref: ref}
	if parent != nil {
		n.depth = parent.depth + 1
	}
	return n
}

// child takes the next delta of n, -1 if there is none left.
func (r *resolver) child(n *node) int32 {
	if i := n.ofs; i >= 0 {
		n.ofs = r.g.next[i]
		return i
	}
	if i := n.ref; i >= 0 {
		n.ref = -1
		if int(i)+1 < len(r.g.refs) && r.g.refs[i+1].base == r.g.refs[i].base {
			n.ref = i + 1
		}
		return r.g.refs[i].rec
	}
	return -1
}

// run resolves everything reachable from the roots.
func (r *resolver) run() error {
	var wg sync.WaitGroup
	for range r.workers {
		wg.Go(r.work)
	}
	wg.Wait()
	return r.err
}

// take returns a delta to resolve. It waits while there is none but a running goroutine may add one. ok is false at the end.
func (r *resolver) take() (n *node, i int32, ok bool) {
	for r.err == nil {
		for len(r.stack) > 0 {
			n := r.stack[len(r.stack)-1]
			i := r.child(n)
			if n.ofs < 0 && n.ref < 0 {
				r.stack = r.stack[:len(r.stack)-1]
			}
			if i >= 0 {
				return n, i, true
			}
		}
		if n := r.nextRoot(); n != nil {
			r.stack = append(r.stack, n)
			continue
		}
		if r.busy == 0 {
			break
		}
		r.cond.Wait()
	}
	return nil, 0, false
}

func (r *resolver) nextRoot() *node {
	if k := len(r.roots); k > 0 {
		n := r.roots[k-1]
		r.roots = r.roots[:k-1]
		return n
	}
	for int(r.root) < len(r.g.first) {
		i := r.root
		r.root++
		if rec := r.g.recs.at(i); !rec.delta() {
			if n := r.g.newNode(i, rec, nil); n != nil {
				return n
			}
		}
	}
	return nil
}

// work is one goroutine.
func (r *resolver) work() {
	w := &worker{r: r, h: newObjectHash()}
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		n, i, ok := r.take()
		if !ok {
			r.cond.Broadcast()
			return
		}
		n.pins++
		r.busy++
		data, note := n.data, n.note
		r.mu.Unlock()

		fresh, own := data == nil, false
		var err error
		if fresh {
			if data, own, err = w.load(n); err == nil && note == nil && n.parent == nil && !n.added && r.g.x.Note != nil {
				note = r.g.x.Note(plumbing.ObjectType(n.rec.real), data)
			}
		}
		var child *node
		var out []byte
		if err == nil {
			child, out, err = w.make(n, data, note, i)
		}

		r.mu.Lock()
		r.busy--
		n.pins--
		if err != nil && r.err == nil {
			r.err = err
		}
		if fresh && err == nil {
			n.note = note
			if n.data == nil {
				n.data = data
				r.used += int64(len(data))
			} else if own {
				r.buffers.put(data) // another goroutine was faster
			}
		}
		if n.pins == 0 && n.ofs < 0 && n.ref < 0 {
			r.drop(n)
		}
		if child != nil {
			child.data = out
			r.used += int64(len(out))
			r.stack = append(r.stack, child)
			r.cond.Signal()
		}
		r.shrink()
		if r.err != nil || r.busy == 0 {
			r.cond.Broadcast()
		}
	}
}

// drop frees the bytes of n.
func (r *resolver) drop(n *node) {
	if n.data == nil {
		return
	}
	r.used -= int64(len(n.data))
	r.buffers.put(n.data)
	n.data = nil
}

// shrink drops the oldest bases while memory is short; the newest is needed next.
func (r *resolver) shrink() {
	for i := 0; i < len(r.stack)-1 && r.used > r.g.lim.BaseMemory; i++ {
		if n := r.stack[i]; n.pins == 0 {
			r.drop(n)
		}
	}
}

// smallDeltas is the size of objects up to which a pack's deltas are resolved in parallel and without taking Memory: about what the
// goroutines hold anyway.
const smallDeltas = 24 << 20

// maxBuffers is the limit for spare buffers, in bytes.
const maxBuffers = 2 << 20
