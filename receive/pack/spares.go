package pack

import "math/bits"

// spares keeps buffers for reuse: the objects that deltas give come and go by the hundred thousand, and the collector would let as many of them
// lie as are in use. A buffer has one of a few sizes, four between one power of two and the next.
type spares struct {
	free  [spareClasses][][]byte
	bytes int
	most  int // bytes of all
}

const (
	// largestSpare bounds the size of a spare buffer.
	largestSpare = 1 << 20
	leastSpare   = 256
	spareClasses = 4*(20-8) + 1
)

// spareSize is the size of the buffer for n bytes.
func spareSize(n int) int {
	if n <= leastSpare {
		return leastSpare
	}
	step := 1 << (bits.Len(uint(n-1)) - 3)
	return (n + step - 1) &^ (step - 1)
}

// spareClass is the place of buffers of a size that spareSize gave.
func spareClass(size int) int {
	k := bits.Len(uint(size-1)) - 1 // size is above 1<<k, and at most twice as much
	return (k-8)*4 + (size-1-1<<k)>>(k-2) + 1
}

// get is nil where there is none.
func (s *spares) get(n int) []byte {
	size := spareSize(n)
	if size > largestSpare {
		return nil
	}
	list := &s.free[max(0, spareClass(size))]
	k := len(*list) - 1
	if k < 0 {
		return nil
	}
	b := (*list)[k]
	*list = (*list)[:k]
	s.bytes -= cap(b)
	return b
}

// put keeps b if there is room and it has the size of a spare.
func (s *spares) put(b []byte) {
	size := cap(b)
	if size > largestSpare || size < leastSpare || size != spareSize(size) || s.bytes+size > s.most {
		return
	}
	list := &s.free[max(0, spareClass(size))]
	*list = append(*list, b[:0])
	s.bytes += size
}
