package pack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpares(t *testing.T) {
	classes := map[int]int{}
	last := -1
	for n := 0; n <= largestSpare; n += 1 + n/50 {
		size := spareSize(n)
		require.GreaterOrEqual(t, size, n)
		require.LessOrEqual(t, size, max(leastSpare, n+n/4+1), n)
		require.Equal(t, size, spareSize(size), "a size is its own")
		c := max(0, spareClass(size))
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
	s := spares{most: most}
	for range 3 * most / 4096 {
		s.put(make([]byte, 10, 4096))
	}
	require.LessOrEqual(t, s.bytes, most)
	s.put(make([]byte, 0, 4097)) // of no size
	s.put(make([]byte, 0, 2*largestSpare))
	s.put(nil)
	require.Nil(t, s.get(2*largestSpare))
	require.Nil(t, s.get(5000))
	n := 0
	for b := s.get(4000); b != nil; b = s.get(4000) {
		require.Empty(t, b)
		require.GreaterOrEqual(t, cap(b), 4000)
		n++
	}
	require.Equal(t, most/4096, n)
	require.Zero(t, s.bytes)
}
