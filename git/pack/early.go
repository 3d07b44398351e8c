package pack

import (
	"container/list"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// earlyMemory is the limit for the bases of one early, spare buffers included.
const earlyMemory = 2 << 20

// early names the objects of batches, and resolves deltas in them whose base was just seen: packs store most families together. It uses
// processors that are idle while the stream is parsed, or waited for. Deltas that it does not resolve are left to the resolver.
type early struct {
	g       *run
	h       *objectHash
	bases   map[int32]*list.Element // by index of the record
	order   *list.List              // most recently used first
	used    int
	buffers bufferPool
	made    int64
}

// base is an object that others may be deltas of.
type base struct {
	at    int32
	typ   plumbing.ObjectType
	depth int
	data  []byte
	note  any
}

func newEarly(g *run) *early {
	return &early{g: g, h: newObjectHash(), bases: map[int32]*list.Element{}, order: list.New(), buffers: bufferPool{most: earlyMemory / 8}}
}

// batch processes a batch in order.
func (w *early) batch(b *batch) error {
	start, done := 0, 0
	for _, it := range b.items {
		data := b.data[start:it.end]
		start = it.end
		ok, err := true, error(nil)
		if it.rec.delta() {
			ok, err = w.delta(it, data)
		} else {
			err = w.whole(it, data)
		}
		if err != nil {
			return err
		}
		if ok {
			done++
		}
	}
	w.g.reportProgress(done)
	return nil
}

func (w *early) whole(it batchItem, data []byte) error {
	rec, t := it.rec, plumbing.ObjectType(it.rec.typ)
	name, err := w.h.sum(t, data)
	if err != nil {
		return fmt.Errorf("object at byte %d of the pack: %w", rec.off, err)
	}
	rec.hash, rec.real = name, rec.typ
	o := &Object{Type: t, Hash: name, Size: int64(len(data)), Data: data}
	if err := w.g.complete(o); err != nil {
		return err
	}
	if len(data) <= earlyMemory/4 {
		w.keep(&base{at: it.at, typ: t, data: append(w.buffers.buffer(len(data)), data...), note: o.Note})
	}
	return nil
}

// delta reports whether it resolved the object.
func (w *early) delta(it batchItem, delta []byte) (bool, error) {
	e := w.bases[it.rec.base]
	if e == nil {
		return false, nil
	}
	if _, size, _, err := DeltaSizes(delta); err == nil && size > earlyMemory/4 {
		return false, nil // large ones are resolved one at a time
	}
	w.order.MoveToFront(e)
	b := e.Value.(*base)
	if b.note == nil && b.depth == 0 && w.g.x.Note != nil {
		b.note = w.g.x.Note(b.typ, b.data)
	}
	out, note, err := w.g.makeDelta(w.h, it.rec, b.depth+1, b.typ, b.data, b.note, delta, w.buffers.buffer)
	if err != nil {
		return false, err
	}
	w.made++
	w.keep(&base{at: it.at, typ: b.typ, depth: b.depth + 1, data: out, note: note})
	return true, nil
}

// keep takes ownership of an object and drops the least recently used ones.
func (w *early) keep(b *base) {
	if len(b.data) > earlyMemory/4 {
		w.buffers.put(b.data)
		return
	}
	w.bases[b.at] = w.order.PushFront(b)
	for w.used += cap(b.data); w.used > earlyMemory; {
		e := w.order.Back()
		old := w.order.Remove(e).(*base)
		delete(w.bases, old.at)
		w.used -= cap(old.data)
		w.buffers.put(old.data)
	}
}

// makeDelta resolves a delta at the given depth of its chain: it applies, names, checks and counts it. room allocates the result.
func (g *run) makeDelta(h *objectHash, rec *record, depth int, t plumbing.ObjectType, base []byte, note any, delta []byte, room func(int) []byte) ([]byte, any, error) {
	fail := func(err error) ([]byte, any, error) {
		return nil, nil, fmt.Errorf("object at byte %d of the pack: %w", rec.off, err)
	}
	if depth > g.lim.DeltaDepth {
		return nil, nil, &LimitError{Name: "DeltaDepth", Limit: int64(g.lim.DeltaDepth), Offset: rec.off}
	}
	_, size, _, err := DeltaSizes(delta)
	if err != nil {
		return fail(err)
	}
	if lim := min(g.lim.DeltaBytes, g.lim.ObjectBytes); size > lim {
		return nil, nil, &LimitError{Name: "DeltaBytes", Limit: lim, Got: size, Offset: rec.off}
	}
	if err := g.checked(t, size, rec.off); err != nil {
		return nil, nil, err
	}
	if err := g.grown(size); err != nil {
		return nil, nil, err
	}
	var dst []byte
	if size/maxCopy <= int64(len(delta)) { // checked, see ApplyDelta
		dst = room(int(size))
	}
	out, err := ApplyDelta(dst, base, delta)
	if err != nil {
		return fail(err)
	}
	if rec.hash, err = h.sum(t, out); err != nil {
		return fail(err)
	}
	rec.real = uint8(t)
	o := &Object{Type: t, Hash: rec.hash, Size: size, Data: out, Base: base, BaseNote: note}
	if err := g.complete(o); err != nil {
		return nil, nil, err
	}
	return out, o.Note, nil
}
