package fleet

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"corpus-git/internal/event"
)

// present returns the nodes of a stage that are in its batches: all but those that were not ready when the rollout began.
func (p *Progress) present(s PlanStage) (out []Member) {
	for _, m := range s.Nodes {
		if n := p.node(m.Name); n.State != Missing || n.Late {
			out = append(out, m)
		}
	}
	return out
}

// keepBatches makes the batches of a rollout that an earlier release began those that it has counted: with the nodes that were not ready.
func (p *Progress) keepBatches() {
	for i, s := range p.Plan.Stages {
		if p.Stages[i].Of == len(Batches(s, p.present(s))) {
			continue
		}
		for _, m := range s.Nodes {
			p.node(m.Name).Late = p.node(m.Name).State == Missing
		}
	}
}

func (r *Rollout) present(s PlanStage) []Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.p.present(s)
}

// batches returns the batches of a stage. From the beginning of the first one on they stay the same.
func (r *Rollout) batches(s PlanStage) [][]Member { return Batches(s, r.present(s)) }

// reached returns those of a batch that the rollout deploys to.
func (r *Rollout) reached(batch []Member) (out []Member) {
	for _, m := range batch {
		if r.node(m.Name).State != Missing {
			out = append(out, m)
		}
	}
	return out
}

// leaveOut records that nodes are missing, before any stage begins: their places in the batches go to others, and the next stages see what their last deployments wrote.
func (r *Rollout) leaveOut(names, reasons []string) error {
	old, err := r.earlier(names)
	if err != nil {
		return err
	}
	return r.change(func(p *Progress) {
		for i, name := range names {
			p.node(name).State, p.node(name).Reason = Missing, reasons[i]
		}
		for i, s := range p.Plan.Stages {
			p.Stages[i].Of = len(Batches(s, p.present(s)))
		}
		p.Others, r.fixed = append(p.Others, old...), nil
	})
}

// earlier returns the outputs of nodes' last deployments that went live, from the rollouts before this one.
func (r *Rollout) earlier(names []string) ([]NodeProgress, error) {
	before, err := History(filepath.Dir(r.Path), r.Order.Deployment.Project)
	before = slices.DeleteFunc(before, func(p *Progress) bool { return p.Deployment.ID == r.Order.Deployment.ID })
	return others(names, before), err
}

// known returns how a node is reached.
func (r *Rollout) known(name string) Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Known[name]
}

// knowAgain replaces what is known of some nodes.
func (r *Rollout) knowAgain(names []string, known map[string]Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.knowsOwn { // the caller's
		r.Known, r.knowsOwn = maps.Clone(r.Known), true
	}
	for _, name := range names {
		delete(r.Known, name)
	}
	maps.Copy(r.Known, known)
}

// none is not the number of a stage.
const none = -1

// nextBatch returns the k-th batch of a stage without the nodes that were drained or removed since the rollout began. As long as nothing of the stage has begun, their
// places go to the next nodes, so that there is a canary; afterwards the batches stay the same. nil means that no node is left.
func (r *Rollout) nextBatch(ctx context.Context, i, k int, s PlanStage) ([]Member, error) {
	for {
		batches := r.batches(s)
		if k >= len(batches) {
			return nil, nil
		}
		divide := i
		if !r.untouched(i, s) {
			divide = none
		}
		changed, err := r.lookAgain(ctx, batches[k], divide)
		if err != nil || divide == none || !changed {
			return batches[k], err
		}
	}
}

// untouched reports whether nothing of a stage has begun.
func (r *Rollout) untouched(i int, s PlanStage) bool {
	at := r.stage(i)
	return at.Entered == 0 && at.Before == 0 && at.Done == 0 && !slices.ContainsFunc(s.Nodes, func(m Member) bool {
		st := r.node(m.Name).State
		return st != Ready && st != Waiting && st != Missing
	})
}

