package pack

import "encoding/binary"

// block decodes symbols up to the end of a block. If src ends before, rd is left before the first incomplete symbol.
//
// It is long because it is the inner loop of reading a pack: a function call for each symbol would cost more than decoding it.
func block(rd *bitReader, dst []byte, out int, lit, dist *huffman) (int, error) {
	if len(rd.src)-rd.pos >= fastSrc && len(dst)-out >= fastDst {
		var done bool
		var err error
		if out, done, err = blockFast(rd, dst, out, lit, dist); done || err != nil {
			return out, err
		}
	}
	r, begin := *rd, *rd
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
				begin = r // with fewer bits the loop continues here
			}
		}
		e := litTab[r.b&litMask]
		if e&kindMask == kindLiteral {
			// Most often a literal follows, for which 48 bits suffice.
			l := uint(e & 0xf)
			if r.n < l {
				*rd = begin
				return out, errShort
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
				*rd = begin
				return out, errShort
			}
			r.b >>= l
			r.n -= l
			e = litTab[uint64(e>>16)+r.b&(1<<(e>>8&0xf)-1)]
			l = uint(e & 0xf)
		}
		if r.n < l || e == 0 && r.n < maxBits {
			*rd = begin
			return out, errShort
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
			return 0, errNoSymbol
		}
		extra := uint(e >> 8 & 0xf)
		if r.n < l+extra {
			*rd = begin
			return out, errShort
		}
		n := int(e>>16) + int(r.b>>l&(1<<extra-1))
		r.b >>= l + extra
		r.n -= l + extra

		e = distTab[r.b&distMask]
		l = uint(e & 0xf)
		if e&kindMask == kindSub {
			if r.n < l {
				*rd = begin
				return out, errShort
			}
			r.b >>= l
			r.n -= l
			e = distTab[uint64(e>>16)+r.b&(1<<(e>>8&0xf)-1)]
			l = uint(e & 0xf)
		}
		extra = uint(e >> 8 & 0xf)
		if r.n < l+extra || e == 0 && r.n < maxBits {
			*rd = begin
			return out, errShort
		}
		if e&kindMask != kindLength {
			return 0, errNoDistance
		}
		d := int(e>>16) + int(r.b>>l&(1<<extra-1))
		r.b >>= l + extra
		r.n -= l + extra
		if d > out {
			return 0, errBeyond
		}
		if n > len(dst)-out {
			return 0, errMuch
		}
		from := out - d
		switch {
		case d >= 8 && len(dst)-out >= n+8:
			// Eight bytes at a time; the excess is overwritten later.
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
