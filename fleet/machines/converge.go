package machines

import (
	"cmp"
	"context"
	"time"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/remote"
)

// cancelTimeout is how long a node may take to end a converge.
const cancelTimeout = 30 * time.Second

// Converge implements fleet.Nodes.
func (r *machines) Converge(ctx context.Context, n fleet.Node, o fleet.Order, run project.ConvergeRun) (out fleet.Outcome, err error) {
	d := o.Deployment
	free := func() {}
	if run.Mode != project.ConvergeReport {
		if free, err = r.slot(ctx, o.Deployment.Project, n, func() {}); err != nil {
			return out, err
		}
	}
	defer free()
	failed := func(err error) (fleet.Outcome, error) { return out, fault.New(fault.Failed, "", "%w", err) }
	node, err := r.node(ctx, n, o.Deployment.Project)
	if err != nil {
		return failed(err)
	}
	want, err := r.pinned(ctx, o)
	if err != nil {
		return failed(err)
	}
	lease, err := r.lease(ctx)
	if err != nil {
		return failed(err)
	}
	out.Result, err = node.Converge(ctx, remote.ConvergeRequest{Project: d.Project, Deployment: d.ID, Run: run, Lease: lease})
	if cause := context.Cause(ctx); cause != nil && fault.KindOf(cause) != fault.Busy { // a deployment that comes next ends it there by itself
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer cancel()
		if cerr := node.Cancel(end, remote.CancelRequest{Project: d.Project, Deployment: d.ID, Lease: lease}, cancelTimeout, r.lost(n, o)); cerr != nil {
			r.Log.Warn().Err(cerr).Str("node", n.Name).Str("deployment", string(d.ID)).Msg("end a converge")
		}
	}
	switch {
	case err != nil:
		return failed(err)
	case out.Kind == fault.Busy.String():
		return out, fault.New(fault.Busy, "", "%s", cmp.Or(out.Reason, "something else runs there"))
	case out.Code != "" && (out.Code != want.Code || out.Pillar != want.Pillar):
		return out, fault.New(fault.Failed, "", "%s with pillar %s is live there, not %s with its part of the pillar", out.Code.Short(), out.Pillar.Short(), want.Code.Short()).
			WithHint("corpus-git rollout retry %s  or  corpus-git deploy %s", d.Project, d.Project)
	case !out.Good():
		return out, fault.New(fault.Failed, "", "%s", cmp.Or(out.Reason, string(out.State)))
	}
	out.Changed = out.Result.Changed
	return out, nil
}
