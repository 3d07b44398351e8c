package pack

import (
	"math/bits"
)

// symbol tables: what a code stands for.
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

func codeSymbol(sym int) uint32 { return uint32(sym)<<16 | kindLiteral }

// build makes the table of a canonical code. An incomplete code is taken only where it is none at all or a single one of one bit, as zlib does.
func (h *huffman) build(lens []uint8, width uint, symbol func(int) uint32, single bool) bool {
	var count [maxBits + 1]int
	for _, l := range lens {
		count[l]++
	}
	longest := maxBits
	for longest > 0 && count[longest] == 0 {
		longest--
	}
	h.width = width
	if longest == 0 {
		h.reset(1 << width)
		return single
	}
	if uint(longest) < width {
		width = uint(longest)
		h.width = width
	}
	left := 1
	var next [maxBits + 2]int // first the code, then the place in sorted
	for l := 1; l <= maxBits; l++ {
		left = left<<1 - count[l]
		if left < 0 {
			return false
		}
	}
	if left > 0 && !(single && longest == 1) {
		return false
	}
	for l := 1; l <= maxBits; l++ {
		next[l+1] = (next[l] + count[l]) << 1
	}
	h.reset(1 << width)
	mask := uint32(1)<<width - 1
	if uint(longest) > width {
		// How long the codes behind each beginning are decides the size of its second table.
		codes := next
		for _, l := range lens {
			if l == 0 {
				continue
			}
			code := codes[l]
			codes[l]++
			if uint(l) > width {
				p := uint32(bits.Reverse16(uint16(code))>>(16-l)) & mask
				if e := h.tab[p]; uint32(l) > e {
					h.tab[p] = uint32(l)
				}
			}
		}
		for p := range uint32(1) << width {
			if l := h.tab[p]; l > 0 {
				extra := l - uint32(width)
				h.tab[p] = uint32(len(h.tab))<<16 | extra<<8 | kindSub | uint32(width)
				n := len(h.tab)
				h.grow(1 << extra)
				clear(h.tab[n:])
			}
		}
	}
	for sym, l := range lens {
		if l == 0 {
			continue
		}
		code := next[l]
		next[l]++
		e := symbol(sym)
		rev := uint32(bits.Reverse16(uint16(code)) >> (16 - l))
		if uint(l) <= width {
			e |= uint32(l)
			for at := rev; at <= mask; at += 1 << l {
				h.tab[at] = e
			}
			continue
		}
		sub := h.tab[rev&mask]
		e |= uint32(l) - uint32(width)
		for at := rev >> width; at < 1<<(sub>>8&0xff); at += 1 << (uint(l) - width) {
			h.tab[sub>>16+at] = e
		}
	}
	return true
}

func (h *huffman) reset(n int) {
	if cap(h.tab) < n {
		h.tab = make([]uint32, n, 2*n+512)
	}
	h.tab = h.tab[:n]
	clear(h.tab)
}

func (h *huffman) grow(n int) {
	if cap(h.tab)-len(h.tab) < n {
		h.tab = append(h.tab, make([]uint32, n)...)
		return
	}
	h.tab = h.tab[:len(h.tab)+n]
}
