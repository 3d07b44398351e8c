package pack

import (
	"encoding/binary"
	"hash/adler32"
)

// flate decodes zlib streams (RFC 1950, 1951) from memory into memory, where the length of the result is known. That spares it the window and
// the byte by byte reading of a decoder of streams, and makes it several times as fast on the small objects that fill packs. It is for one
// goroutine and meant to be used again.
type flate struct {
	lit, dist huffman
	// The code of blocks with fixed Huffman codes, made when first needed.
	fixedLit, fixedDist huffman
	lens                [maxLit + maxDist]uint8
}

const (
	maxLit  = 288
	maxDist = 32
	maxBits = 15

	// An entry of a table is value<<16 | extra<<8 | kind | length of the code. 0 is no code.
	kindMask    = 0xf0
	kindLiteral = 0x10
	kindLength  = 0x20 // or a distance
	kindEnd     = 0x30
	kindSub     = 0x40 // value is where the second table begins, extra its bits
	kindBad     = 0x50 // a symbol that may not be used
)

// huffman is a decoding table: one of width bits, and behind it those for longer codes.
type huffman struct {
	tab   []uint32
	width uint
}

// bitReader has the next bits of src in its low end. Bits above n may be there already, and are right.
type bitReader struct {
	b   uint64
	n   uint
	src []byte
	pos int
}

// fill makes at least 56 bits, or all that are left.
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

// take gives k bits, up to 32; ok is false where src ends.
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

// inflate decodes the zlib stream at the beginning of src, which must give exactly len(dst) bytes, and returns its length.
// errShort says that src ended before the stream did.
func (z *flate) inflate(dst, src []byte) (int, error) {
	if len(src) < 2 {
		return 0, errShort
	}
	if h := uint(src[0])<<8 | uint(src[1]); src[0]&0x0f != 8 || src[0]>>4 > 7 || h%31 != 0 || src[1]&0x20 != 0 {
		return 0, corrupt("zlib stream: bad header %04x", h)
	}
	r := bitReader{src: src, pos: 2}
	out := 0
	for last := false; !last; {
		v, ok := r.take(3)
		if !ok {
			return 0, errShort
		}
		last = v&1 != 0
		var err error
		switch v >> 1 {
		case 0:
			out, err = stored(&r, dst, out)
		case 1:
			if z.fixedLit.tab == nil {
				z.fixed()
			}
			out, err = block(&r, dst, out, &z.fixedLit, &z.fixedDist)
		case 2:
			if err = z.dynamic(&r, len(dst)-out); err == nil {
				out, err = block(&r, dst, out, &z.lit, &z.dist)
			}
		default:
			err = corrupt("zlib stream: reserved type of block")
		}
		if err != nil {
			return 0, err
		}
	}
	if out < len(dst) {
		return 0, corrupt("zlib stream gives less than its object's size")
	}
	pos := r.pos - int(r.n>>3)
	if len(src)-pos < 4 {
		return 0, errShort
	}
	if got, want := adler32.Checksum(dst), binary.BigEndian.Uint32(src[pos:]); got != want {
		return 0, corrupt("zlib stream: checksum is %08x and should be %08x", got, want)
	}
	return pos + 4, nil
}

var errMuch = corrupt("zlib stream gives more than its object's size")

func stored(r *bitReader, dst []byte, out int) (int, error) {
	r.pos -= int(r.n >> 3)
	r.b, r.n = 0, 0
	if len(r.src)-r.pos < 4 {
		return 0, errShort
	}
	n := int(binary.LittleEndian.Uint16(r.src[r.pos:]))
	if uint16(n) != ^binary.LittleEndian.Uint16(r.src[r.pos+2:]) {
		return 0, corrupt("zlib stream: bad length of a stored block")
	}
	r.pos += 4
	if n > len(dst)-out {
		return 0, errMuch
	}
	if n > len(r.src)-r.pos {
		return 0, errShort
	}
	copy(dst[out:], r.src[r.pos:r.pos+n])
	r.pos += n
	return out + n, nil
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
	z.fixedLit.build(lens[:maxLit], 9, litSymbol, false)
	for i := range maxDist {
		lens[i] = 5
	}
	z.fixedDist.build(lens[:maxDist], 5, distSymbol, false)
}

