package offheap

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

type entry struct {
	_    [20]byte
	at   int32
	kind uint8
}

func TestMake(t *testing.T) {
	for _, n := range []int{0, 1, 100, least / 28, 1 << 20} {
		b := Make[entry](n)
		s := b.Slice()
		require.Len(t, s, n)
		for i := range s {
			if s[i] != (entry{}) {
				t.Fatal("not empty")
			}
			s[i] = entry{at: int32(i), kind: 3}
		}
		for i := range s {
			if s[i] != (entry{at: int32(i), kind: 3}) {
				t.Fatal("not what was written")
			}
		}
		runtime.KeepAlive(b)
		b.Free()
		require.Nil(t, b.Slice())
		b.Free()
	}
	(*Block[int])(nil).Free()
}

// The heap must not grow with what is outside of it, and a block that nobody holds must be freed.
func TestOutsideOfTheHeap(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 64 {
		b := Make[int32](4 << 20)
		b.Slice()[5] = 1
		require.NotNil(t, b.mem)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestPointersAreRefused(t *testing.T) {
	require.Panics(t, func() { Make[*int](1) })
	require.Panics(t, func() { Make[struct{ a []byte }](1) })
	require.Panics(t, func() { Make[[2]string](1) })
	require.NotPanics(t, func() { Make[[2]struct{ a uint16 }](1) })
}
