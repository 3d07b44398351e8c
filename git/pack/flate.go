package pack

import (
	"encoding/binary"
	"math/bits"
)

// flate decodes zlib streams (RFC 1950, 1951) from memory into memory, when the length of the result is known. It needs no window and does
// not read byte by byte, which makes it nearly twice as fast as the standard library on small objects (ADR 18). A stream may come in
// pieces: begin, then more for each. A flate is for one goroutine and may be reused.
type flate struct {
	lit, dist huffman
	// The codes of blocks with fixed Huffman codes.
	fixedLit, fixedDist huffman
	lens                [maxLit + maxDist]uint8
	symbols             *symbols // made when first needed

	// The position in the stream.
	at   part
	last bool // the block is the last one
	b    uint64
	n    uint
	out  int
	left int // of a stored block
}

// part is a part of a stream.
type part uint8

const (
	atHeader part = iota
	atBlock
	inStored
	inFixed
	inDynamic
	atSum
)

const (
	maxLit  = 288
	maxDist = 32
	maxCode = 19 // of the code that encodes the lengths of the other codes
	maxBits = 15

	// An entry of a table is value<<16 | extra<<8 | kind | length of the code. 0 means an invalid code.
	kindMask    = 0xf0
	kindLiteral = 0x10
	kindLength  = 0x20 // or a distance
	kindEnd     = 0x30
	kindSub     = 0x40 // value is the offset of the second table, extra its bits
	kindBad     = 0x50 // a reserved symbol
)

// huffman is a decoding table: one of width bits, followed by tables for longer codes.
type huffman struct {
	tab   []uint32
	width uint
}

// bitReader holds the next bits of src at its low end. Bits above n may be loaded already, with their right values.
type bitReader struct {
	b   uint64
	n   uint
	src []byte
	pos int
}

// fill loads at least 56 bits, or all that are left.
func (r *bitReader) fill() {
	if len(r.src)-r.pos >= 8 {
		r.b |= binary.LittleEndian.Uint64(r.src[r.pos:]) << r.n
		r.pos += int(63-r.n) >> 3
		r.n |= 56
		return
	}
	r.b &= 1<<r.n - 1
	for r.n <= 56 && r.pos < len(r.src) {
		r.b |= uint64(r.src[r.pos]) << r.n
		r.pos++
		r.n += 8
	}
}

// take returns k bits, up to 32; ok is false at the end of src.
func (r *bitReader) take(k uint) (v uint32, ok bool) {
	if r.n < k {
		if r.fill(); r.n < k {
			return 0, false
		}
	}
	v = uint32(r.b & (1<<k - 1))
	r.b >>= k
	r.n -= k
	return v, true
}

// align skips to the next whole byte.
func (r *bitReader) align() {
	r.b >>= r.n & 7
	r.n &^= 7
}

// inflate decodes the zlib stream at the beginning of src, which must decode to exactly len(dst) bytes, and returns its length. errShort
// means that src ends before the stream: call more to continue.
func (z *flate) inflate(dst, src []byte) (int, error) {
	z.begin()
	return z.more(dst, src)
}

// begin is called before the first piece of a stream.
func (z *flate) begin() {
	z.at, z.last, z.b, z.n, z.out, z.left = atHeader, false, 0, 0, 0, 0
}

// more continues with the next piece of a stream, src, and the same dst. It returns how much of src it used. With errShort that is all of
// it, except for an incomplete description of a code, or the first byte of the stream: the unused rest, less than 400 bytes, must be
// repeated before the next piece.
func (z *flate) more(dst, src []byte) (int, error) {
	r := bitReader{b: z.b, n: z.n, src: src}
	for {
		var err error
		switch z.at {
		case atHeader:
			if len(src) < 2 {
				return 0, errShort
			}
			if h := uint(src[0])<<8 | uint(src[1]); src[0]&0x0f != 8 || src[0]>>4 > 7 || h%31 != 0 || src[1]&0x20 != 0 {
				return 0, corrupt("zlib stream: bad header %04x", h)
			}
			r.pos = 2
			z.at = atBlock
		case atBlock:
			begin := r
			if err = z.head(&r, len(dst)-z.out); err == errShort {
				r = begin
			}
		case inStored:
			if err = z.stored(&r, dst); err == nil {
				z.ended()
			}
		case inFixed:
			if z.out, err = block(&r, dst, z.out, &z.fixedLit, &z.fixedDist); err == nil {
				z.ended()
			}
		case inDynamic:
			if z.out, err = block(&r, dst, z.out, &z.lit, &z.dist); err == nil {
				z.ended()
			}
		case atSum:
			if z.out < len(dst) {
				return 0, corrupt("zlib stream gives less than its object's size")
			}
			r.align()
			v, ok := r.take(32)
			if !ok {
				err = errShort
				break
			}
			if got, want := adler(dst), bits.ReverseBytes32(v); got != want {
				return 0, corrupt("zlib stream: checksum is %08x and should be %08x", got, want)
			}
			return r.pos - int(r.n>>3), nil
		}
		if err == errShort {
			// The bits above n are read again.
			z.b, z.n = r.b&(1<<r.n-1), r.n
			return r.pos, errShort
		}
		if err != nil {
			return 0, err
		}
	}
}

