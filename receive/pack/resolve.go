package pack

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// resolver is the second pass: it makes every delta's object, walking the forest of deltas from its roots. Goroutines share
// the work child by child, so that one big family keeps all of them busy. An object that has deltas is held until the last of
// them is made, or until memory is short; then it is dropped, and made anew for the next one.
type resolver struct {
	g    *run
	mu   sync.Mutex
	cond *sync.Cond
	// stack has the objects with deltas that nobody has taken yet, the youngest last: depth first keeps few of them.
	stack []*node
	root  int32 // the next record to look at for being a root
	roots []*node
	busy  int
	used  int64
	err   error
	spare [][]byte
}

// node is an object that deltas build on.
type node struct {
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
	if g.deltas == 0 {
		return nil
	}
	g.link()
	r := &resolver{g: g}
	r.cond = sync.NewCond(&r.mu)
	if err := r.run(); err != nil {
		return err
	}
	return g.complement(r)
}

// link makes the lists of children.
func (g *run) link() {
	g.first = slices.Repeat([]int32{-1}, g.recs.n)
	g.next = slices.Repeat([]int32{-1}, g.recs.n)
	for i := int32(g.recs.n) - 1; i >= 0; i-- {
		if b := g.recs.at(i).base; b >= 0 {
			g.next[i] = g.first[b]
			g.first[b] = i
		}
	}
	slices.SortFunc(g.refs, func(a, b refDelta) int {
		return cmp.Or(bytes.Compare(a.base[:], b.base[:]), cmp.Compare(a.rec, b.rec))
	})
}

// refChildren is where the deltas that name h as their base begin in g.refs, -1 if there are none.
func (g *run) refChildren(h plumbing.Hash) int32 {
	if len(g.refs) == 0 {
		return -1
	}
	i, ok := slices.BinarySearchFunc(g.refs, h, func(d refDelta, h plumbing.Hash) int { return bytes.Compare(d.base[:], h[:]) })
	if !ok {
		return -1
	}
	return int32(i)
}

