// Package memory returns memory to the operating system that a burst of work has used and nothing uses now. The runtime does so slowly, and keeps what the heap may
// grow to before the next collection, which on a server that waits comes after minutes. It keeps nothing.
package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"corpus-git/internal/sleep"
)

const (
	// interval is how often the use of memory is looked at.
	interval = 10 * time.Second
	// burst is how much must have been allocated since memory was returned last, quiet how much in an interval is no work any more, and worth
	// how much must be there to return, in bytes: a collection of a small server is not worth its time.
	burst = 64 << 20
	quiet = 16 << 20
	worth = 16 << 20
)

// use is what the runtime says about the heap, in bytes (https://pkg.go.dev/runtime/metrics).
type use struct {
	// allocated grows with each allocation.
	allocated uint64
	// free is not in use and not returned, dead was in use since the last collection at most.
	free, dead uint64
}

// Return returns unused memory after each burst of work, until ctx ends.
func Return(ctx context.Context) {
	var b bursts
	for sleep.For(ctx, interval) == nil {
		if b.ended(read()) {
			debug.FreeOSMemory()
			b.returned(read())
		}
	}
}

// bursts notices the end of a burst.
type bursts struct {
	since, last uint64
}

// ended reports whether there was a burst of work, which is over, and much to return.
func (b *bursts) ended(u use) bool {
	of := u.allocated - b.last
	b.last = u.allocated
	return of <= quiet && u.allocated-b.since >= burst && u.free+u.dead >= worth
}

// returned is called after memory was returned.
func (b *bursts) returned(u use) { b.since, b.last = u.allocated, u.allocated }

func read() use {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	v := func(i int) uint64 {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return s[i].Value.Uint64()
	}
	u := use{allocated: v(0), free: v(1)}
	if objects, live := v(2), v(3); objects > live {
		u.dead = objects - live
	}
	return u
}
