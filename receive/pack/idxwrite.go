package pack

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"io"
	"slices"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"
)

// sort makes the order of names, and refuses a pack that holds an object twice, as git does (index-pack --strict).
func (g *run) sort() error {
	g.order = make([]int32, g.recs.n)
	for i := range g.order {
		g.order[i] = int32(i)
	}
	slices.SortFunc(g.order, func(a, b int32) int {
		x, y := &g.recs.at(a).hash, &g.recs.at(b).hash
		u, v := binary.BigEndian.Uint64(x[:]), binary.BigEndian.Uint64(y[:])
		switch {
		case u < v:
			return -1
		case u > v:
			return 1
		}
		return bytes.Compare(x[8:], y[8:])
	})
	for i := 1; i < len(g.order); i++ {
		if h := g.recs.at(g.order[i]).hash; h == g.recs.at(g.order[i-1]).hash {
			return corrupt("pack holds object %s twice", h)
		}
	}
	return nil
}

func (g *run) findSorted(h plumbing.Hash) (int32, bool) {
	k := sort.Search(len(g.order), func(k int) bool { return bytes.Compare(g.recs.at(g.order[k]).hash[:], h[:]) >= 0 })
	if k < len(g.order) && g.recs.at(g.order[k]).hash == h {
		return g.order[k], true
	}
	return 0, false
}

// writeIdx writes the index of version 2.
func (g *run) writeIdx(w io.Writer) error {
	sum := sha1.New()
	out := &sumWriter{w: io.MultiWriter(w, sum)}
	out.bytes([]byte(idxMagic))
	var fan [256]uint32
	for _, i := range g.order {
		fan[g.recs.at(i).hash[0]]++
	}
	n := uint32(0)
	for _, c := range fan {
		n += c
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
	out.bytes(g.trailer[:])
	if out.err != nil {
		return out.err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// writeRev writes the reverse index of version 1: the objects in the order of the pack, as places in the order of names.
func (g *run) writeRev(w io.Writer) error {
	sum := sha1.New()
	out := &sumWriter{w: io.MultiWriter(w, sum)}
	out.bytes([]byte("RIDX\x00\x00\x00\x01\x00\x00\x00\x01"))
	place := make([]uint32, len(g.order))
	for k, i := range g.order {
		place[i] = uint32(k)
	}
	for _, p := range place {
		out.u32(p)
	}
	out.bytes(g.trailer[:])
	if out.err != nil {
		return out.err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// sumWriter keeps the first error.
type sumWriter struct {
	w   io.Writer
	buf []byte
	err error
}

func (s *sumWriter) bytes(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
}

func (s *sumWriter) u32(v uint32) {
	s.buf = binary.BigEndian.AppendUint32(s.buf[:0], v)
	s.bytes(s.buf)
}
