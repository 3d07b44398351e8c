package pack

import (
	"bufio"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"sort"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// Source is where a Writer takes objects from.
type Source interface {
	// Locate finds the pack that holds an object, and its offset; ok is false if it is in none.
	Locate(plumbing.Hash) (p *Pack, off int64, ok bool, err error)
	// Open opens an object, whole or as a stream.
	Open(plumbing.Hash) (t plumbing.ObjectType, size int64, r io.ReadCloser, err error)
}

// Writer makes a pack of given objects. Bytes that are compressed in a pack are sent as they are, and so are deltas if the base is sent with
// them (or the receiver has it). It does not search for new deltas. It is for one call of Write.
type Writer struct {
	Source Source
	// OfsDelta allows deltas that name their base by its offset. Set it if the receiver sent ofs-delta.
	OfsDelta bool
	// Has, if set, makes a thin pack: deltas are sent on bases that are not in the pack but that the receiver has according to Has.
	Has func(plumbing.Hash) bool
	// Level is the zlib level for what must be compressed; 0 is the default.
	Level int
	// Progress, if set, is called now and then with the number of objects written and the total.
	Progress func(done, total int)

	out   *bufio.Writer
	sum   hash.Hash
	off   int64
	zw    *zlib.Writer
	buf   []byte
	items []item
	of    map[plumbing.Hash]int32
	done  int
}

// item is an object to be written.
type item struct {
	hash  plumbing.Hash
	state state
	p     *Pack // nil: in no pack
	src   int64 // offset in p
	off   int64 // offset in the new pack
}

type state uint8

const (
	waiting state = iota
	active        // its base is being written
	written
)

// Write writes a pack of the objects, each once however often it is named, and returns its trailer. Nothing is buffered when it returns.
func (w *Writer) Write(ctx context.Context, to io.Writer, objects []plumbing.Hash) (id plumbing.Hash, err error) {
	if err := w.plan(objects); err != nil {
		return id, err
	}
	w.sum = sha1.New()
	w.out = bufio.NewWriterSize(to, 64<<10)
	if err := w.put(appendHeader(nil, uint32(len(w.items)))); err != nil {
		return id, err
	}
	for i := range w.items {
		if i%64 == 0 {
			if err := ctx.Err(); err != nil {
				return id, err
			}
		}
		if err := w.object(int32(i), 0); err != nil {
			return id, fmt.Errorf("object %s: %w", w.items[i].hash, err)
		}
	}
	w.sum.Sum(id[:0])
	if _, err := w.out.Write(id[:]); err != nil {
		return id, err
	}
	return id, w.out.Flush()
}

// plan finds the objects, and orders them as they are in their packs, so that the disk is read forward.
func (w *Writer) plan(objects []plumbing.Hash) error {
	w.of = make(map[plumbing.Hash]int32, len(objects))
	rank := map[*Pack]int{}
	for _, h := range objects {
		if _, ok := w.of[h]; ok {
			continue
		}
		w.of[h] = 0
		p, off, ok, err := w.Source.Locate(h)
		if err != nil {
			return err
		}
		it := item{hash: h}
		if ok {
			it.p, it.src = p, off
			if _, ok := rank[p]; !ok {
				rank[p] = len(rank) + 1
			}
		}
		w.items = append(w.items, it)
	}
	if len(w.items) > 1<<31-1 {
		return fmt.Errorf("%d objects are too many for a pack", len(w.items))
	}
	slices.SortStableFunc(w.items, func(a, b item) int {
		if a.p != b.p {
			return rank[a.p] - rank[b.p]
		}
		switch {
		case a.src < b.src:
			return -1
		case a.src > b.src:
			return 1
		}
		return 0
	})
	for i := range w.items {
		w.of[w.items[i].hash] = int32(i)
	}
	return nil
}

func (w *Writer) put(b []byte) error {
	w.sum.Write(b)
	w.off += int64(len(b))
	_, err := w.out.Write(b)
	return err
}

// object writes one object, and its base before it.
func (w *Writer) object(i int32, depth int) error {
	it := &w.items[i]
	if it.state != waiting {
		return nil
	}
	if it.p != nil {
		err := w.reuse(it, depth)
		if !errors.Is(err, errWhole) && !errors.Is(err, ErrClosed) {
			return err
		}
	}
	return w.whole(it)
}

// errWhole reports that an entry cannot be sent as stored.
var errWhole = errors.New("to be written whole")

// reuse copies an entry.
func (w *Writer) reuse(it *item, depth int) error {
	p := it.p
	if err := p.acquire(); err != nil {
		return err
	}
	defer p.release()
	e, err := p.entry(nil, it.src)
	if err != nil {
		return err
	}
	if !e.Delta() {
		return w.copy(it, e, e.Type, 0, plumbing.ZeroHash)
	}
	base := e.BaseHash
	if e.Type == plumbing.OFSDeltaObject {
		if base, err = p.nameAt(e.BaseOffset); err != nil {
			return err
		}
	}
	b, ok := w.of[base]
	if !ok {
		if w.Has == nil || !w.Has(base) {
			return errWhole
		}
		return w.copy(it, e, plumbing.REFDeltaObject, 0, base)
	}
	if depth > maxChain {
		return errWhole
	}
	it.state = active
	err = w.object(b, depth+1)
	it.state = waiting
	if err != nil {
		return err
	}
	to := &w.items[b]
	switch {
	case to.state != written: // it waits for this one: each is the other's base, in two packs
		return errWhole
	case w.OfsDelta:
		return w.copy(it, e, plumbing.OFSDeltaObject, w.off-to.off, base)
	default:
		return w.copy(it, e, plumbing.REFDeltaObject, 0, base)
	}
}

// copy writes an entry's head again and its compressed bytes unchanged, and compares their CRC with the index while copying.
func (w *Writer) copy(it *item, e Entry, t plumbing.ObjectType, back int64, base plumbing.Hash) error {
	end, crc, err := it.p.extent(it.hash, e.Offset)
	if err != nil {
		return err
	}
	it.off = w.off
	if err := w.put(appendEntry(nil, t, e.Size, back, base)); err != nil {
		return err
	}
	if w.buf == nil {
		w.buf = make([]byte, 64<<10)
	}
	sum := uint32(0)
	for at := e.Offset; at < end; {
		n := min(end-at, int64(len(w.buf)))
		b := w.buf[:n]
		if _, err := it.p.file.ReadAt(b, at); err != nil {
			return err
		}
		sum = crc32.Update(sum, crc32.IEEETable, b)
		if at == e.Offset {
			// Its head is at most 30 bytes, so it is in the first piece.
			b = b[e.Data-e.Offset:]
		}
		if err := w.put(b); err != nil {
			return err
		}
		at += n
	}
	if sum != crc {
		return corrupt("%s: bytes at %d do not match the index", it.p.path, e.Offset)
	}
	w.finish(it)
	return nil
}

func (w *Writer) finish(it *item) {
	it.state = written
	if w.done++; w.Progress != nil && (w.done%1000 == 0 || w.done == len(w.items)) {
		w.Progress(w.done, len(w.items))
	}
}

// whole compresses an object again.
func (w *Writer) whole(it *item) error {
	t, size, r, err := w.Source.Open(it.hash)
	if err != nil {
		return err
	}
	defer r.Close()
	it.off = w.off
	if err := w.put(appendEntry(nil, t, size, 0, plumbing.ZeroHash)); err != nil {
		return err
	}
	if w.zw == nil {
		level := w.Level
		if level == 0 {
			level = zlib.DefaultCompression
		}
		if w.zw, err = zlib.NewWriterLevel(putter{w}, level); err != nil {
			return err
		}
	} else {
		w.zw.Reset(putter{w})
	}
	n, err := io.Copy(w.zw, r)
	if err == nil && n != size {
		err = corrupt("object has %d bytes and should have %d", n, size)
	}
	if err == nil {
		err = w.zw.Close()
	}
	if err == nil {
		w.finish(it)
	}
	return err
}

type putter struct{ w *Writer }

func (p putter) Write(b []byte) (int, error) { return len(b), p.w.put(b) }

// rev is the order of a pack's objects by offset, made on first use.
type rev struct {
	once  sync.Once
	order []int32
	err   error
}

// byPlace returns the positions in the index, in the order of the pack.
func (p *Pack) byPlace() ([]int32, error) {
	p.rev.once.Do(func() {
		offs := make([]int64, p.idx.count)
		order := make([]int32, p.idx.count)
		for i := range offs {
			if offs[i], p.rev.err = p.idx.Offset(i); p.rev.err != nil {
				return
			}
			order[i] = int32(i)
		}
		slices.SortFunc(order, func(a, b int32) int {
			switch {
			case offs[a] < offs[b]:
				return -1
			case offs[a] > offs[b]:
				return 1
			}
			return 0
		})
		p.rev.order = order
	})
	return p.rev.order, p.rev.err
}

// place finds the object that begins at off in the order of the pack.
func (p *Pack) place(off int64) (order []int32, k int, err error) {
	if order, err = p.byPlace(); err != nil {
		return nil, 0, err
	}
	k = sort.Search(len(order), func(k int) bool {
		o, _ := p.idx.Offset(int(order[k]))
		return o >= off
	})
	if k < len(order) {
		if o, _ := p.idx.Offset(int(order[k])); o == off {
			return order, k, nil
		}
	}
	return nil, 0, corrupt("%s: no object begins at %d", p.path, off)
}

// nameAt returns the name of the object that begins at off.
func (p *Pack) nameAt(off int64) (plumbing.Hash, error) {
	order, k, err := p.place(off)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return p.idx.Hash(int(order[k])), nil
}

// extent returns where the entry at off ends, and its CRC.
func (p *Pack) extent(h plumbing.Hash, off int64) (end int64, crc uint32, err error) {
	order, k, err := p.place(off)
	if err != nil {
		return 0, 0, err
	}
	if p.idx.Hash(int(order[k])) != h {
		return 0, 0, corrupt("%s: object at %d is not %s", p.path, off, h)
	}
	end = p.size - hashLen
	if k+1 < len(order) {
		if end, err = p.idx.Offset(int(order[k+1])); err != nil {
			return 0, 0, err
		}
	}
	if end <= off || end > p.size-hashLen {
		return 0, 0, corrupt("%s: object at %d ends at %d", p.path, off, end)
	}
	return end, p.idx.CRC(int(order[k])), nil
}

// Name returns the name of the object that begins at off.
func (p *Pack) Name(off int64) (plumbing.Hash, error) {
	if err := p.acquire(); err != nil {
		return plumbing.ZeroHash, err
	}
	defer p.release()
	return p.nameAt(off)
}
