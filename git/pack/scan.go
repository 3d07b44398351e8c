package pack

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// scanner is the first pass: it parses the stream, inflates every object once, writes the pack, and passes what is not a delta to
// goroutines that hash it. While those have little to do, they get deltas too: see early.
type scanner struct {
	g       *run
	in      *bufio.Reader
	out     *packWriter
	crc     uint32 // of the current entry
	off     int64
	z       inflater
	discard []byte // deltas are inflated to it
	part    []byte // input of a stream that was incomplete, and what followed
	h       *objectHash

	cur    *batch
	full   chan *batch
	free   chan *batch
	failed chan struct{}
	once   sync.Once
	err    error
}

// batch is a number of inflated objects.
type batch struct {
	data  []byte
	items []batchItem
}

type batchItem struct {
	rec *record
	at  int32 // the record's place
	end int   // in data
}

const (
	batchBytes   = 256 << 10
	batchObjects = 512
	batches      = 4
	// eager is the number of waiting batches from which on deltas are not passed on. A family is begun only if none waits: a family of which
	// some deltas are skipped is skipped from there on, so that families that are begun are completed.
	eager = 3
	// maxKept is the largest buffer that is kept for the next object.
	maxKept = 512 << 10
)

func (g *run) scan(r *bufio.Reader) error {
	s := &scanner{
		g: g, in: r, out: newPackWriter(g.file), h: newObjectHash(),
		full: make(chan *batch, batches), free: make(chan *batch, batches), failed: make(chan struct{}),
	}
	for range batches {
		s.free <- new(batch)
	}
	var wg sync.WaitGroup
	for range max(1, g.workers-1) {
		wg.Go(s.hashBatches)
	}
	err := s.run()
	if err == nil {
		err = s.send()
	}
	close(s.full)
	wg.Wait()
	if err == nil {
		err = s.err
	}
	if e := s.out.close(); err == nil {
		err = e
	}
	return err
}

func (s *scanner) fail(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.failed)
	})
}

// hashBatches names the objects of full batches.
func (s *scanner) hashBatches() {
	w := newEarly(s.g)
	defer w.buffers.close()
	for b := range s.full {
		if err := w.batch(b); err != nil {
			s.fail(err)
		}
		b.items = b.items[:0]
		if b.data = b.data[:0]; cap(b.data) > maxKept {
			b.data = nil
		}
		s.free <- b
	}
	s.g.early.Add(w.made)
}

// send passes the current batch on and takes a free one.
func (s *scanner) send() error {
	if s.cur == nil || len(s.cur.items) == 0 {
		return nil
	}
	s.full <- s.cur // never blocks: there are no more batches than places
	s.cur = nil
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

func (s *scanner) run() error {
	g := s.g
	if err := s.need(headerLen); err != nil {
		return err
	}
	b, _ := s.in.Peek(headerLen)
	count, err := parseHeader(b)
	if err != nil {
		return err
	}
	if err := s.take(headerLen); err != nil {
		return err
	}
	if int64(count) > g.lim.Objects || count > 1<<31-1 {
		return &LimitError{Name: "Objects", Limit: min(g.lim.Objects, 1<<31-1), Got: int64(count)}
	}
	if int64(count)*minEntry > g.lim.PackBytes {
		return &LimitError{Name: "PackBytes", Limit: g.lim.PackBytes, Got: int64(count) * minEntry}
	}
	g.expected = int(count)
	for i := range count {
		if i%256 == 0 {
			if err := g.ctx.Err(); err != nil {
				return err
			}
		}
		if err := s.object(); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("pack ends within object %d of %d: %w", i+1, count, err)
			}
			return err
		}
	}
	g.end = s.off
	if err := s.need(hashLen); err != nil {
		return fmt.Errorf("pack ends within its trailer: %w", err)
	}
	if g.trailer, err = s.out.sum(); err != nil {
		return err
	}
	b, _ = s.in.Peek(hashLen)
	if plumbing.Hash(b) != g.trailer {
		return corrupt("pack's checksum is %s and its trailer says %s", g.trailer, plumbing.Hash(b))
	}
	err = s.take(hashLen)
	g.wire = s.off
	return err
}

// need waits until n bytes, no more than the buffer holds, are available.
func (s *scanner) need(n int) error {
	if _, err := s.in.Peek(n); err != nil {
		return eof(err)
	}
	return nil
}

