package checkout

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pack"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
)

// streamAbove is the size from which a blob that is stored whole is copied as a stream instead of read into memory.
const streamAbove = 4 << 20

// blob is one object that eachBlob passes on: its bytes, or a stream of size bytes.
type blob struct {
	data   []byte
	stream io.Reader
	size   int64
}

// eachBlob calls fn with every object of hashes once, from up to workers goroutines at once; i indexes hashes. Objects in packs are visited
// as a forest of deltas, so that a base of several objects is inflated once, otherwise in the order of hashes: a writer that goes through a
// tree folder by folder saves the file system a fifth of its work, and packs store a tree's objects in nearly the same order. meanwhile
// runs while the objects are looked up, before the first call. What fn receives is valid until it returns. The first error ends it.
func eachBlob(ctx context.Context, objs tree.Objects, hashes []plumbing.Hash, workers int, meanwhile func() error, fn func(worker, i int, b blob) error) error {
	f := &deltaForest{ctx: ctx, objs: objs, hashes: hashes}
	f.fn = func(worker, i int, b blob) error { f.given.Add(1); return fn(worker, i, b) }
	built := make(chan error, 1)
	if workers > 1 {
		go func() { built <- f.build() }()
	} else {
		built <- f.build()
	}
	err := meanwhile()
	if err := cmp.Or(<-built, err); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for w := 1; w < workers; w++ {
		wg.Go(func() { f.work(w) })
	}
	f.work(0)
	wg.Wait()
	// A cycle of deltas has no root.
	if n := int(f.given.Load()); f.err == nil && n != len(hashes) {
		return fault.New(fault.Internal, "read objects", "%w: %d of %d objects are deltas on each other", pack.ErrCorrupt, len(hashes)-n, len(hashes))
	}
	return f.err
}

type deltaForest struct {
	ctx    context.Context
	objs   tree.Objects
	hashes []plumbing.Hash
	fn     func(worker, i int, b blob) error

	loose []int // indexes of hashes that are in no pack
	roots []*deltaNode

	given atomic.Int64

	mu   sync.Mutex
	next int
	err  error
}

// deltaNode is an object of a pack with the objects that are stored as deltas on it.
type deltaNode struct {
	p        *pack.Pack
	e        pack.Entry
	want     []int32 // indexes of hashes; empty for a base that is not requested
	children []*deltaNode
	// first is, for a root, the least index of all objects that are deltas of it.
	first int32
}

// place is where a pack has an object, and the object's index in hashes.
type place struct {
	off int64
	i   int32
}

func (f *deltaForest) build() error {
	var packs []*pack.Pack
	places := map[*pack.Pack][]place{}
	for i, h := range f.hashes {
		if i%1024 == 0 && f.ctx.Err() != nil {
			return f.ctx.Err()
		}
		p, off, ok, err := f.objs.Locate(h)
		if err != nil {
			return fault.New(fault.KindOf(err), "read "+h.String(), "%w", err)
		}
		if !ok {
			f.loose = append(f.loose, i)
			continue
		}
		if places[p] == nil {
			packs = append(packs, p)
		}
		places[p] = append(places[p], place{off, int32(i)})
	}
	for _, p := range packs {
		slices.SortFunc(places[p], func(a, b place) int { return cmp.Compare(a.off, b.off) })
		if err := f.grow(p, places[p]); err != nil {
			return err
		}
	}
	for _, t := range f.roots {
		t.first = t.least()
	}
	slices.SortFunc(f.roots, func(a, b *deltaNode) int { return cmp.Compare(a.first, b.first) })
	return nil
}

// least returns the first index of hashes that t and the deltas on it are for.
func (t *deltaNode) least() int32 {
	n := int32(math.MaxInt32)
	for _, i := range t.want {
		n = min(n, i)
	}
	for _, k := range t.children {
		n = min(n, k.least())
	}
	return n
}

// grow builds the delta trees of one pack.
func (f *deltaForest) grow(p *pack.Pack, places []place) error {
	nodes := make(map[int64]*deltaNode, len(places))
	var window pack.Window
	first := len(f.roots)
	for _, pl := range places {
		off, want := pl.off, pl.i
		var child *deltaNode
		for {
			t, ok := nodes[off]
			if !ok {
				e, err := window.Entry(p, off)
				if errors.Is(err, pack.ErrClosed) {
					// The pack was replaced by another: the store finds the objects there.
					f.roots = f.roots[:first]
					for _, pl := range places {
						f.loose = append(f.loose, int(pl.i))
					}
					return nil
				}
				if err != nil {
					return err
				}
				t = &deltaNode{p: p, e: e}
				nodes[off] = t
			}
			if want >= 0 {
				t.want = append(t.want, want)
				want = -1
			}
			if child != nil {
				t.children = append(t.children, child)
			}
			if ok {
				break
			}
			if !t.e.Delta() {
				f.roots = append(f.roots, t)
				break
			}
			base, err := p.Base(t.e)
			if err != nil {
				return err
			}
			off, child = base, t
		}
	}
	return nil
}

