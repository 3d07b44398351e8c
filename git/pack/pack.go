package pack

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
)

// Pack is an indexed pack on disk. It is safe for concurrent use.
type Pack struct {
	path  string
	file  *os.File
	size  int64
	idx   *Index
	cache *Cache
	// users counts running calls, plus one while open. The index is unmapped at zero.
	users  atomic.Int64
	closed atomic.Bool
	z      *sync.Pool // of *reader, the cache's if there is one
	rev    rev
}

// maxChain is the longest chain of deltas that is followed in a pack on disk; git pack-objects makes none longer than 4095.
const maxChain = 10000

// Open opens the pack at path, which ends in ".pack"; the .idx must be beside it. Header and trailer are compared with the index; the
// content is not read. cache may be nil.
func Open(path string, cache *Cache) (*Pack, error) {
	base, ok := strings.CutSuffix(path, ".pack")
	if !ok {
		return nil, fmt.Errorf("%s: not named *.pack", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &Pack{path: path, file: f, cache: cache}
	if p.z = newReaders(); cache != nil {
		p.z = cache.readers
	}
	p.users.Store(1)
	if err := p.open(base + ".idx"); err != nil {
		f.Close()
		if p.idx != nil {
			_ = p.idx.close()
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func (p *Pack) open(idx string) error {
	st, err := p.file.Stat()
	if err != nil {
		return err
	}
	p.size = st.Size()
	if p.size < headerLen+hashLen {
		return corrupt("pack of %d bytes", p.size)
	}
	var b [hashLen]byte
	if _, err := p.file.ReadAt(b[:headerLen], 0); err != nil {
		return err
	}
	n, err := parseHeader(b[:headerLen])
	if err != nil {
		return err
	}
	if p.idx, err = openIndex(idx); err != nil {
		return err
	}
	if _, err := p.file.ReadAt(b[:], p.size-hashLen); err != nil {
		return err
	}
	if int64(n) != int64(p.idx.count) || p.idx.PackHash() != plumbing.Hash(b) {
		return corrupt("pack and index do not belong together")
	}
	return nil
}

// Path returns the file's name as given to Open.
func (p *Pack) Path() string { return p.path }

// Size returns the pack's length in bytes.
func (p *Pack) Size() int64 { return p.size }

// Count returns the number of objects in the pack.
func (p *Pack) Count() int { return p.idx.count }

// ID returns the pack's trailer.
func (p *Pack) ID() plumbing.Hash { return p.idx.PackHash() }

// Close closes the pack when the last running call has ended. A second Close does nothing.
func (p *Pack) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	p.cache.forget(p)
	return p.release()
}

func (p *Pack) acquire() error {
	for {
		n := p.users.Load()
		if n == 0 || p.closed.Load() {
			return ErrClosed
		}
		if p.users.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

func (p *Pack) release() error {
	if p.users.Add(-1) > 0 {
		return nil
	}
	return errors.Join(p.idx.close(), p.file.Close())
}

// Find returns the offset of an object in the pack.
func (p *Pack) Find(h plumbing.Hash) (off int64, ok bool, err error) {
	if err := p.acquire(); err != nil {
		return 0, false, err
	}
	defer p.release()
	return p.find(h)
}

func (p *Pack) find(h plumbing.Hash) (int64, bool, error) {
	i, ok := p.idx.Find(h)
	if !ok {
		return 0, false, nil
	}
	off, err := p.idx.Offset(i)
	if err == nil && (off < headerLen || off >= p.size-hashLen) {
		err = corrupt("index: object %s lies outside of the pack", h)
	}
	return off, err == nil, err
}

// Each calls fn for every object, in the order of names, until fn returns an error, which Each returns.
func (p *Pack) Each(fn func(h plumbing.Hash, off int64) error) error {
	if err := p.acquire(); err != nil {
		return err
	}
	defer p.release()
	for i := range p.idx.count {
		off, err := p.idx.Offset(i)
		if err == nil {
			err = fn(p.idx.Hash(i), off)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Prefix calls fn for each object whose name begins with the hexadecimal digits until fn returns false.
func (p *Pack) Prefix(digits string, fn func(plumbing.Hash) bool) error {
	if err := p.acquire(); err != nil {
		return err
	}
	defer p.release()
	p.idx.Prefix(digits, fn)
	return nil
}

// Entry reads the head of the object at off.
func (p *Pack) Entry(off int64) (Entry, error) {
	if err := p.acquire(); err != nil {
		return Entry{}, err
	}
	defer p.release()
	return p.entry(nil, off)
}

func (p *Pack) entry(w *Window, off int64) (Entry, error) {
	if off < headerLen || off >= p.size-hashLen {
		return Entry{}, corrupt("no object at %d", off)
	}
	var b [maxEntryHead]byte
	n := min(int64(len(b)), p.size-hashLen-off)
	head, err := w.bytes(p, off, n)
	if head == nil && err == nil {
		head = b[:n]
		_, err = p.file.ReadAt(head, off)
	}
	if err != nil {
		return Entry{}, err
	}
	e, err := parseEntry(head, off)
	if err == errShort {
		err = corrupt("object at %d is cut", off)
	}
	return e, err
}

// Base returns the offset of a delta's base in the same pack.
func (p *Pack) Base(e Entry) (int64, error) {
	if e.Type == plumbing.OFSDeltaObject {
		return e.BaseOffset, nil
	}
	off, ok, err := p.Find(e.BaseHash)
	if err == nil && !ok {
		err = corrupt("object at %d: its base %s is not in the pack", e.Offset, e.BaseHash)
	}
	return off, err
}

// reader is what one goroutine needs to inflate, reused: decoder and buffers.
type reader struct {
	z   inflater
	src []byte
	big *bufio.Reader
}

func newReaders() *sync.Pool { return &sync.Pool{New: func() any { return new(reader) }} }

// wholeRead is the inflated size up to which an entry is read with one call.
const wholeRead = 1 << 20

// Inflate returns the inflated bytes of an entry as stored (a delta stays one), in dst's memory if that suffices.
func (p *Pack) Inflate(e Entry, dst []byte) ([]byte, error) {
	if err := p.acquire(); err != nil {
		return nil, err
	}
	defer p.release()
	return p.inflate(nil, e, dst)
}

func (p *Pack) inflate(w *Window, e Entry, dst []byte) ([]byte, error) {
	rest := p.size - hashLen - e.Data
	// Deflate yields at most 1032 bytes for one; refuse a greater ratio before allocating.
	if e.Size/1032 > rest || rest < 0 {
		return nil, corrupt("object at %d: its size %d is more than the pack can hold", e.Offset, e.Size)
	}
	if int64(cap(dst)) < e.Size {
		dst = make([]byte, e.Size)
	}
	dst = dst[:e.Size]
	r := p.z.Get().(*reader)
	defer p.z.Put(r)
	if e.Size <= wholeRead {
		n := min(e.Size+e.Size>>10+64, rest)
		src, err := w.bytes(p, e.Data, n)
		if src == nil && err == nil {
			if int64(cap(r.src)) < n {
				r.src = make([]byte, max(n, 4096))
			}
			src = r.src[:n]
			_, err = p.file.ReadAt(src, e.Data)
		}
		if err != nil {
			return nil, err
		}
		_, err = r.z.inflate(dst, src)
		if err != errShort {
			return dst, p.at(e, err)
		}
		// A stream may be longer than that of a reasonable encoder, for example many stored blocks: read it in pieces.
	}
	body := p.stream(r, e)
	if err := r.z.reset(body); err != nil {
		return nil, p.at(e, inflateError(err))
	}
	if _, err := io.ReadFull(r.z.zr, dst); err != nil {
		return nil, p.at(e, inflateError(err))
	}
	return dst, p.at(e, r.z.end())
}

func (p *Pack) stream(r *reader, e Entry) *bufio.Reader {
	s := io.NewSectionReader(p.file, e.Data, p.size-hashLen-e.Data)
	if r.big == nil {
		r.big = bufio.NewReaderSize(s, 64<<10)
	} else {
		r.big.Reset(s)
	}
	return r.big
}

func (p *Pack) at(e Entry, err error) error {
	if err == nil {
		return nil
	}
	if err == errShort {
		err = corrupt("zlib stream is cut")
	}
	return fmt.Errorf("object at %d: %w", e.Offset, err)
}

// Header returns the type and size of the object at off, deltas resolved. It inflates no object, only the first bytes of a delta.
func (p *Pack) Header(off int64) (plumbing.ObjectType, int64, error) {
	if err := p.acquire(); err != nil {
		return 0, 0, err
	}
	defer p.release()
	e, err := p.entry(nil, off)
	if err != nil {
		return 0, 0, err
	}
	size := e.Size
	if e.Delta() {
		if size, err = p.resultSize(e); err != nil {
			return 0, 0, err
		}
	}
	for n := 0; e.Delta(); n++ {
		if n > maxChain {
			return 0, 0, corrupt("object at %d: endless chain of deltas", off)
		}
		if off, err = p.Base(e); err != nil {
			return 0, 0, err
		}
		if t, _, ok := p.cache.get(p, off); ok {
			return t, size, nil
		}
		if e, err = p.entry(nil, off); err != nil {
			return 0, 0, err
		}
	}
	return e.Type, size, nil
}

// resultSize inflates the beginning of a delta.
func (p *Pack) resultSize(e Entry) (int64, error) {
	r := p.z.Get().(*reader)
	defer p.z.Put(r)
	var src [64]byte
	n := min(int64(len(src)), p.size-hashLen-e.Data)
	if _, err := p.file.ReadAt(src[:max(n, 0)], e.Data); err != nil {
		return 0, err
	}
	try := func(in io.Reader) (int64, error) {
		if err := r.z.reset(in); err != nil {
			return 0, inflateError(err)
		}
		var head [20]byte
		k, err := io.ReadFull(r.z.zr, head[:min(int64(len(head)), e.Size)])
		if k < 2 && err != nil {
			return 0, inflateError(err)
		}
		_, size, _, err := DeltaSizes(head[:k])
		return size, err
	}
	if size, err := try(bytes.NewReader(src[:max(n, 0)])); err == nil {
		return size, nil
	}
	size, err := try(p.stream(r, e))
	return size, p.at(e, err)
}

// Get returns the object at off, deltas resolved. The bytes are shared and must not be changed.
func (p *Pack) Get(off int64) (plumbing.ObjectType, []byte, error) {
	if err := p.acquire(); err != nil {
		return 0, nil, err
	}
	defer p.release()
	var chain []Entry
	var base []byte
	var typ plumbing.ObjectType
	for at := off; ; {
		if t, data, ok := p.cache.get(p, at); ok {
			typ, base = t, data
			break
		}
		e, err := p.entry(nil, at)
		if err != nil {
			return 0, nil, err
		}
		if !e.Delta() {
			if base, err = p.inflate(nil, e, nil); err != nil {
				return 0, nil, err
			}
			typ = e.Type
			if len(chain) > 0 {
				p.cache.put(p, at, typ, base)
			}
			break
		}
		if len(chain) > maxChain {
			return 0, nil, corrupt("object at %d: endless chain of deltas", off)
		}
		chain = append(chain, e)
		if at, err = p.Base(e); err != nil {
			return 0, nil, err
		}
	}
	var delta []byte
	for i := len(chain) - 1; i >= 0; i-- {
		e := chain[i]
		var err error
		if delta, err = p.inflate(nil, e, delta); err != nil {
			return 0, nil, err
		}
		if base, err = ApplyDelta(nil, base, delta); err != nil {
			return 0, nil, p.at(e, err)
		}
		if i > 0 {
			p.cache.put(p, e.Offset, typ, base)
		}
	}
	return typ, base, nil
}
