package machines

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"corpus-git/fleet"
	"corpus-git/project"
)

// Hold takes a slot on each node to which the unfinished rollouts of the projects had begun to deploy when the server ended: the node may still do that. It is called before anything is deployed.
// A rollout that goes on has these slots; Unhold gives back what it did not use, and so does holding: few rollouts go on at a time, and must not wait for those behind them.
func (f *Fleet) Hold(projects []project.Name) error {
	if len(projects) == 0 {
		return nil
	}
	all, err := fleet.History(filepath.Dir(f.State.Rollout("x")), "")
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range all {
		if p.Complete() || !slices.Contains(projects, p.Deployment.Project) {
			continue
		}
		for _, n := range p.Nodes {
			if n.State == fleet.Applying {
				f.hold(held{p.Deployment.Project, n.Name})
			}
		}
	}
	time.AfterFunc(holding, func() {
		for _, name := range projects {
			f.Unhold(name)
		}
	})
	return nil
}

// holding limits Hold.
const holding = 2 * time.Minute

// held is a slot that was taken for a project before it was asked for.
type held struct {
	project project.Name
	node    string
}

func (f *Fleet) hold(h held) {
	if f.held == nil {
		f.held = map[held]bool{}
	}
	if !f.held[h] {
		f.held[h] = true
		f.slots()[h.node]++
	}
}

// Unhold gives back the slots that Hold took for a project and that were not used.
func (f *Fleet) Unhold(of project.Name) {
	var nodes []string
	f.mu.Lock()
	for h := range f.held {
		if h.project == of {
			delete(f.held, h)
			nodes = append(nodes, h.node)
		}
	}
	f.mu.Unlock()
	for _, node := range nodes {
		f.leave(node)
	}
}

// slots returns the counts of what is deployed to each node; mu is held.
func (f *Fleet) slots() map[string]int {
	if f.busy == nil {
		f.busy, f.freed = map[string]int{}, make(chan struct{})
	}
	return f.busy
}

// slot waits until fewer projects are deployed to a node than it has slots, and takes one for a project until free is called. waiting is called once if it has to wait. A node for
// which a rollout waits longer, for a signal or a lost connection, keeps its slot.
func (f *Fleet) slot(ctx context.Context, of project.Name, n fleet.Node, waiting func()) (free func(), err error) {
	f.mu.Lock()
	if h := (held{of, n.Name}); f.held[h] {
		delete(f.held, h)
		f.mu.Unlock()
		return func() { f.leave(n.Name) }, nil
	}
	f.mu.Unlock()
	if n.Slots == 0 {
		return func() {}, nil
	}
	for first := true; ; first = false {
		f.mu.Lock()
		if f.slots()[n.Name] < n.Slots {
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
