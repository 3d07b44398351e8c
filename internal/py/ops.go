package py

import "context"

// Ops performs Python's operations within a budget. A nil *Ops has no limits. An Ops is for one goroutine.
//
// The budget is cumulative: what was once charged is not given back when a value is dropped, so the budget
// bounds the memory that can be alive at any time from above.
type Ops struct {
	ctx   context.Context
	fuel  int64
	bytes int64
	tick  int64
	// Missing, where not nil, is what a field of str.format() is that the value has not; without it that is an error.
	Missing func(v, key any) any
}

// maxDepth bounds how deep containers may nest in str(), ==, sorting and JSON.
const maxDepth = 500

// maxBits bounds integers: beyond it, arithmetic on a hostile number would take seconds.
const maxBits = 1 << 17

// NewOps makes a budget of fuel (steps of work) and bytes (memory of new values); ctx ends it early.
func NewOps(ctx context.Context, fuel, bytes int64) *Ops {
	return &Ops{ctx: ctx, fuel: fuel, bytes: bytes, tick: tickEvery}
}

// tickEvery is the number of steps between two looks at the context.
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
	if o.fuel < 0 {
		return Errorf(LimitError, "too many evaluation steps")
	}
	return nil
}

// stepNanos is about what a step takes.
const stepNanos = 100

// Work charges work that takes about so many nanoseconds.
func (o *Ops) Work(nanos int) error { return o.Step(nanos / stepNanos) }

// Touch charges reading n bytes of a value, about one in a nanosecond.
func (o *Ops) Touch(n int) error { return o.Step(n / stepNanos) }

// Alloc charges n bytes of memory, before they are allocated.
func (o *Ops) Alloc(n int) error {
	if o == nil {
		return nil
	}
	if n < 0 || int64(n) > o.bytes {
		o.bytes = 0
		return Errorf(LimitError, "too much memory for values")
	}
	o.bytes -= int64(n)
	if n > 4096 {
		return o.Step(n >> 6)
	}
	return nil
}

// Context is the context the budget ends with; Background for a nil Ops.
func (o *Ops) Context() context.Context {
	if o == nil || o.ctx == nil {
		return context.Background()
	}
	return o.ctx
}

// itemBytes is what one slot of a list costs, entryBytes one entry of a dict.
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
