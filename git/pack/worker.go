package pack

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// worker has what one goroutine reuses.
type worker struct {
	r     *resolver
	z     inflater
	h     *objectHash
	src   []byte
	delta []byte
}

// load makes the bytes of a node again: from the pack at a root, otherwise from its parent. If another goroutine has just done so, it returns
// that goroutine's bytes, and own is false.
func (w *worker) load(n *node) (data []byte, own bool, err error) {
	var chain []*node
	for at := n; ; at = at.parent {
		w.r.mu.Lock()
		data = at.data
		// What is read here must not be returned to the spare buffers meanwhile.
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
	own = data == nil || len(chain) > 1
	loaded := data == nil
	if loaded {
		root := chain[len(chain)-1]
		e, err := w.entry(root.at)
		if err != nil {
			return nil, false, err
		}
		if e.Size > w.r.g.lim.DeltaBytes {
			return nil, false, &LimitError{Name: "DeltaBytes", Limit: w.r.g.lim.DeltaBytes, Got: e.Size, Offset: e.Offset}
		}
		if len(chain) > 1 {
			if err := w.r.g.again(e.Size); err != nil {
				return nil, false, err
			}
		}
		data = w.r.buffers.buffer(int(e.Size))[:e.Size]
		if err := w.inflate(e, data); err != nil {
			return nil, false, err
		}
	}
	for i := len(chain) - 2; i >= 0; i-- {
		if err := w.readDelta(chain[i].at); err != nil {
			return nil, false, err
		}
		out, err := w.apply(data)
		if err != nil {
			return nil, false, err
		}
		if i < len(chain)-2 || loaded {
			w.r.buffers.put(data) // nobody else has it
		}
		data = out
	}
	return data, own, nil
}

// make resolves record i, a delta on n. out is child's content, in its own memory; child is nil if nothing builds on it.
func (w *worker) make(n *node, base []byte, note any, i int32) (child *node, out []byte, err error) {
	g := w.r.g
	rec := g.recs.at(i)
	if err := g.ctx.Err(); err != nil {
		return nil, nil, err
	}
	if err := w.readDelta(i); err != nil {
		return nil, nil, fmt.Errorf("object at byte %d of the pack: %w", rec.off, err)
	}
	t := plumbing.ObjectType(n.rec.real)
	var made any
	if rec.real != 0 {
		// It was made while the pack was received, and is only needed for others.
		if out, err = w.apply(base); err != nil {
			return nil, nil, fmt.Errorf("object at byte %d of the pack: %w", rec.off, err)
		}
		if g.x.Note != nil {
			made = g.x.Note(t, out)
		}
	} else {
		if out, made, err = g.makeDelta(w.h, rec, n.depth+1, t, base, note, w.delta, w.r.buffers.buffer); err != nil {
			return nil, nil, err
		}
		g.reportProgress(1)
	}
	if child = g.newNode(i, rec, n); child == nil {
		w.r.buffers.put(out)
		return nil, nil, nil
	}
	child.note = made
	return child, out, nil
}

// apply returns the result of w.delta applied to base, in its own memory.
func (w *worker) apply(base []byte) ([]byte, error) {
	_, size, _, err := DeltaSizes(w.delta)
	if err != nil {
		return nil, err
	}
	if err := w.r.g.again(size); err != nil {
		return nil, err
	}
	var dst []byte
	if size/maxCopy <= int64(len(w.delta)) { // checked, see ApplyDelta
		dst = w.r.buffers.buffer(int(size))
	}
	return ApplyDelta(dst, base, w.delta)
}

func (w *worker) readDelta(i int32) error {
	e, err := w.entry(i)
	if err != nil {
		return err
	}
	if int64(cap(w.delta)) < e.Size || cap(w.delta) > maxKept {
		w.delta = make([]byte, e.Size+e.Size/2)
	}
	w.delta = w.delta[:e.Size]
	return w.inflate(e, w.delta)
}

// entry reads a whole entry into w.src. i is its record.
func (w *worker) entry(i int32) (Entry, error) {
	g := w.r.g
	off, end := g.recs.at(i).off, g.end
	if int(i)+1 < g.recs.n {
		end = g.recs.at(i + 1).off
	}
	n := int(end - off)
	if cap(w.src) < n {
		w.src = make([]byte, max(n, 4096))
	}
	w.src = w.src[:n]
	if _, err := g.file.ReadAt(w.src, off); err != nil {
		return Entry{}, err
	}
	return parseEntry(w.src, off)
}

// inflate is called after entry.
func (w *worker) inflate(e Entry, dst []byte) error {
	_, err := w.z.inflate(dst, w.src[e.Data-e.Offset:])
	if cap(w.src) > maxKept {
		w.src = nil
	}
	return err
}