func eof(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// window returns what was received and not consumed. It waits only if there is nothing.
func (s *scanner) window() ([]byte, error) {
	if s.in.Buffered() == 0 {
		if err := s.need(1); err != nil {
			return nil, err
		}
	}
	return s.in.Peek(s.in.Buffered())
}

// take consumes n bytes, which are in the buffer: they go to the file and the checksums.
func (s *scanner) take(n int) error {
	b, _ := s.in.Peek(n)
	s.crc = crc32.Update(s.crc, crc32.IEEETable, b)
	if err := s.out.write(b); err != nil {
		return err
	}
	if s.off += int64(n); s.off > s.g.lim.PackBytes {
		return &LimitError{Name: "PackBytes", Limit: s.g.lim.PackBytes}
	}
	_, err := s.in.Discard(n)
	return err
}

func (s *scanner) object() error {
	g := s.g
	e, err := s.head()
	if err != nil {
		return err
	}
	rec := g.recs.add()
	rec.off, rec.typ, rec.head, rec.base = e.Offset, uint8(e.Type), uint8(e.Data-e.Offset), -1
	switch e.Type {
	case plumbing.OFSDeltaObject:
		base, ok := g.recs.find(e.BaseOffset)
		if !ok {
			return corrupt("object at %d: no object begins at %d, where its base should be", e.Offset, e.BaseOffset)
		}
		rec.base = base
		g.deltas++
	case plumbing.REFDeltaObject:
		g.refs = append(g.refs, refDelta{e.BaseHash, int32(g.recs.n - 1)})
		g.deltas++
	}
	if e.Size > g.lim.ObjectBytes {
		return &LimitError{Name: "ObjectBytes", Limit: g.lim.ObjectBytes, Got: e.Size, Offset: e.Offset}
	}
	if err := g.grown(e.Size); err != nil {
		return err
	}
	switch {
	case e.Delta():
		err = s.delta(e, rec)
	case e.Type == plumbing.BlobObject && e.Size > g.lim.StreamBytes:
		err = s.stream(e, rec)
	default:
		err = s.whole(e, rec)
	}
	if err == errShort {
		err = io.ErrUnexpectedEOF
	}
	var limit *LimitError
	if errors.As(err, &limit) && (limit.Name == "PackBytes" || limit.Name == "DeltaTotal") {
		return err // about the pack, not this object
	}
	if err != nil {
		return fmt.Errorf("object at byte %d of the pack: %w", e.Offset, err)
	}
	rec.crc = s.crc
	if wire := s.off - e.Data; e.Size > 1<<20 && e.Size/wire > g.lim.Ratio {
		return &LimitError{Name: "Ratio", Limit: g.lim.Ratio, Got: e.Size / wire, Offset: e.Offset}
	}
	return nil
}

// head parses and consumes the head of the next entry.
func (s *scanner) head() (Entry, error) {
	s.crc = 0
	for {
		b, err := s.window()
		if err != nil {
			return Entry{}, err
		}
		e, err := parseEntry(b, s.off)
		switch {
		case err == nil:
			return e, s.take(int(e.Data - e.Offset))
		case err != errShort:
			return e, err
		}
		if err := s.need(len(b) + 1); err != nil {
			return e, err
		}
	}
}

// whole inflates an object into the current batch.
func (s *scanner) whole(e Entry, rec *record) error {
	if err := s.g.checked(e.Type, e.Size, e.Offset); err != nil {
		return err
	}
	rec.held = len(s.full) == 0
	return s.hand(e, rec)
}

// hand inflates an object, or a delta, into the current batch.
func (s *scanner) hand(e Entry, rec *record) error {
	if s.cur != nil && (len(s.cur.data)+int(e.Size) > batchBytes || len(s.cur.items) >= batchObjects) {
		if err := s.send(); err != nil {
			return err
		}
	}
	if s.cur == nil {
		select {
		case s.cur = <-s.free:
		case <-s.failed:
			return s.err
		}
	}
	b := s.cur
	start := len(b.data)
	data, err := s.into(b.data, e.Size)
	if err != nil {
		return err
	}
	b.data = data
	b.items = append(b.items, batchItem{rec, int32(s.g.recs.n - 1), start + int(e.Size)})
	return nil
}

// delta inflates a delta to find its end and check it. The delta is read again when its base is available.
func (s *scanner) delta(e Entry, rec *record) error {
	if e.Size > s.g.lim.DeltaBytes {
		return &LimitError{Name: "DeltaBytes", Limit: s.g.lim.DeltaBytes, Got: e.Size}
	}
	if e.Size < 3 {
		return corrupt("a delta of %d bytes", e.Size)
	}
	if rec.base >= 0 && s.g.recs.at(rec.base).held && e.Size <= batchBytes && len(s.full) < eager {
		rec.held = true
		if err := s.hand(e, rec); err != nil {
			return err
		}
		return s.sizes(s.cur.data[len(s.cur.data)-int(e.Size):], e.Size)
	}
	if e.Size > maxKept {
		return s.skipDelta(e.Size)
	}
	junk, err := s.into(s.discard[:0], e.Size)
	if cap(junk) <= maxKept {
		s.discard = junk
	}
	if err != nil {
		return err
	}
	return s.sizes(junk, e.Size)
}

// sizes records what a delta of size bytes, which begins with head, states about its objects. Wrong statements are found when it is resolved;
// objects over a limit are refused then too, before memory is allocated.
func (s *scanner) sizes(head []byte, size int64) error {
	g := s.g
	g.largeDelta = max(g.largeDelta, size)
	base, result, _, err := DeltaSizes(head)
	if err != nil || max(base, result) > g.lim.DeltaBytes {
		return nil
	}
	g.large = max(g.large, base, result)
	return g.checkPromised(result, s.off)
}

// skipDelta inflates a large delta and keeps only its sizes.
func (s *scanner) skipDelta(size int64) error {
	in := &feed{s: s}
	if err := s.z.reset(in); err != nil {
		return in.error(err)
	}
	if cap(s.discard) < 64<<10 {
		s.discard = make([]byte, 64<<10)
	}
	buf := s.discard[:64<<10]
	for left := size; left > 0; {
		n, err := io.ReadFull(s.z.zr, buf[:min(left, int64(len(buf)))])
		if err != nil {
			return in.error(err)
		}
		if left == size {
			if err := s.sizes(buf[:n], size); err != nil {
				return err
			}
		}
		left -= int64(n)
	}
	if err := s.z.end(); err != nil {
		return in.error(err)
	}
	return in.flush()
}

// into appends the size bytes that the stream inflates to, and consumes its bytes.
func (s *scanner) into(dst []byte, size int64) ([]byte, error) {
	src, err := s.window()
	if err != nil {
		return dst, err
	}
	// Allocate only what is possible: beyond 1 MiB, no more than the bytes received can inflate to.
	if size > 1<<20 && size/1032 > int64(len(src)) {
		return s.follow(&feed{s: s}, dst, size)
	}
	at := len(dst)
	out := grow(dst, int(size))
	n, err := s.z.inflate(out[at:], src)
	again := 0 // bytes that were taken before and did not suffice for what they begin
	for in := src; err == errShort; {
		s.part = append(s.part[:0], in[n:]...)
		if err := s.take(len(src)); err != nil {
			return dst, err
		}
		if src, err = s.window(); err != nil {
			return dst, err
		}
		in = src
		if again = len(s.part); again > 0 {
			s.part = append(s.part, src...)
			in = s.part
		}
		n, err = s.z.more(out[at:], in)
	}
	if err != nil {
		return dst, err
	}
	return out, s.take(n - again)
}

// follow inflates a stream as it comes, appending to dst.
func (s *scanner) follow(in *feed, dst []byte, size int64) ([]byte, error) {
	if err := s.z.reset(in); err != nil {
		return dst, in.error(err)
	}
	for left := size; left > 0; {
		k := int(min(left, max(64<<10, int64(len(dst)))))
		dst = grow(dst, k)
		if _, err := io.ReadFull(s.z.zr, dst[len(dst)-k:]); err != nil {
			return dst, in.error(err)
		}
		left -= int64(k)
	}
	if err := s.z.end(); err != nil {
		return dst, in.error(err)
	}
	return dst, in.flush()
}

func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b[:len(b)+n]
	}
	out := make([]byte, len(b)+n, max(len(b)+n, min(2*cap(b), len(b)+n+1<<20)))
	copy(out, b)
	return out
}

// stream hashes a large blob as it arrives.
func (s *scanner) stream(e Entry, rec *record) error {
	in := &feed{s: s}
	if err := s.z.reset(in); err != nil {
		return in.error(err)
	}
	s.h.start(e.Type, e.Size)
	if cap(s.discard) < 64<<10 {
		s.discard = make([]byte, 64<<10)
	}
	buf := s.discard[:64<<10]
	for left := e.Size; left > 0; {
		if err := s.g.ctx.Err(); err != nil {
			return err
		}
		n, err := s.z.zr.Read(buf[:min(left, int64(len(buf)))])
		s.h.write(buf[:n])
		if left -= int64(n); err != nil && left > 0 {
			return in.error(err)
		}
	}
	if err := s.z.end(); err != nil {
		return in.error(err)
	}
	if err := in.flush(); err != nil {
		return err
	}
	name, err := s.h.finish()
	if err != nil {
		return err
	}
	rec.hash, rec.real = name, rec.typ
	s.g.reportProgress(1)
	return s.g.complete(&Object{Type: e.Type, Hash: name, Size: e.Size})
}
