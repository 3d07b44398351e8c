package pack

import (
	"math/bits"
)

// litSymbol returns the meaning of a symbol of the code of literals and lengths. Source: RFC 1951, 3.2.5.
func litSymbol(sym int) uint32 {
	switch {
	case sym < 256:
		return uint32(sym)<<16 | kindLiteral
	case sym == 256:
		return kindEnd
	case sym < 265:
		return uint32(sym-254)<<16 | kindLength
	case sym < 285:
		extra := uint32(sym-261) / 4
		return (uint32(4+(sym-261)%4)<<extra+3)<<16 | extra<<8 | kindLength
	case sym == 285:
		return 258<<16 | kindLength
	default:
		return kindBad
	}
}

func distSymbol(sym int) uint32 {
	switch {
	case sym < 4:
		return uint32(sym+1)<<16 | kindLength
	case sym < 30:
		extra := uint32(sym-2) / 2
		return (uint32(2+sym%2)<<extra+1)<<16 | extra<<8 | kindLength
	default:
		return kindBad
	}
}

// symbols are the meanings of the symbols of the three alphabets.
type symbols struct {
	lit  [maxLit]uint32
	dist [maxDist]uint32
	code [maxCode]uint32
}

func newSymbols() *symbols {
	s := &symbols{}
	for i := range s.lit {
		s.lit[i] = litSymbol(i)
	}
	for i := range s.dist {
		s.dist[i] = distSymbol(i)
	}
	for i := range s.code {
		s.code[i] = uint32(i)<<16 | kindLiteral
	}
	return s
}

// build makes the table of a canonical code; symbols holds the meaning of its symbols. As in zlib, an incomplete code is valid only if it
// is empty or has a single code of one bit.
func (h *huffman) build(lens []uint8, width uint, symbols []uint32, single bool) bool {
	var count [maxBits + 1]uint32
	for _, l := range lens {
		count[l&maxBits]++
	}
	longest := uint(maxBits)
	for longest > 0 && count[longest] == 0 {
		longest--
	}
	h.width = width
	if longest == 0 {
		h.reset(1 << width)
		clear(h.tab)
		return single
	}
	width = min(width, longest)
	h.width = width
	left := int32(1)
	var place [maxBits + 1]uint32 // in sorted
	for l := 1; l <= maxBits; l++ {
		place[l] = place[l-1] + count[l-1]
		if left = left<<1 - int32(count[l]); left < 0 {
			return false
		}
	}
	if left > 0 && !(single && longest == 1) {
		return false
	}
	// In the order of their codes: by length, then in input order.
	var sorted [maxLit]uint16
	for sym, l := range lens {
		at := &place[l&maxBits]
		sorted[*at] = uint16(sym)
		*at++
	}
	h.reset(1 << width)
	if left > 0 {
		h.tab[0], h.tab[1] = symbols[sorted[count[0]]]|1, 0
		return true
	}
	h.fill(sorted[count[0]:len(lens)], &count, width, symbols)
	return true
}

// fill makes the table of a complete code from its sorted symbols. Codes are stored bit-reversed in the table, so the next one of the same
// length results from setting its highest clear bit and clearing those above. If longer codes follow, the table so far is doubled.
func (h *huffman) fill(sorted []uint16, count *[maxBits + 1]uint32, width uint, symbols []uint32) {
	code, end := uint32(0), uint32(1) // end is 1 << l
	sub, subBits, prefix := uint32(0), uint(0), ^uint32(0)
	mask := uint32(1)<<width - 1
	for l := uint(1); l <= maxBits; l++ {
		if l <= width {
			copy(h.tab[end:2*end], h.tab[:end])
		}
		end <<= 1
		for n := count[l]; n > 0; n-- {
			e := symbols[sorted[0]]
			sorted = sorted[1:]
			if l <= width {
				h.tab[code] = e | uint32(l)
			} else {
				if code&mask != prefix {
					// A second table holds all codes with this prefix: as many lengths as fill it.
					prefix, sub = code&mask, uint32(len(h.tab))
					subBits = l - width
					for used := n; used < 1<<subBits; used = used<<1 + count[width+subBits] {
						subBits++
					}
					h.grow(1 << subBits)
					h.tab[prefix] = sub<<16 | uint32(subBits)<<8 | kindSub | uint32(width)
				}
				e |= uint32(l - width)
				for at := code >> width; at < 1<<subBits; at += 1 << (l - width) {
					h.tab[sub+at] = e
				}
			}
			if code == end-1 {
				return // the last one
			}
			bit := uint32(1) << ((bits.Len32(code^(end-1)) - 1) & 31)
			code = code&(bit-1) | bit
		}
	}
}

func (h *huffman) reset(n int) {
	if cap(h.tab) < n {
		h.tab = make([]uint32, n, 2*n+512)
	}
	h.tab = h.tab[:n]
}

func (h *huffman) grow(n int) {
	if cap(h.tab)-len(h.tab) < n {
		h.tab = append(h.tab, make([]uint32, n)...)
		return
	}
	h.tab = h.tab[:len(h.tab)+n]
}
