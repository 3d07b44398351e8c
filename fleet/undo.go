package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
)

// Undone is what Undo did not undo.
type Undone struct {
	// Left are the nodes that could not be rolled back, Keeps those that keep the new release because of on_failure.
	Left, Keeps []string
	// By is what keeps them.
	By string
	// Steps are the failures of steps on the hub after a batch.
	Steps []string
}

// String says what was not undone, in one line; "" if all was.
func (u Undone) String() string {
	out := slices.Clone(u.Steps)
	if len(u.Left) > 0 {
		out = append(out, "not rolled back: "+strings.Join(u.Left, ", "))
	}
	if len(u.Keeps) > 0 {
		out = append(out, "kept by "+u.By+": "+strings.Join(u.Keeps, ", "))
	}
	return strings.Join(out, ", and ")
}

// Undo rolls back a failed rollout as configured by on_failure, or as halt does if its nodes stay, the last stage first. A rollout without a file never began. It can be run again.
func (r *Rollout) Undo(ctx context.Context, stay bool) (u Undone, err error) {
	p, ok, err := ReadProgress(r.Path)
	if err != nil || !ok || p.State == Live || p.State == RolledBack || p.State == Halted {
		return u, err
	}
	p.keepBatches()
	if u.By = "on_failure"; stay {
		u.By = "no rollback"
	}
	if r.p == nil {
		r.unsure = map[string]bool{}
		for _, n := range p.Nodes {
			r.unsure[n.Name] = n.State == Waiting // a dead server may have sent it the order
		}
	}
	r.mu.Lock()
	r.p, r.fixed, r.Plan = p, nil, p.Plan
	r.mu.Unlock()
	set := r.Order.Deployment.Set
	r.Order.Deployment = p.Deployment
	r.Order.Deployment.Set = set
	if err := r.change(func(p *Progress) { p.State, p.Paused = RollingBack, false }); err != nil {
		return u, err
	}
	for i := len(p.Stages) - 1; i >= 0; i-- {
		s := p.Plan.Stages[i]
		stays := stay || p.Plan.OnFailure == Halt || p.Plan.OnFailure == OnlyStage && p.Stages[i].Done >= p.Stages[i].Of
		bad, kept, err := r.undoStage(ctx, s, stays)
		u.Left, u.Keeps = append(u.Left, bad...), append(u.Keeps, kept...)
		if err != nil {
			return u, err
		}
		if err := r.restoreStage(ctx, i, s); err != nil {
			u.Steps = append(u.Steps, err.Error())
		}
	}
	state := RolledBack
	switch {
	case len(u.Left)+len(u.Steps) > 0:
		state = Incomplete
	case len(u.Keeps) > 0:
		state = Halted
	}
	return u, Conclude(r.FS, r.Path, state, r.Now())
}

// undoStage rolls back the nodes of a stage, or, if they stay, ends deployments that are only waiting there.
func (r *Rollout) undoStage(ctx context.Context, s PlanStage, stays bool) (left, keeps []string, err error) {
	var todo []Member
	for _, m := range slices.Backward(s.Nodes) {
		n := r.node(m.Name)
		touched := n.State == NodeLive || n.State == Applying || n.State == NodeFailed && n.Touched
		switch {
		case touched && stays:
			keeps = append(keeps, m.Name)
		case touched, n.waits(r.unsure):
			todo = append(todo, m)
		}
	}
	errs, bad := make([]error, len(todo)), make([]bool, len(todo))
	together(len(todo), maxAtOnce, func(i int) { bad[i], errs[i] = r.back(ctx, todo[i]) })
	for i, m := range todo {
		if bad[i] {
			left = append(left, m.Name)
		}
		if errs[i] != nil {
			return left, keeps, errs[i]
		}
	}
	return left, keeps, nil
}

// waits reports whether a node has, or may have, a deployment that is waiting for the order to continue.
func (n *NodeProgress) waits(unsure map[string]bool) bool {
	return n.State == Ready || n.State == Waiting && unsure[n.Name]
}

// back rolls back one node. bad reports that it failed; the error is about the progress.
func (r *Rollout) back(ctx context.Context, m Member) (bad bool, err error) {
	begun := r.Now()
	n := r.node(m.Name)
	node := r.known(m.Name)
	what, berr := "", error(fault.New(fault.Refused, "", "the server knows no node of that name any more"))
	if node.Name != "" {
		o := r.order(m)
		o.Run = max(n.Run, 1)
		what, berr = r.Nodes.Back(ctx, node, o)
	}
	took := humanize.Seconds(r.Now().Sub(begun))
	switch {
	case berr != nil && n.waits(r.unsure):
		r.notTold(m, berr)
	case berr != nil:
		r.Emit(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Text: fmt.Sprintf("%s was not rolled back: %v", m.Name, berr)})
		return true, nil
	case !n.waits(r.unsure):
		r.Emit(event.Event{Kind: event.Note, Text: fmt.Sprintf("%s %s in %s", m.Name, what, took)})
	}
	return false, r.change(func(p *Progress) { p.node(m.Name).State = NodeBack })
}

// restoreStage runs the steps after a batch whose steps before it have begun, for example to put nodes back into a load balancer. The error, of a step that
// failed, has been reported.
func (r *Rollout) restoreStage(ctx context.Context, i int, s PlanStage) error {
	at, batches := r.stage(i), r.batches(s)
	if max(at.Entered, at.Before) <= at.Done || at.Done >= len(batches) || len(s.After) == 0 || r.Hub == nil {
		return nil
	}
	about := Batch{Stage: s.Name, Nodes: r.reached(batches[at.Done])}
	err := r.steps(ctx, s.After, about)
	if err != nil {
		err = fmt.Errorf("%w (for %s)", err, Shortened(Names(about.Nodes)))
		r.Emit(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Text: err.Error()})
	}
	return err
}
