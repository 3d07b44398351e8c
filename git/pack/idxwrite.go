package pack

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"hash"
	"io"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"corpus-git/internal/offheap"

	"github.com/go-git/go-git/v5/plumbing"
)

// sort sorts the records by name, then by offset, and sets g.twice if a name occurs more than once.
func (g *run) sort() {
	g.inOrder = offheap.Make[int32](g.recs.n)
	g.order = g.inOrder.Slice()
	// Names are distributed evenly: they are divided by their first byte, and the parts are sorted one by one.
	for i := range int32(g.recs.n) {
		g.fan[g.recs.at(i).hash[0]]++
	}
	var at [256]uint32
	sum := uint32(0)
	for k, n := range g.fan {
		at[k] = sum
		sum += n
		g.fan[k] = sum
	}
	for i := range int32(g.recs.n) {
		k := g.recs.at(i).hash[0]
		g.order[at[k]] = i
		at[k]++
	}
	workers := g.workers
	if g.recs.n < recordPiece {
		workers = 1
	}
	var next atomic.Int32
	var twice atomic.Bool
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for k := next.Add(1) - 1; k < 256; k = next.Add(1) - 1 {
				begin := uint32(0)
				if k > 0 {
					begin = g.fan[k-1]
				}
				if g.sortPart(g.order[begin:g.fan[k]]) {
					twice.Store(true)
				}
			}
		})
	}
	wg.Wait()
	g.twice = twice.Load()
}

// sortPart reports whether a name occurs twice.
func (g *run) sortPart(part []int32) (twice bool) {
	slices.SortFunc(part, func(a, b int32) int {
		x, y := &g.recs.at(a).hash, &g.recs.at(b).hash
		u, v := binary.BigEndian.Uint64(x[:]), binary.BigEndian.Uint64(y[:])
		switch {
		case u < v:
			return -1
		case u > v:
			return 1
		}
		return cmp.Or(bytes.Compare(x[8:], y[8:]), cmp.Compare(a, b))
	})
	for i := 1; i < len(part) && !twice; i++ {
		twice = g.recs.at(part[i]).hash == g.recs.at(part[i-1]).hash
	}
	return twice
}

// findSorted returns the first received record with that name.
func (g *run) findSorted(h plumbing.Hash) (int32, bool) {
	defer runtime.KeepAlive(g)
	lo := uint32(0)
	if h[0] > 0 {
		lo = g.fan[h[0]-1]
	}
	part := g.order[lo:g.fan[h[0]]]
	k := sort.Search(len(part), func(k int) bool { return bytes.Compare(g.recs.at(part[k]).hash[:], h[:]) >= 0 })
	if k < len(part) && g.recs.at(part[k]).hash == h {
		return part[k], true
	}
	return 0, false
}

// writeIdx writes the index of version 2.
func (g *run) writeIdx(w io.Writer) error {
	out := newSumWriter(w, 2048+28*g.recs.n)
	out.bytes([]byte(idxMagic))
	for _, n := range g.fan {
		out.u32(n)
	}
	for _, i := range g.order {
		out.bytes(g.recs.at(i).hash[:])
	}
	for _, i := range g.order {
		out.u32(g.recs.at(i).crc)
	}
	var large []int64
	for _, i := range g.order {
		off := g.recs.at(i).off
		if off > 0x7fffffff {
			out.u32(0x80000000 | uint32(len(large)))
			large = append(large, off)
			continue
		}
		out.u32(uint32(off))
	}
	for _, off := range large {
		out.u32(uint32(off >> 32))
		out.u32(uint32(off))
	}
	return out.end(g.trailer)
}

// writeRev writes the reverse index of version 1: the objects in the order of the pack, as positions in the order of names.
func (g *run) writeRev(w io.Writer) error {
	out := newSumWriter(w, 64+4*g.recs.n)
	out.bytes([]byte("RIDX\x00\x00\x00\x01\x00\x00\x00\x01"))
	mem := offheap.Make[uint32](len(g.order))
	defer mem.Free()
	place := mem.Slice()
	for k, i := range g.order {
		place[i] = uint32(k)
	}
	for _, p := range place {
		out.u32(p)
	}
	return out.end(g.trailer)
}

// sumWriter hashes what it writes. It keeps the first error.
type sumWriter struct {
	w   io.Writer
	sum hash.Hash
	buf []byte
	err error
}

// sumBuffer is how much is written at once, at most.
const sumBuffer = 64 << 10

// newSumWriter makes one of about that many bytes.
func newSumWriter(w io.Writer, size int) *sumWriter {
	return &sumWriter{w: w, sum: sha1.New(), buf: make([]byte, 0, min(size, sumBuffer))}
}

func (s *sumWriter) bytes(b []byte) {
	if len(s.buf)+len(b) > cap(s.buf) {
		s.flush()
	}
	s.buf = append(s.buf, b...)
}

func (s *sumWriter) u32(v uint32) {
	if len(s.buf)+4 > cap(s.buf) {
		s.flush()
	}
	s.buf = binary.BigEndian.AppendUint32(s.buf, v)
}

func (s *sumWriter) flush() {
	if s.err == nil {
		s.sum.Write(s.buf)
		_, s.err = s.w.Write(s.buf)
	}
	s.buf = s.buf[:0]
}

// end writes the name of the pack and the checksum.
func (s *sumWriter) end(pack plumbing.Hash) error {
	s.bytes(pack[:])
	s.flush()
	if s.err == nil {
		_, s.err = s.w.Write(s.sum.Sum(nil))
	}
	return s.err
}
