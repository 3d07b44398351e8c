package pack

import "encoding/binary"

const (
	// fastSrc and fastDst are what blockFast needs before each iteration: two reads of eight bytes, and room for two literals, the longest
	// match, and the excess of copying in steps of 16.
	fastSrc = 16
	fastDst = 2 + 258 + 16
)

// blockFast decodes symbols while src and dst are long enough that no bounds check is needed for each symbol. done reports that the block
// ended. block decodes the rest. The function is long for the same reason as block, and to keep its variables in registers.
func blockFast(rd *bitReader, dst []byte, out int, lit, dist *huffman) (_ int, done bool, err error) {
	// Locals, because the compiler does not keep a struct of this size in registers.
	b, n, src, pos := rd.b, rd.n, rd.src, rd.pos
	litTab, distTab := lit.tab, dist.tab
	litMask, distMask := uint64(1)<<(lit.width&15)-1, uint64(1)<<(dist.width&15)-1
	lastPos, lastOut := len(src)-fastSrc, len(dst)-fastDst
	for pos <= lastPos && out <= lastOut {
		// 56 bits are enough for two literals out of the first table (11 each at most), and a length (20).
		b |= binary.LittleEndian.Uint64(src[pos:]) << (n & 63)
		pos += int(63-n) >> 3
		n |= 56
		e := litTab[b&litMask]
		if e&kindMask == kindLiteral {
			b >>= e & 0xf
			n -= uint(e & 0xf)
			dst[out] = byte(e >> 16)
			out++
			if e = litTab[b&litMask]; e&kindMask == kindLiteral {
				b >>= e & 0xf
				n -= uint(e & 0xf)
				dst[out] = byte(e >> 16)
				out++
				e = litTab[b&litMask]
			}
		}
		if e&kindMask == kindSub {
			b >>= e & 0xf
			n -= uint(e & 0xf)
			e = litTab[uint64(e>>16)+b&(1<<(e>>8&0xf)-1)]
		}
		b >>= e & 0xf
		n -= uint(e & 0xf)
		if e&kindMask == kindLiteral {
			dst[out] = byte(e >> 16)
			out++
			continue
		}
		if e&kindMask != kindLength {
			if done = e&kindMask == kindEnd; !done {
				err = errNoSymbol
			}
			break
		}
		extra := e >> 8 & 0xf
		length := int(e>>16) + int(b&(1<<extra-1))
		b >>= extra
		n -= uint(extra)

		// A distance takes up to 28.
		b |= binary.LittleEndian.Uint64(src[pos:]) << (n & 63)
		pos += int(63-n) >> 3
		n |= 56
		e = distTab[b&distMask]
		if e&kindMask == kindSub {
			b >>= e & 0xf
			n -= uint(e & 0xf)
			e = distTab[uint64(e>>16)+b&(1<<(e>>8&0xf)-1)]
		}
		if e&kindMask != kindLength {
			err = errNoDistance
			break
		}
		b >>= e & 0xf
		extra = e >> 8 & 0xf
		d := int(e>>16) + int(b&(1<<extra-1))
		b >>= extra
		n -= uint(e&0xf + extra)
		from := out - d
		if from < 0 {
			err = errBeyond
			break
		}
		end := out + length
		switch {
		case d >= 16:
			for ; out < end; out, from = out+16, from+16 {
				*(*[16]byte)(dst[out:]) = *(*[16]byte)(dst[from:])
			}
		case d >= 8:
			for ; out < end; out, from = out+8, from+8 {
				*(*[8]byte)(dst[out:]) = *(*[8]byte)(dst[from:])
			}
		default:
			for ; out < end; out, from = out+1, from+1 {
				dst[out] = dst[from]
			}
		}
		out = end
	}
	rd.b, rd.n, rd.pos = b, n, pos
	return out, done, err
}
