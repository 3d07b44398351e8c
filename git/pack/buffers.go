package pack

import (
	"math/bits"
	"sync"
	"unsafe"

	"corpus-git/internal/offheap"
)

// bufferPool allocates buffers and reuses returned ones: hundreds of thousands of objects come from deltas, and the garbage collector would
// keep as much unused memory as is in use. A buffer has one of a few sizes, four between one power of two and the next. Large ones are
// outside of the heap: they must not be used after put, and none after close.
type bufferPool struct {
	most int // total size of the buffers that are kept

	mu    sync.Mutex
	free  [spareClasses][][]byte
	bytes int
	out   map[*byte]*offheap.Block[byte] // buffers outside of the heap, in use or free
}

const (
	// largestBuffer is the largest size of a spare buffer.
	largestBuffer = 1 << 20
	leastBuffer   = 256
	// leastOutside is the size from which a buffer is outside of the heap.
	leastOutside = 64 << 10
	spareClasses = 4*(20-8) + 1
)

// bufferSize returns the size of the buffer for n bytes.
func bufferSize(n int) int {
	if n <= leastBuffer {
		return leastBuffer
	}
	step := 1 << (bits.Len(uint(n-1)) - 3)
	return (n + step - 1) &^ (step - 1)
}

// bufferClass returns the index of the free list for a size from bufferSize.
func bufferClass(size int) int {
	k := bits.Len(uint(size-1)) - 1 // size is above 1<<k, and at most twice as much
	return (k-8)*4 + (size-1-1<<k)>>(k-2) + 1
}

// buffer returns an empty buffer with capacity for n bytes.
func (s *bufferPool) buffer(n int) []byte {
	size := bufferSize(n)
	if b := s.get(size); b != nil {
		return b
	}
	if size < leastOutside {
		return make([]byte, 0, size)
	}
	block := offheap.Make[byte](size)
	b := block.Slice()[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil {
		s.out = map[*byte]*offheap.Block[byte]{}
	}
	s.out[unsafe.SliceData(b)] = block
	return b
}

// get returns nil if there is none.
func (s *bufferPool) get(size int) []byte {
	if size > largestBuffer {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &s.free[max(0, bufferClass(size))]
	k := len(*list) - 1
	if k < 0 {
		return nil
	}
	b := (*list)[k]
	*list = (*list)[:k]
	s.bytes -= cap(b)
	return b
}

// put returns a buffer to the pool; the caller must not use it any more. It is kept if there is room and it has one of the pool's sizes.
// Other slices are accepted, and nil.
func (s *bufferPool) put(b []byte) {
	size := cap(b)
	if size < leastBuffer || size != bufferSize(size) {
		return
	}
	s.mu.Lock()
	if size <= largestBuffer && s.bytes+size <= s.most {
		list := &s.free[max(0, bufferClass(size))]
		*list = append(*list, b[:0])
		s.bytes += size
		s.mu.Unlock()
		return
	}
	at := unsafe.SliceData(b)
	block := s.out[at]
	delete(s.out, at)
	s.mu.Unlock()
	block.Free()
}

// close frees all memory, including buffers in use.
func (s *bufferPool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, block := range s.out {
		block.Free()
	}
	s.out, s.free, s.bytes = nil, [spareClasses][][]byte{}, 0
}
