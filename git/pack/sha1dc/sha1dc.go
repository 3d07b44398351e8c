// Package sha1dc is SHA-1 that detects collision attacks, as git's own does (https://shattered.io, https://sha-mbles.github.io).
//
// It owns a faster way to the same result as github.com/pjbgf/sha1cd (ADR 18): on processors with SHA and AVX2 instructions, blocks are compressed, and the
// first of the conditions that an attack cannot avoid are checked for all disturbance vectors at once, in one loop of assembly. Only for a block that
// passes them are the rest checked and the recompression done, in Go, with the tables of sha1cd's package ubc. On other processors sha1cd does
// everything. The tests compare it with sha1cd, block by block.
//
// It never touches a file and knows no git object. Concurrency: a Hash is for one goroutine. A crash leaves nothing.
package sha1dc

import (
	"encoding/binary"

	"github.com/pjbgf/sha1cd"
)

// Size is the length of a sum in bytes.
const Size = 20

const blockSize = 64

// Hash is a running SHA-1. New creates it; Reset starts again.
type Hash struct {
	h      [5]uint32
	part   [blockSize]byte // the beginning of a block
	n      int             // of part
	length uint64
	found  bool
	s      scratch

	plain sha1cd.CollisionResistantHash // does everything, if it is set
	sum   []byte
}

// New returns a Hash that is ready for Write.
func New() *Hash {
	h := new(Hash)
	if !fast {
		h.plain = sha1cd.New().(sha1cd.CollisionResistantHash)
	}
	h.Reset()
	return h
}

// Reset discards what was written.
func (d *Hash) Reset() {
	if d.plain != nil {
		d.plain.Reset()
		return
	}
	d.h = [5]uint32{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}
	d.n, d.length, d.found = 0, 0, false
}

// Write adds b. It never fails.
func (d *Hash) Write(b []byte) (int, error) {
	if d.plain != nil {
		return d.plain.Write(b)
	}
	all := len(b)
	d.length += uint64(all)
	if d.n > 0 {
		n := copy(d.part[d.n:], b)
		d.n += n
		b = b[n:]
		if d.n < blockSize {
			return all, nil
		}
		d.blocks(d.part[:])
		d.n = 0
	}
	if whole := len(b) &^ (blockSize - 1); whole > 0 {
		d.blocks(b[:whole])
		b = b[whole:]
	}
	d.n = copy(d.part[:], b)
	return all, nil
}

// blocks processes whole blocks, at least one.
func (d *Hash) blocks(b []byte) {
	for len(b) > 0 {
		n, suspect := compress(&d.h, &b[0], len(b)/blockSize, &d.s)
		if suspect && !d.found {
			d.found = attack(&d.s, &d.h)
		}
		b = b[n*blockSize:]
	}
}

// Finish returns the sum, and whether what was written has a block of a collision attack: then the sum is that of plain SHA-1 or another one, and must not be
// used as a name. Call Reset before writing more.
func (d *Hash) Finish() (sum [Size]byte, attacked bool) {
	if d.plain != nil {
		d.sum, attacked = d.plain.CollisionResistantSum(d.sum[:0])
		copy(sum[:], d.sum)
		return sum, attacked
	}
	// FIPS 180-4, 5.1.1: a one bit, zeros, and the length in bits.
	length := d.length << 3
	d.part[d.n] = 0x80
	clear(d.part[d.n+1:])
	if d.n >= blockSize-8 {
		d.blocks(d.part[:])
		clear(d.part[:])
	}
	binary.BigEndian.PutUint64(d.part[blockSize-8:], length)
	d.blocks(d.part[:])
	for i, v := range d.h {
		binary.BigEndian.PutUint32(sum[4*i:], v)
	}
	return sum, d.found
}