var (
	errMuch       = corrupt("zlib stream gives more than its object's size")
	errNoSymbol   = corrupt("zlib stream: invalid code")
	errNoDistance = corrupt("zlib stream: invalid distance")
	errBeyond     = corrupt("zlib stream: a distance beyond its beginning")
)

// head reads the beginning of a block. room is how much of dst is left.
func (z *flate) head(r *bitReader, room int) error {
	v, ok := r.take(3)
	if !ok {
		return errShort
	}
	z.last = v&1 != 0
	if z.symbols == nil {
		z.symbols = newSymbols()
	}
	switch v >> 1 {
	case 0:
		r.align()
		if v, ok = r.take(32); !ok {
			return errShort
		}
		if uint16(v) != ^uint16(v>>16) {
			return corrupt("zlib stream: bad length of a stored block")
		}
		if z.left = int(uint16(v)); z.left > room {
			return errMuch
		}
		z.at = inStored
	case 1:
		if z.fixedLit.tab == nil {
			z.fixed()
		}
		z.at = inFixed
	case 2:
		if err := z.dynamic(r, room); err != nil {
			return err
		}
		z.at = inDynamic
	default:
		return corrupt("zlib stream: reserved type of block")
	}
	return nil
}

// ended continues with what follows a block.
func (z *flate) ended() {
	if z.at = atBlock; z.last {
		z.at = atSum
	}
}

func (z *flate) stored(r *bitReader, dst []byte) error {
	for ; z.left > 0 && r.n > 0; z.left-- {
		dst[z.out] = byte(r.b)
		z.out++
		r.b >>= 8
		r.n -= 8
	}
	if z.left > 0 {
		r.b = 0
		n := copy(dst[z.out:z.out+z.left], r.src[r.pos:])
		r.pos += n
		z.out += n
		z.left -= n
	}
	if z.left > 0 {
		return errShort
	}
	return nil
}

func (z *flate) fixed() {
	lens := z.lens[:]
	for i := range maxLit {
		switch {
		case i < 144:
			lens[i] = 8
		case i < 256:
			lens[i] = 9
		case i < 280:
			lens[i] = 7
		default:
			lens[i] = 8
		}
	}
	z.fixedLit.build(lens[:maxLit], 9, z.symbols.lit[:], false)
	for i := range maxDist {
		lens[i] = 5
	}
	z.fixedDist.build(lens[:maxDist], 5, z.symbols.dist[:], false)
}

// dynamic reads the codes of a block. left is how much of dst is left: for a small rest small tables are faster.
func (z *flate) dynamic(r *bitReader, left int) error {
	v, ok := r.take(14)
	if !ok {
		return errShort
	}
	nlit, ndist, nlen := int(v&31)+257, int(v>>5&31)+1, int(v>>10)+4
	if nlit > 286 || ndist > 30 {
		return corrupt("zlib stream: too many codes")
	}
	const order = "\x10\x11\x12\x00\x08\x07\x09\x06\x0a\x05\x0b\x04\x0c\x03\x0d\x02\x0e\x01\x0f"
	var cl [maxCode]uint8
	for i := range nlen {
		if v, ok = r.take(3); !ok {
			return errShort
		}
		cl[order[i]] = uint8(v)
	}
	// The memory for the table of distances holds the code of the lengths first.
	if !z.dist.build(cl[:], 7, z.symbols.code[:], false) {
		return corrupt("zlib stream: bad code of lengths")
	}
	if err := z.lengths(r, nlit+ndist); err != nil {
		return err
	}
	if z.lens[256] == 0 {
		return corrupt("zlib stream: no code ends the block")
	}
	lw, dw := uint(9), uint(7)
	if left > 8<<10 {
		lw, dw = 11, 9
	}
	if !z.lit.build(z.lens[:nlit], lw, z.symbols.lit[:], true) || !z.dist.build(z.lens[nlit:nlit+ndist], dw, z.symbols.dist[:], true) {
		return corrupt("zlib stream: bad code")
	}
	return nil
}

// lengths reads count lengths of a block's codes, with the code in dist (RFC 1951, 3.2.7).
func (z *flate) lengths(r *bitReader, count int) error {
	mask := uint64(1)<<z.dist.width - 1
	for i := 0; i < count; {
		if r.n < 14 {
			r.fill()
		}
		e := z.dist.tab[r.b&mask]
		if e == 0 {
			if r.n < 7 {
				return errShort
			}
			return corrupt("zlib stream: bad code of lengths")
		}
		l := uint(e & 0xf)
		sym := e >> 16
		extra := uint(0)
		switch sym {
		case 16:
			extra = 2
		case 17:
			extra = 3
		case 18:
			extra = 7
		}
		if r.n < l+extra {
			return errShort
		}
		rep := int(r.b >> l & (1<<extra - 1))
		r.b >>= l + extra
		r.n -= l + extra
		var val uint8
		switch sym {
		case 16:
			if i == 0 {
				return corrupt("zlib stream: nothing to repeat")
			}
			val, rep = z.lens[i-1], rep+3
		case 17:
			rep += 3
		case 18:
			rep += 11
		default:
			val, rep = uint8(sym), 1
		}
		if i+rep > count {
			return corrupt("zlib stream: too many lengths")
		}
		for range rep {
			z.lens[i] = val
			i++
		}
	}
	return nil
}