// dynamic reads the codes of a block. left is the room for its result: for a small one small tables are made sooner than they pay.
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
	var cl [19]uint8
	for i := range nlen {
		if v, ok = r.take(3); !ok {
			return errShort
		}
		cl[order[i]] = uint8(v)
	}
	// The place of the table of distances serves for the code of the lengths before.
	if !z.dist.build(cl[:], 7, codeSymbol, false) {
		return corrupt("zlib stream: bad code of lengths")
	}
	mask := uint64(1)<<z.dist.width - 1
	for i := 0; i < nlit+ndist; {
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
		if i+rep > nlit+ndist {
			return corrupt("zlib stream: too many lengths")
		}
		for range rep {
			z.lens[i] = val
			i++
		}
	}
	if z.lens[256] == 0 {
		return corrupt("zlib stream: no code ends the block")
	}
	lw, dw := uint(9), uint(7)
	if left > 8<<10 {
		lw, dw = 11, 9
	}
	if !z.lit.build(z.lens[:nlit], lw, litSymbol, true) || !z.dist.build(z.lens[nlit:nlit+ndist], dw, distSymbol, true) {
		return corrupt("zlib stream: bad code")
	}
	return nil
}

// block decodes symbols up to the end of a block.
func block(rd *bitReader, dst []byte, out int, lit, dist *huffman) (int, error) {
	r := *rd
	litTab, distTab := lit.tab, dist.tab
	litMask, distMask := uint64(1)<<lit.width-1, uint64(1)<<dist.width-1
	for {
		// 48 bits hold the longest length and distance with their extra bits.
		if r.n < 48 {
			if len(r.src)-r.pos >= 8 {
				r.b |= binary.LittleEndian.Uint64(r.src[r.pos:]) << r.n
				r.pos += int(63-r.n) >> 3
				r.n |= 56
			} else {
				r.fill()
			}
		}
		e := litTab[r.b&litMask]
		if e&kindMask == kindLiteral {
			// Most often another one follows, and 48 bits suffice for it.
			l := uint(e & 0xf)
			if r.n < l {
				return 0, errShort
			}
			if out >= len(dst) {
				return 0, errMuch
			}
			r.b >>= l
			r.n -= l
			dst[out] = byte(e >> 16)
			out++
			e = litTab[r.b&litMask]
			if l = uint(e & 0xf); e&kindMask == kindLiteral && r.n >= l && out < len(dst) {
				r.b >>= l
				r.n -= l
				dst[out] = byte(e >> 16)
				out++
			}
			continue
		}
		l := uint(e & 0xf)
		if e&kindMask == kindSub {
			if r.n < l {
				return 0, errShort
			}
			r.b >>= l
			r.n -= l
			e = litTab[uint64(e>>16)+r.b&(1<<(e>>8&0xf)-1)]
			l = uint(e & 0xf)
		}
		if r.n < l || e == 0 && r.n < maxBits {
			return 0, errShort
		}
		switch e & kindMask {
		case kindLiteral:
			if out >= len(dst) {
				return 0, errMuch
			}
			r.b >>= l
			r.n -= l
			dst[out] = byte(e >> 16)
			out++
			continue
		case kindEnd:
			r.b >>= l
			r.n -= l
			*rd = r
			return out, nil
		case kindLength:
		default:
			return 0, corrupt("zlib stream: a code that stands for nothing")
		}
		extra := uint(e >> 8 & 0xf)
		if r.n < l+extra {
			return 0, errShort
		}
		n := int(e>>16) + int(r.b>>l&(1<<extra-1))
		r.b >>= l + extra
		r.n -= l + extra

		e = distTab[r.b&distMask]
		l = uint(e & 0xf)
		if e&kindMask == kindSub {
			if r.n < l {
				return 0, errShort
			}
			r.b >>= l
			r.n -= l
			e = distTab[uint64(e>>16)+r.b&(1<<(e>>8&0xf)-1)]
			l = uint(e & 0xf)
		}
		extra = uint(e >> 8 & 0xf)
		if r.n < l+extra || e == 0 && r.n < maxBits {
			return 0, errShort
		}
		if e&kindMask != kindLength {
			return 0, corrupt("zlib stream: a distance that stands for nothing")
		}
		d := int(e>>16) + int(r.b>>l&(1<<extra-1))
		r.b >>= l + extra
		r.n -= l + extra
		if d > out {
			return 0, corrupt("zlib stream: a distance beyond its beginning")
		}
		if n > len(dst)-out {
			return 0, errMuch
		}
		from := out - d
		switch {
		case d >= 8 && len(dst)-out >= n+8:
			// Eight bytes at a time; what is written too much is written over.
			for i := 0; i < n; i += 8 {
				binary.LittleEndian.PutUint64(dst[out+i:], binary.LittleEndian.Uint64(dst[from+i:]))
			}
		case d == 1:
			c := dst[from]
			run := dst[out : out+n]
			for i := range run {
				run[i] = c
			}
		case d >= n:
			copy(dst[out:out+n], dst[from:from+n])
		default:
			for i := range n {
				dst[out+i] = dst[from+i]
			}
		}
		out += n
	}
}
