package machines

import (
	"context"
	"errors"

	"corpus-git/fleet"
	"corpus-git/remote"
)

// Look implements fleet.Nodes.
func (r *machines) Look(ctx context.Context, n fleet.Node, o fleet.Order, brings fleet.Brings) (out fleet.Looked, err error) {
	node := r.reach(n)
	if !n.Agent {
		if node.Release, err = r.release(); err != nil {
			return out, err
		}
	}
	absent, err := node.Look(ctx)
	if err != nil {
		return out, err
	}
	defer func() { _ = node.Keep() }() // as Close does
	if absent != "" {
		out.Unasked = "it does not have " + absent
		return out, nil
	}
	out.Release = node.Hello.Release
	r.Fleet.mu.Lock()
	lease := r.leased
	r.Fleet.mu.Unlock()
	d := o.Deployment
	q := remote.PlanRequest{Project: d.Project, Live: d.LiveCode, Lease: lease}
	for range 2 { // again if another commit is live there
		what, err := brings(ctx, q.Live)
		if err != nil {
			return out, err
		}
		q.Bytes, q.Files = what.Bytes, what.Files
		p, err := node.Plan(ctx, q)
		if errors.Is(err, remote.ErrNotAsked) {
			out.Unasked = err.Error()
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out.Live, out.Notes = p.Live, notes(p)
		if p.Live == q.Live {
			break
		}
		q.Live = p.Live
	}
	return out, nil
}

// notes are what a deployment would do first.
func notes(p remote.Planned) (lines []string) {
	if p.Note != "" {
		lines = append(lines, p.Note)
	}
	if p.Running != "" {
		lines = append(lines, "deployment "+p.Running.Short()+" runs there: it waits for that one, or replaces it if it only waits for a hub")
	}
	return lines
}
