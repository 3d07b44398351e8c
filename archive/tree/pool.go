package tree

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Pool runs tasks that may add tasks. Tasks with a place on the disk run first, in ascending order of places (an elevator), then the
// others, last in first out, which keeps the queue of a walk short. The first error stops it.
type Pool struct {
	ctx     context.Context
	mu      sync.Mutex
	cond    *sync.Cond
	tasks   []func() error
	above   places // at or after the elevator's position
	below   places // for its next pass
	at      uint64
	pending int // queued and running
	err     error
}

// NewPool makes a pool without tasks; its tasks end when ctx does.
func NewPool(ctx context.Context) *Pool {
	p := &Pool{ctx: ctx}
	p.cond = sync.NewCond(&p.mu)
	return p
}

// Add adds a task, from anywhere.
func (p *Pool) Add(task func() error) {
	p.mu.Lock()
	p.tasks = append(p.tasks, task)
	p.pending++
	p.mu.Unlock()
	p.cond.Signal()
}

// addAt adds a task that reads at a place of the disk, for which an inode's number is an estimate.
func (p *Pool) addAt(place uint64, task func() error) {
	p.mu.Lock()
	if place >= p.at {
		heap.Push(&p.above, placed{place, task})
	} else {
		heap.Push(&p.below, placed{place, task})
	}
	p.pending++
	p.mu.Unlock()
	p.cond.Signal()
}

// next returns a task, or nil if there is none.
func (p *Pool) next() (task func() error) {
	if len(p.above) == 0 {
		p.above, p.below = p.below, p.above
	}
	if len(p.above) > 0 {
		first := heap.Pop(&p.above).(placed)
		p.at = first.place
		return first.task
	}
	if n := len(p.tasks) - 1; n >= 0 {
		task, p.tasks = p.tasks[n], p.tasks[:n]
	}
	return task
}

// placed is a task with its place.
type placed struct {
	place uint64
	task  func() error
}

// places is a heap: the lowest place first.
type places []placed

func (h places) Len() int           { return len(h) }
func (h places) Less(i, j int) bool { return h[i].place < h[j].place }
func (h places) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *places) Push(x any)        { *h = append(*h, x.(placed)) }
func (h *places) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = placed{}
	*h = (*h)[:last]
	return x
}

// Run works with n goroutines until no task is left, and returns the first error, including the context's.
func (p *Pool) Run(n int) error { return p.runCold(n, forever) }

// forever is a delay that is never exceeded.
const forever = time.Duration(1<<63 - 1)

// runCold is run that adds three times as many goroutines when it takes longer than delay: then it is waiting for the disk, which is
// fastest with many requests at once. A single goroutine stays single.
func (p *Pool) runCold(n int, delay time.Duration) error {
	var wg sync.WaitGroup
	for range n {
		wg.Go(p.work)
	}
	if n > 1 {
		more := time.AfterFunc(delay, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.pending == 0 || p.err != nil {
				return
			}
			// No goroutine has ended yet, so adding to the group is safe.
			for range 3 * n {
				wg.Go(p.work)
			}
		})
		defer more.Stop()
	}
	wg.Wait()
	if p.err == nil {
		p.err = p.ctx.Err()
	}
	return p.err
}

func (p *Pool) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		task := p.next()
		for task == nil && p.pending > 0 && p.err == nil {
			p.cond.Wait()
			task = p.next()
		}
		if task == nil || p.err != nil {
			p.cond.Broadcast()
			return
		}
		p.mu.Unlock()
		err := p.ctx.Err()
		if err == nil {
			err = task()
		}
		p.mu.Lock()
		p.pending--
		if err != nil && p.err == nil {
			p.err = err
		}
	}
}