// lookAgain leaves out those of the given nodes that were drained or removed since the rollout began, unless they have been deployed to. changed reports whether there were any. divide is the
// stage that is then divided into batches again, or none.
func (r *Rollout) lookAgain(ctx context.Context, batch []Member, divide int) (changed bool, err error) {
	if r.Again == nil {
		return false, nil
	}
	names := make([]string, len(batch))
	for i, m := range batch {
		names[i] = m.Name
	}
	known, err := r.Again(ctx, names)
	if err != nil {
		return false, err
	}
	r.knowAgain(names, known)
	var gone, reasons []string
	var told []Member
	for _, m := range batch {
		if st := r.node(m.Name).State; st != Ready && st != Waiting {
			continue
		}
		switch n, ok := known[m.Name]; {
		case !ok:
			gone, reasons = append(gone, m.Name), append(reasons, m.Name+" was removed during the rollout")
		case n.Drained:
			gone, reasons, told = append(gone, m.Name), append(reasons, m.Name+" was drained during the rollout"), append(told, m)
		}
	}
	if len(gone) == 0 {
		return false, nil
	}
	if err := r.Plan.leaderMissing(r.leader(), gone); err != nil {
		return false, &Failure{Stage: r.node(gone[0]).Stage, Reason: err.Error()}
	}
	old, err := r.earlier(gone)
	if err != nil {
		return false, err
	}
	r.Emit(event.Event{Kind: event.Note, Text: "left out: " + Shortened(gone), Lines: reasons})
	err = r.change(func(p *Progress) {
		for i, name := range gone {
			n := p.node(name)
			n.State, n.Late, n.Reason = Missing, divide == none, reasons[i]
		}
		if divide != none {
			s := p.Plan.Stages[divide]
			p.Stages[divide].Of = len(Batches(s, p.present(s)))
		}
		p.Others, r.fixed = append(p.Others, old...), nil
	})
	if err != nil {
		return false, err
	}
	for _, m := range told {
		if _, err := r.Nodes.Back(ctx, known[m.Name], r.order(m)); err != nil {
			r.notTold(m, err)
		}
	}
	return true, context.Cause(ctx)
}

// notTold reports that a node waits for a deployment that will not come: nothing has changed there, and the wait ends by itself.
func (r *Rollout) notTold(m Member, err error) {
	r.Emit(event.Event{Kind: event.Note, Text: fmt.Sprintf("%s was not told that it need not wait: %v", m.Name, err)})
}

// tooMany reports whether more nodes of a stage failed than it allows. Neither a canary may fail, nor the leader, whose steps run nowhere else, nor all nodes of a stage.
func (r *Rollout) tooMany(s PlanStage, batch []Member, canary bool) bool {
	failed := r.failed(s.Nodes)
	r.mu.Lock()
	leader := r.p.Leader
	r.mu.Unlock()
	return len(failed) > s.MaxFailures || canary && len(r.failed(batch)) > 0 || leader != "" && slices.Contains(failed, leader) ||
		len(failed) > 0 && len(failed) == len(r.reached(s.Nodes))
}

// allow accepts that nodes of a batch failed, no more than the stage allows: they keep the old release, and the next stages see what it wrote. One that answered, and has the new release
// although it failed, is rolled back.
func (r *Rollout) allow(ctx context.Context, batch []Member) error {
	failed := r.failed(batch)
	if len(failed) == 0 {
		return nil
	}
	old, err := r.earlier(failed)
	if err != nil {
		return err
	}
	returned := map[string]bool{}
	for _, m := range batch {
		if n := r.node(m.Name); n.State != NodeFailed || !n.Strays {
			continue
		}
		o := r.order(m)
		o.Run = max(r.node(m.Name).Run, 1)
		what, err := r.Nodes.Back(ctx, r.known(m.Name), o)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			r.Emit(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Text: fmt.Sprintf("%s was not rolled back: %v", m.Name, err)})
			continue
		}
		returned[m.Name] = true
		r.Emit(event.Event{Kind: event.Note, Text: m.Name + " " + what})
	}
	return r.change(func(p *Progress) {
		for name := range returned {
			p.node(name).Strays, p.node(name).Touched = false, false
		}
		for _, n := range old {
			if !slices.ContainsFunc(p.Others, func(o NodeProgress) bool { return o.Name == n.Name }) {
				p.Others, r.fixed = append(p.Others, n), nil
			}
		}
	})
}
