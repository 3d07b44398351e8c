package py

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"
)

// Ops performs Python's operations within a budget. A nil *Ops has no limits. An Ops is for one goroutine.
//
// Memory is charged before it is allocated. When the charges reach the limit, a garbage collection determines what is still in use, and the
// rest is credited; growth of the whole program since the beginning counts, so that the limit holds whatever else the program does.
type Ops struct {
	ctx   context.Context
	fuel  int64
	bytes int64 // left to charge
	rest  int64 // left to charge once the program's memory has been measured, 0 from then on
	most  int64 // the limit of bytes
	base  int64 // bytes that the program had in use when it was first measured
	tick  int64
	// The time that the work may take: since began, except for time spent waiting elsewhere.
	began  time.Time
	limit  time.Duration
	waited time.Duration
	long   []byte // the last long result of Concat
	// Missing, if not nil, is the value of a field of str.format() that the value does not have; without it that is an error.
	Missing func(v, key any) any
}

// maxDepth limits how deep containers may nest in str(), ==, sorting and JSON.
const maxDepth = 500

// maxBits limits integers: beyond it, arithmetic on a hostile number would take seconds.
const maxBits = 1 << 17

// NewOps returns a budget of fuel (steps of work) and bytes (memory of new values); ctx ends it early.
func NewOps(ctx context.Context, fuel, bytes int64) *Ops {
	first := bytes / unmeasured
	return &Ops{ctx: ctx, fuel: fuel, bytes: first, rest: bytes - first, most: bytes, tick: tickEvery}
}

// unmeasured is the part of the memory, one of so many, that is charged before the program's memory is measured: measuring takes longer
// than rendering a line, and most work never charges so much.
const unmeasured = 64

// SetTime limits the time of the work from now on. Time in Wait does not count.
func (o *Ops) SetTime(limit time.Duration) { o.began, o.limit = time.Now(), limit }

// Wait calls a function whose time does not count as work, such as one that runs a program.
func (o *Ops) Wait(fn func() (any, error)) (any, error) {
	if o == nil || o.limit == 0 {
		return fn()
	}
	start := time.Now()
	defer func() { o.waited += time.Since(start) }()
	return fn()
}

// tickEvery is the number of steps between two checks of the context.
const tickEvery = 2048

// Step charges n steps of work.
func (o *Ops) Step(n int) error {
	if o == nil {
		return nil
	}
	o.fuel -= int64(n)
	o.tick -= int64(n)
	if o.tick > 0 && o.fuel >= 0 {
		return nil
	}
	return o.slowStep()
}

func (o *Ops) slowStep() error {
	o.tick = tickEvery
	if o.ctx != nil {
		if err := o.ctx.Err(); err != nil {
			return err
		}
	}
	if o.limit > 0 && time.Since(o.began)-o.waited > o.limit {
		return Errorf(LimitError, "evaluation took longer than %v", o.limit)
	}
	if o.fuel < 0 {
		return Errorf(LimitError, "too many evaluation steps")
	}
	return nil
}

// stepNanos is about how long a step takes.
const stepNanos = 100

// Work charges work that takes about so many nanoseconds.
func (o *Ops) Work(nanos int) error { return o.Step(nanos / stepNanos) }

// Touch charges reading n bytes of a value.
func (o *Ops) Touch(n int) error { return o.Step(n / touched) }

// touched is the number of bytes of a text that an operation on it reads in the time of a step.
const touched = 32

// Called charges a step, and reading the value and the arguments of a filter, a test or a method.
func (o *Ops) Called(v any, args []any) error {
	if err := o.Step(1); err != nil {
		return err
	}
	if err := o.Read(v); err != nil || len(args) == 0 {
		return err
	}
	return o.Read(args...)
}

// Read charges the reading of the texts among the values, as an operation, a filter or a method does with its arguments, by their size.
// Work that takes much longer per byte is charged separately.
func (o *Ops) Read(values ...any) error {
	if o == nil {
		return nil
	}
	n := 0
	for _, v := range values {
		switch x := v.(type) {
		case string:
			n += len(x)
		case StrLike:
			n += len(x.PyStr())
		case Bytes:
			n += len(x)
		}
	}
	if n < touched {
		return nil
	}
	return o.Touch(n)
}

// Alloc charges n bytes of memory, before they are allocated.
func (o *Ops) Alloc(n int) error {
	if o == nil {
		return nil
	}
	if n < 0 || int64(n) > o.bytes {
		if err := o.reclaim(n); err != nil {
			return err
		}
	}
	o.bytes -= int64(n)
	if n > 4096 {
		return o.Step(n / copied)
	}
	return nil
}

// copied is the number of bytes that are written to new memory in the time of a step, collected the steps that a collection takes.
const (
	copied    = 256
	collected = 20_000
)

// reclaim credits what was charged and is no longer in use, so that n bytes can be charged.
func (o *Ops) reclaim(n int) error {
	if o.rest > 0 {
		o.base = inUse()
		o.bytes, o.rest = o.bytes+o.rest, 0
		if n >= 0 && int64(n) <= o.bytes {
			return nil
		}
	}
	if n >= 0 && int64(n) <= o.most {
		if err := o.Step(collected); err != nil {
			return err
		}
		runtime.GC()
		left := o.most - max(inUse()-o.base, 0)
		// With little left, the next collection would come at once.
		if left >= int64(n) && left >= o.most/8 {
			o.bytes = left
			return nil
		}
	}
	o.bytes = 0
	return o.tooMuch()
}

// inUse returns how many bytes of values the last collection found in use.
func inUse() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}

// Context returns the context that the budget ends with; Background for a nil Ops.
func (o *Ops) Context() context.Context {
	if o == nil || o.ctx == nil {
		return context.Background()
	}
	return o.ctx
}

// itemBytes is the cost of one slot of a list, entryBytes that of one entry of a dict.
const (
	itemBytes  = 32
	entryBytes = 128
)

// allocItems charges n list slots.
func (o *Ops) allocItems(n int) error {
	if o == nil {
		return nil
	}
	if n > 1<<40 {
		return o.Alloc(-1)
	}
	if err := o.Alloc(n * itemBytes); err != nil {
		return err
	}
	return o.Step(n)
}
