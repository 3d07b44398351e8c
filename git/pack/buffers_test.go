package pack

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestSpares(t *testing.T) {
	classes := map[int]int{}
	last := -1
	for n := 0; n <= largestBuffer; n += 1 + n/50 {
		size := bufferSize(n)
		require.GreaterOrEqual(t, size, n)
		require.LessOrEqual(t, size, max(leastBuffer, n+n/4+1), n)
		require.Equal(t, size, bufferSize(size), "a size is its own")
		c := max(0, bufferClass(size))
		require.Less(t, c, spareClasses)
		require.GreaterOrEqual(t, c, last, "larger ones come later")
		last = c
		if before, ok := classes[c]; ok {
			require.Equal(t, before, size, "one size for each place")
		}
		classes[c] = size
	}
	require.Greater(t, len(classes), 40)

	const most = 4 << 20
	s := bufferPool{most: most}
	for range 3 * most / 4096 {
		s.put(make([]byte, 10, 4096))
	}
	require.LessOrEqual(t, s.bytes, most)
	s.put(make([]byte, 0, 4097)) // not of one of the sizes
	s.put(make([]byte, 0, 2*largestBuffer))
	s.put(nil)
	require.Nil(t, s.get(2*largestBuffer))
	require.Nil(t, s.get(bufferSize(5000)))
	n := 0
	for b := s.get(bufferSize(4000)); b != nil; b = s.get(bufferSize(4000)) {
		require.Empty(t, b)
		require.GreaterOrEqual(t, cap(b), 4000)
		n++
	}
	require.Equal(t, most/4096, n)
	require.Zero(t, s.bytes)
}

// Large buffers are outside of the heap, are reused, and are returned to the system as soon as they are released.
func TestSparesOutside(t *testing.T) {
	s := bufferPool{most: 256 << 10}
	for _, n := range []int{0, 1, leastOutside - 1, leastOutside, 100_000, largestBuffer, largestBuffer + 1, 5 << 20} {
		b := s.buffer(n)
		require.Empty(t, b)
		require.GreaterOrEqual(t, cap(b), n)
		b = b[:n]
		for i := range b {
			b[i] = byte(i)
		}
		at := unsafe.SliceData(b)
		_, outside := s.out[at]
		require.Equal(t, bufferSize(n) >= leastOutside, outside, n)
		s.put(b)
		_, kept := s.out[at]
		if n > 256<<10 {
			require.False(t, kept, "too large to be kept, and given back")
		}
		require.LessOrEqual(t, s.bytes, s.most)
	}
	b := s.buffer(100_000)
	s.put(b)
	require.Equal(t, unsafe.SliceData(b), unsafe.SliceData(s.buffer(99_000)), "used again")

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 200 {
		s.put(s.buffer(4 << 20))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))

	held := s.buffer(1 << 20)
	require.NotNil(t, held)
	s.close()
	require.Empty(t, s.out)
	require.Zero(t, s.bytes)
	require.Nil(t, s.get(bufferSize(100_000)))
	s.close()
}