// takeAtOnce is how many trees a worker takes: two that write into one folder wait for each other.
const takeAtOnce = 32

// yieldAfter is how many trees a worker writes between two calls of the scheduler. A goroutine that has not yielded for 10 ms loses its
// processor in its next system call, however short that is, and for a while the scheduler checks every 20 µs whether to repeat that.
const yieldAfter = 8

// take returns the next roots, or the next loose objects.
func (f *deltaForest) take() (roots []*deltaNode, loose []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = f.ctx.Err()
	}
	if f.err != nil {
		return nil, nil
	}
	if n := min(takeAtOnce, len(f.roots)-f.next); n > 0 {
		roots = f.roots[f.next : f.next+n]
		f.next += n
		return roots, nil
	}
	n := min(takeAtOnce, len(f.loose))
	loose, f.loose = f.loose[:n], f.loose[n:]
	return nil, loose
}

func (f *deltaForest) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *deltaForest) work(worker int) {
	w := &inflater{f: f, id: worker}
	for {
		roots, loose := f.take()
		if len(roots)+len(loose) == 0 {
			return
		}
		for i, t := range roots {
			if i%yieldAfter == 0 {
				runtime.Gosched()
			}
			if err := w.root(t); err != nil {
				f.fail(err)
				return
			}
		}
		for _, i := range loose {
			if err := w.whole(i); err != nil {
				f.fail(err)
				return
			}
		}
	}
}

// inflater is one worker with its buffers.
type inflater struct {
	f      *deltaForest
	id     int
	window pack.Window
	delta  []byte
	free   [][]byte
}

func (w *inflater) root(t *deltaNode) error {
	if t.e.Type != plumbing.BlobObject {
		return fault.New(fault.Refused, "read object", "a %s where a file's content is needed", t.e.Type)
	}
	if len(t.children) == 0 && t.e.Size > streamAbove {
		return w.whole(int(t.want[0]), t.want[1:]...)
	}
	data, err := w.window.Inflate(t.p, t.e, w.buffer())
	if errors.Is(err, pack.ErrClosed) {
		return w.byName(t)
	}
	if err != nil {
		return err
	}
	return w.node(t, data)
}

// node passes on t and the deltas on it. data is the worker's own buffer.
func (w *inflater) node(t *deltaNode, data []byte) error {
	for _, i := range t.want {
		if err := w.f.fn(w.id, int(i), blob{data: data, size: int64(len(data))}); err != nil {
			return err
		}
	}
	for n, child := range t.children {
		var err error
		if w.delta, err = w.window.Inflate(child.p, child.e, w.delta); err != nil {
			if errors.Is(err, pack.ErrClosed) {
				err = w.byName(child)
			}
			if err != nil {
				return err
			}
			continue
		}
		out, err := pack.ApplyDelta(w.buffer()[:0], data, w.delta)
		if err != nil {
			return err
		}
		// A chain needs two buffers, however long it is.
		if n == len(t.children)-1 {
			w.recycle(data)
			data = nil
		}
		if err := w.node(child, out); err != nil {
			return err
		}
	}
	if data != nil {
		w.recycle(data)
	}
	return nil
}

// byName reads the objects of t by name after its pack was replaced.
func (w *inflater) byName(t *deltaNode) error {
	for _, i := range t.want {
		if err := w.whole(int(i)); err != nil {
			return err
		}
	}
	for _, k := range t.children {
		if err := w.byName(k); err != nil {
			return err
		}
	}
	return nil
}

// whole reads one object through the store, for i and all others that want it.
func (w *inflater) whole(i int, more ...int32) error {
	for {
		o, err := w.f.objs.Stream(w.f.hashes[i])
		if err != nil {
			return err
		}
		if o.Type != plumbing.BlobObject {
			err = fault.New(fault.Refused, "read object", "%s is a %s where a file's content is needed", w.f.hashes[i], o.Type)
		} else if o.Size > streamAbove {
			err = w.f.fn(w.id, i, blob{stream: o, size: o.Size})
		} else {
			var data []byte
			if data, err = io.ReadAll(o); err == nil {
				err = w.f.fn(w.id, i, blob{data: data, size: int64(len(data))})
			}
		}
		if err = errors.Join(err, o.Close()); err != nil || len(more) == 0 {
			return err
		}
		i, more = int(more[0]), more[1:]
	}
}

const maxFree, maxFreeSize = 8, 1 << 20

func (w *inflater) buffer() []byte {
	if n := len(w.free); n > 0 {
		b := w.free[n-1]
		w.free = w.free[:n-1]
		return b
	}
	return nil
}

func (w *inflater) recycle(b []byte) {
	if len(w.free) < maxFree && cap(b) <= maxFreeSize && cap(b) > 0 {
		w.free = append(w.free, b[:0])
	}
}
