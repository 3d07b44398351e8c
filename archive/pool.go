package archive

import (
	"context"
	"sync"
	"time"
)

// pool runs tasks that may add tasks, last in first out so that a walk stays narrow. The first error stops it.
type pool struct {
	ctx     context.Context
	mu      sync.Mutex
	cond    *sync.Cond
	tasks   []func() error
	pending int // queued and running
	err     error
}

func newPool(ctx context.Context) *pool {
	p := &pool{ctx: ctx}
	p.cond = sync.NewCond(&p.mu)
	return p
}

func (p *pool) add(task func() error) {
	p.mu.Lock()
	p.tasks = append(p.tasks, task)
	p.pending++
	p.mu.Unlock()
	p.cond.Signal()
}

// run works with n goroutines until nothing is left, and gives the first error, the context's included.
func (p *pool) run(n int) error { return p.runCold(n, forever) }

// forever is longer than any patience.
const forever = time.Duration(1<<63 - 1)

// runCold is run, with three times as many goroutines besides when it takes longer than patience: it waits for the disk then,
// which does best with many questions at once. One goroutine stays one.
func (p *pool) runCold(n int, patience time.Duration) error {
	var wg sync.WaitGroup
	for range n {
		wg.Go(p.work)
	}
	if n > 1 {
		more := time.AfterFunc(patience, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.pending == 0 || p.err != nil {
				return
			}
			// Nobody has gone yet, so the group does not wait in vain.
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

func (p *pool) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.tasks) == 0 && p.pending > 0 && p.err == nil {
			p.cond.Wait()
		}
		if p.pending == 0 || p.err != nil {
			p.cond.Broadcast()
			return
		}
		task := p.tasks[len(p.tasks)-1]
		p.tasks = p.tasks[:len(p.tasks)-1]
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