// newNode is nil where nothing builds on the record.
func (g *run) newNode(i int32, rec *record, parent *node) *node {
	ofs, ref := int32(-1), g.refChildren(rec.hash)
	if int(i) < len(g.first) {
		ofs = g.first[i]
	}
	if ofs < 0 && ref < 0 {
		return nil
	}
	n := &node{rec: rec, parent: parent, ofs: ofs, ref: ref}
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

// run resolves what can be reached from the roots.
func (r *resolver) run() error {
	var wg sync.WaitGroup
	for range r.g.workers {
		wg.Go(r.work)
	}
	wg.Wait()
	return r.err
}

// take picks a delta to make. It waits while there is none but a goroutine at work may give one. ok is false at the end.
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

		fresh := data == nil
		var err error
		if fresh {
			if data, err = w.load(n); err == nil && note == nil && n.parent == nil && !n.added && r.g.x.Note != nil {
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
			} else {
				r.recycle(data)
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

// drop gives up the bytes of n.
func (r *resolver) drop(n *node) {
	if n.data == nil {
		return
	}
	r.used -= int64(len(n.data))
	r.recycle(n.data)
	n.data = nil
}

// shrink drops the oldest bases while memory is short; the one on top is needed next.
func (r *resolver) shrink() {
	for i := 0; i < len(r.stack)-1 && r.used > r.g.lim.BaseMemory; i++ {
		if n := r.stack[i]; n.pins == 0 {
			r.drop(n)
		}
	}
}

// recycle keeps some buffers for reuse.
func (r *resolver) recycle(b []byte) {
	if cap(b) <= maxKept && len(r.spare) < 64 {
		r.spare = append(r.spare, b[:0])
	}
}

// buffer gives a spare buffer that holds n bytes, or a new one.
func (r *resolver) buffer(n int64) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.spare) - 1; i >= max(0, len(r.spare)-8); i-- {
		if b := r.spare[i]; int64(cap(b)) >= n && int64(cap(b)) <= 4*n+1024 {
			r.spare[i] = r.spare[len(r.spare)-1]
			r.spare = r.spare[:len(r.spare)-1]
			return b
		}
	}
	return make([]byte, 0, n+n/8)
}

// worker has what one goroutine uses again and again.
type worker struct {
	r     *resolver
	z     inflater
	h     *objectHash
	src   []byte
	delta []byte
	out   []byte
}

// load makes the bytes of a node anew: from the pack at a root, from its parent otherwise.
func (w *worker) load(n *node) ([]byte, error) {
	var chain []*node
	var data []byte
	for at := n; ; at = at.parent {
		w.r.mu.Lock()
		data = at.data
		// What is read here may not go back among the spare buffers meanwhile.
		at.pins++
		w.r.mu.Unlock()
		chain = append(chain, at)
		if data != nil || at.parent == nil {
			break
		}
	}
	defer func() {
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		for _, c := range chain {
			c.pins--
			if c != n && c.pins == 0 && c.ofs < 0 && c.ref < 0 {
				w.r.drop(c)
			}
		}
	}()
	if data == nil {
		root := chain[len(chain)-1]
		e, err := w.entry(root.rec)
		if err != nil {
			return nil, err
		}
		if e.Size > w.r.g.lim.DeltaBytes {
			return nil, &LimitError{Name: "DeltaBytes", Limit: w.r.g.lim.DeltaBytes, Got: e.Size, Offset: e.Offset}
		}
		data = w.r.buffer(e.Size)[:e.Size]
		if err := w.inflate(e, data); err != nil {
			return nil, err
		}
	}
	for i := len(chain) - 2; i >= 0; i-- {
		if err := w.readDelta(chain[i].rec); err != nil {
			return nil, err
		}
		_, size, _, err := DeltaSizes(w.delta)
		if err != nil {
			return nil, err
		}
		if data, err = ApplyDelta(w.r.buffer(size), data, w.delta); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// make resolves record i, a delta on n. out is child's content, in memory of its own; child is nil where nothing builds on it.
func (w *worker) make(n *node, base []byte, note any, i int32) (child *node, out []byte, err error) {
	g := w.r.g
	rec := g.recs.at(i)
	fail := func(err error) (*node, []byte, error) {
		return nil, nil, fmt.Errorf("object at byte %d of the pack: %w", rec.off, err)
	}
	if err := g.ctx.Err(); err != nil {
		return nil, nil, err
	}
	if n.depth+1 > g.lim.DeltaDepth {
		return nil, nil, &LimitError{Name: "DeltaDepth", Limit: int64(g.lim.DeltaDepth), Offset: rec.off}
	}
	if err := w.readDelta(rec); err != nil {
		return fail(err)
	}
	_, size, _, err := DeltaSizes(w.delta)
	if err != nil {
		return fail(err)
	}
	if lim := min(g.lim.DeltaBytes, g.lim.ObjectBytes); size > lim {
		return nil, nil, &LimitError{Name: "DeltaBytes", Limit: lim, Got: size, Offset: rec.off}
	}
	if err := g.grown(size); err != nil {
		return nil, nil, err
	}
	if int64(cap(w.out)) < size {
		w.out = w.r.buffer(size)
	}
	if w.out, err = ApplyDelta(w.out, base, w.delta); err != nil {
		return fail(err)
	}
	t := plumbing.ObjectType(n.rec.real)
	if rec.hash, err = w.h.sum(t, w.out); err != nil {
		return fail(err)
	}
	rec.real = uint8(t)
	obj := &Object{Type: t, Hash: rec.hash, Size: size, Data: w.out, Base: base, BaseNote: note}
	if err := g.complete(obj); err != nil {
		return nil, nil, err
	}
	g.tell(1)
	out = w.out
	if child = g.newNode(i, rec, n); child != nil || cap(w.out) > maxKept {
		w.out = nil
	}
	if child != nil {
		child.note = obj.Note
	}
	return child, out, nil
}

func (w *worker) readDelta(rec *record) error {
	e, err := w.entry(rec)
	if err != nil {
		return err
	}
	if int64(cap(w.delta)) < e.Size || cap(w.delta) > maxKept {
		w.delta = make([]byte, e.Size+e.Size/2)
	}
	w.delta = w.delta[:e.Size]
	return w.inflate(e, w.delta)
}

// entry reads an entry's head and the beginning of its stream, which stays in w.src.
func (w *worker) entry(rec *record) (Entry, error) {
	want := int64(4096)
	if int64(cap(w.src)) < want {
		w.src = make([]byte, want)
	}
	w.src = w.src[:cap(w.src)]
	n := min(want, w.r.g.end-rec.off)
	w.src = w.src[:n]
	if _, err := w.r.g.file.ReadAt(w.src, rec.off); err != nil {
		return Entry{}, err
	}
	return parseEntry(w.src, rec.off)
}

// inflate follows entry.
func (w *worker) inflate(e Entry, dst []byte) error {
	have := int64(len(w.src))
	_, err := w.z.inflate(dst, w.src[e.Data-e.Offset:])
	for err == errShort && e.Offset+have < w.r.g.end {
		have = min(max(4*have, e.Size+e.Size>>10+128), w.r.g.end-e.Offset)
		if int64(cap(w.src)) < have {
			w.src = make([]byte, have)
		}
		w.src = w.src[:have]
		if _, err := w.r.g.file.ReadAt(w.src, e.Offset); err != nil {
			return err
		}
		_, err = w.z.inflate(dst, w.src[e.Data-e.Offset:])
	}
	if cap(w.src) > maxKept {
		w.src = nil
	}
	return err
}

// complement completes a thin pack: bases that did not come are appended, and what builds on them is resolved.
func (g *run) complement(r *resolver) error {
	var missing *MissingBaseError
	for {
		// By place in the pack, so that one push gives one pack whoever was faster.
		open := slices.DeleteFunc(slices.Clone(g.refs), func(d refDelta) bool { return g.recs.at(d.rec).real != 0 })
		if len(open) == 0 {
			break
		}
		slices.SortFunc(open, func(a, b refDelta) int { return cmp.Compare(a.rec, b.rec) })
		seen := map[plumbing.Hash]bool{}
		for _, d := range open {
			if seen[d.base] {
				continue
			}
			seen[d.base] = true
			if g.x.Bases == nil {
				return &MissingBaseError{Base: d.base, Offset: g.recs.at(d.rec).off, Deltas: len(open)}
			}
			t, data, err := g.x.Bases.Get(d.base)
			if errors.Is(err, plumbing.ErrObjectNotFound) {
				if missing == nil {
					missing = &MissingBaseError{Base: d.base, Offset: g.recs.at(d.rec).off, Deltas: len(open)}
				}
				continue
			}
			if err != nil {
				return err
			}
			n, err := g.append(t, d.base, data)
			if err != nil {
				return err
			}
			r.roots = append(r.roots, n)
		}
		if len(r.roots) == 0 {
			return missing
		}
		missing = nil
		if err := r.run(); err != nil {
			return err
		}
	}
	for i := range int32(g.recs.n) {
		if rec := g.recs.at(i); rec.real == 0 {
			return corrupt("object at %d: its base is never made", rec.off)
		}
	}
	if g.added > 0 {
		return g.seal()
	}
	return nil
}

// append writes a base behind the pack.
func (g *run) append(t plumbing.ObjectType, h plumbing.Hash, data []byte) (*node, error) {
	var buf bytes.Buffer
	buf.Write(appendEntry(nil, t, int64(len(data)), 0, plumbing.ZeroHash))
	head := buf.Len()
	zw := zlib.NewWriter(&buf)
	if _, err := zw.Write(data); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	if _, err := g.file.WriteAt(buf.Bytes(), g.end); err != nil {
		return nil, err
	}
	rec := g.recs.add()
	*rec = record{off: g.end, hash: h, crc: crc32.ChecksumIEEE(buf.Bytes()), base: -1, typ: uint8(t), real: uint8(t), head: uint8(head)}
	g.end += int64(buf.Len())
	g.added++
	if err := g.complete(&Object{Type: t, Hash: h, Size: int64(len(data)), Data: data, Added: true}); err != nil {
		return nil, err
	}
	n := g.newNode(int32(g.recs.n-1), rec, nil)
	if n == nil {
		return nil, fmt.Errorf("base %s of no delta", h)
	}
	n.added = true
	return n, nil
}
