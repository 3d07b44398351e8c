// Package memory returns memory to the operating system that a burst of work has used and nothing uses now. The runtime does so slowly, and keeps what the heap may
// grow to before the next collection, which on a server that waits comes after minutes. It keeps nothing.
package memory

import (
	"context"
	"runtime"
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
	worth = 8 << 20
	// again is by how much the stacks must have become less in a collection for another one, and most how many there are at a time.
	again = 512 << 10
	most  = 6
)

// use is what the runtime says about the heap, in bytes (https://pkg.go.dev/runtime/metrics).
type use struct {
	// allocated grows with each allocation.
	allocated uint64
	// free is not in use and not returned, dead was in use since the last collection at most.
	free, dead uint64
	// growth is by how much the heap may grow after a collection.
	growth uint64
	// stacks are those of goroutines.
	stacks uint64
}

// grown reports whether a collection is worth its time while nothing runs: a quarter of what starts one was allocated since the last.
func (u use) grown() bool { return u.dead > u.growth/4 }

// Return returns unused memory after each burst of work, until ctx ends.
func Return(ctx context.Context) {
	var b bursts
	for sleep.For(ctx, interval) == nil {
		if b.ended(read()) {
			halve(func() uint64 { return read().stacks }, runtime.GC)
			debug.FreeOSMemory()
			b.returned(read())
		}
	}
}

// Collect collects if the heap has grown by a quarter of what starts a collection. It is called when work has ended and nothing else runs: work that begins later
// then has no collection beside it.
func Collect() {
	if read().grown() {
		runtime.GC()
	}
}

// halve collects until that makes stacks no smaller: a collection only halves the stack of a goroutine that uses less than a quarter of it (runtime, shrinkstack), and a thousand of them may have grown in a burst.
func halve(stacks func() uint64, collect func()) {
	for range most {
		before := stacks()
		if collect(); stacks()+again > before {
			return
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
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/heap/goal:bytes"}}
	metrics.Read(s)
	v := func(i int) uint64 {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return s[i].Value.Uint64()
	}
	u := use{allocated: v(0), free: v(1), stacks: v(4)}
	objects, live, goal := v(2), v(3), v(5)
	if objects > live {
		u.dead = objects - live
	}
	if goal > live {
		u.growth = goal - live
	}
	return u
}
