package machines

import (
	"context"

	"corpus-git/fleet"
)

// slot waits until fewer projects are deployed to a node than it has slots, and takes one until free is called. waiting is called once if it has to wait. A node for
// which a rollout waits longer, for a signal or a lost connection, keeps its slot.
func (f *Fleet) slot(ctx context.Context, n fleet.Node, waiting func()) (free func(), err error) {
	if n.Slots == 0 {
		return func() {}, nil
	}
	for first := true; ; first = false {
		f.mu.Lock()
		if f.busy == nil {
			f.busy, f.freed = map[string]int{}, make(chan struct{})
		}
		if f.busy[n.Name] < n.Slots {
			f.busy[n.Name]++
			f.mu.Unlock()
			return func() { f.leave(n.Name) }, nil
		}
		freed := f.freed
		f.mu.Unlock()
		if first {
			waiting()
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// leave gives a slot back.
func (f *Fleet) leave(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[node]--; f.busy[node] == 0 {
		delete(f.busy, node)
	}
	close(f.freed)
	f.freed = make(chan struct{})
}
