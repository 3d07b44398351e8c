package memory

import (
	"runtime"
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

var kept []byte

// What the runtime says has the names that are read.
func TestRead(t *testing.T) {
	before := read()
	kept = make([]byte, 32<<20)
	after := read()
	require.GreaterOrEqual(t, after.allocated-before.allocated, uint64(32<<20))
	require.GreaterOrEqual(t, after.dead, uint64(16<<20), "it is new, so no collection has found it in use")
	kept = nil
	runtime.GC()
	require.Greater(t, read().free+read().dead, uint64(0))
}
