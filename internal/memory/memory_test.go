package memory

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBursts(t *testing.T) {
	const mib = 1 << 20
	var b bursts
	require.False(t, b.ended(use{allocated: 30 * mib, free: 20 * mib}), "a start")
	require.False(t, b.ended(use{allocated: 31 * mib, free: 20 * mib}), "no burst")
	require.False(t, b.ended(use{allocated: 300 * mib, free: 20 * mib}), "it goes on")
	require.False(t, b.ended(use{allocated: 301 * mib, free: 2 * mib, dead: 3 * mib}), "little to return")
	require.True(t, b.ended(use{allocated: 302 * mib, free: 8 * mib, dead: 8 * mib}))
	b.returned(use{allocated: 303 * mib})
	require.False(t, b.ended(use{allocated: 304 * mib, free: 100 * mib}), "nothing was done since")
	require.False(t, b.ended(use{allocated: 400 * mib, free: 100 * mib}))
	require.True(t, b.ended(use{allocated: 401 * mib, free: 100 * mib}))
}

func TestGrown(t *testing.T) {
	const mib = 1 << 20
	require.False(t, use{dead: 1 * mib, growth: 4 * mib}.grown(), "a collection is not worth its time")
	require.True(t, use{dead: 1*mib + 1, growth: 4 * mib}.grown())
	require.True(t, use{dead: 1 * mib}.grown(), "the heap is as large as it may be")
	require.False(t, use{}.grown())
}

// A heap that has grown is collected, and then is as after any other collection.
func TestCollect(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // none but those below
	cycles := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	runtime.GC()
	debug.SetGCPercent(1000)
	before := cycles()
	Collect()
	require.Equal(t, before, cycles(), "nothing was made since")
	kept = make([]byte, read().growth/2)
	Collect()
	require.Equal(t, before+1, cycles())
	Collect()
	require.Equal(t, before+1, cycles())
	require.NotEmpty(t, kept)
	kept = nil
}

var kept []byte

// What the runtime says has the names that are read.
func TestRead(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // none but those below
	before := read()
	kept = make([]byte, 32<<20)
	after := read()
	require.GreaterOrEqual(t, after.allocated-before.allocated, uint64(32<<20))
	require.GreaterOrEqual(t, after.dead, uint64(16<<20), "it is new, so no collection has found it in use")
	kept = nil
	runtime.GC()
	require.Greater(t, read().free+read().dead, uint64(0))
}

func TestHalve(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		stacks []uint64 // after each collection
		want   int
	}{
		"small ones":                    {[]uint64{1 * mib, 1 * mib}, 1},
		"grown ones, until nothing is":  {[]uint64{64 * mib, 33 * mib, 17 * mib, 16 * mib, 15*mib + 700<<10}, 4},
		"others grow in the meantime":   {[]uint64{8 * mib, 9 * mib}, 1},
		"it ends though they shrink on": {[]uint64{70 * mib, 60 * mib, 50 * mib, 40 * mib, 30 * mib, 20 * mib, 10 * mib, 1 * mib}, most},
	} {
		t.Run(name, func(t *testing.T) {
			done := 0
			halve(func() uint64 { return c.stacks[done] }, func() { done++ })
			require.Equal(t, c.want, done)
		})
	}
}

// grown uses 512 bytes of the stack for each level.
func grown(levels int) byte {
	var on [512]byte
	on[levels] = 1
	if levels == 0 {
		return on[0]
	}
	return on[levels/2] + grown(levels-1)
}

// Stacks that have grown become small again, and one collection is not enough for that.
func TestHalveStacks(t *testing.T) {
	const n = 400
	var ready sync.WaitGroup
	until := make(chan struct{})
	defer close(until)
	for range n {
		ready.Add(1)
		go func() {
			_ = grown(60)
			ready.Done()
			<-until
		}()
	}
	ready.Wait()
	before := read().stacks
	require.Greater(t, before, uint64(n*30<<10))
	halve(func() uint64 { return read().stacks }, runtime.GC)
	require.Less(t, read().stacks, before/3)
}
