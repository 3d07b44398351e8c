package pack

const (
	// windowSize is how much a Window reads at once.
	windowSize = 64 << 10
	// windowNear is how far behind the last read another may begin to count as its continuation.
	windowNear = 32 << 10
)

// Window reads entries of packs with few system calls if they are near each other and are requested in about their order, as the files
// of a tree are: one read serves for dozens. Distant entries are read one by one. The zero Window is ready; it is for one goroutine, holds
// windowSize bytes at most, and may be used for one pack after another.
type Window struct {
	p   *Pack
	off int64
	buf []byte // the pack's bytes from off on
	end int64  // of the last read, wherever it went
}

// bytes returns n bytes of p from off on, valid until the next call. It returns nil if they are better read alone. The caller has made sure
// that they are in the pack.
func (w *Window) bytes(p *Pack, off, n int64) ([]byte, error) {
	if w == nil || n > windowSize {
		return nil, nil
	}
	if p != w.p {
		w.p, w.off, w.buf, w.end = p, 0, w.buf[:0], 0
	}
	last := w.off + int64(len(w.buf))
	if off >= w.off && off+n <= last {
		return w.buf[off-w.off:][:n], nil
	}
	// A head is read with some bytes of what follows it, so that what follows begins before the end of that read.
	inside, follows := off >= w.off && off <= last+windowNear, off >= w.end-maxEntryHead && off <= w.end+windowNear
	if !inside && !follows {
		w.end = off + n
		return nil, nil
	}
	size := min(windowSize, p.size-hashLen-off)
	if int64(cap(w.buf)) < size {
		w.buf = make([]byte, 0, min(windowSize, p.size)) // a pushed pack is often small
	}
	w.off, w.buf = off, w.buf[:size]
	if _, err := p.file.ReadAt(w.buf, off); err != nil {
		w.buf = w.buf[:0]
		return nil, err
	}
	w.end = off + size
	return w.buf[:n], nil
}

// Entry is p.Entry.
func (w *Window) Entry(p *Pack, off int64) (Entry, error) {
	if err := p.acquire(); err != nil {
		return Entry{}, err
	}
	defer p.release()
	return p.entry(w, off)
}

// Inflate is p.Inflate.
func (w *Window) Inflate(p *Pack, e Entry, dst []byte) ([]byte, error) {
	if err := p.acquire(); err != nil {
		return nil, err
	}
	defer p.release()
	return p.inflate(w, e, dst)
}
