package requests

import (
	"bufio"
	"context"
	"slices"

	"corpus-git/bundle"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/remote"
)

// Trust implements remote.Handler.
func (h Handler) Trust(ctx context.Context, key string) error {
	fp, changed, err := h.Bundles.Trust(ctx, key)
	if !changed && err == nil {
		return nil
	}
	return h.Audited(audit.Entry{Action: "bundle trust", Object: fp}, err)
}

// Untrust implements remote.Handler.
func (h Handler) Untrust(ctx context.Context, key string) error {
	fp, changed, err := h.Bundles.Untrust(ctx, key)
	if !changed && err == nil {
		return nil
	}
	return h.Audited(audit.Entry{Action: "bundle untrust", Object: fp}, err)
}

// Keys implements remote.Handler.
func (h Handler) Keys(_ context.Context, s bundle.Succession) error {
	if h.HubKeys == nil {
		return fault.New(fault.Refused, "", "no agent that dials in runs here")
	}
	return h.Audited(audit.Entry{Action: "hub keys", Object: s.Current, Detail: s.Next}, h.HubKeys(s))
}

// Tips implements remote.Handler.
func (h Handler) Tips(ctx context.Context, name project.Name) (bundle.Tips, error) {
	name, err := project.ParseName(string(name))
	if err != nil {
		return bundle.Tips{}, err
	}
	return h.Bundles.Tips(ctx, name)
}

// Apply implements remote.Handler.
func (h Handler) Apply(ctx context.Context, q remote.ApplyRequest, in *bufio.Reader, send func(remote.Frame) error) error {
	d, _, err := h.Bundles.Take(ctx, in, h.Pusher)
	if err != nil || q.StoreOnly {
		detail := ""
		if q.StoreOnly {
			detail = "stored only"
		}
		return h.Audited(audit.Entry{Action: "bundle apply", Project: string(d.Project), Object: string(d.Code), Detail: detail}, err)
	}
	if d.Trigger == "" {
		return send(remote.Frame{Result: &project.Result{State: project.Done, Reason: NothingToRollBack}})
	}
	if d.Hold = q.Hold && d.Trigger == project.TriggerBundle; d.Hold {
		if err := h.Runs.Supersede(ctx, d.Project, d.ID); err != nil {
			return err
		}
	}
	id, err := h.Runs.Start(ctx, d, nil)
	if err != nil {
		return h.Audited(audit.Entry{Action: "bundle apply", Project: string(d.Project)}, err)
	}
	if d.Hold {
		if ended, err := h.Runs.Held(ctx, id); err != nil || !ended {
			return err
		}
	} else {
		h.Runs.Release(id, d.Exports)
	}
	for e, err := range h.Runs.Follow(ctx, id, q.After) {
		if err != nil {
			return err
		}
		if err := send(remote.Frame{Event: &e}); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return fault.New(fault.Busy, "", "disconnected; deployment %s continues", id.Short())
	}
	res, err := h.Runs.Wait(ctx, id)
	if err != nil {
		return err
	}
	return send(remote.Frame{Result: &res, Exit: h.ExitStatus(res)})
}

// Cancel implements remote.Handler.
func (h Handler) Cancel(ctx context.Context, q remote.CancelRequest) error {
	name, err := project.ParseName(string(q.Project))
	if err != nil {
		return err
	}
	if err := h.Bundles.Fence(ctx, name, q.Lease); err != nil {
		return h.Audited(audit.Entry{Action: "bundle cancel", Project: string(name)}, err)
	}
	queue, err := h.Runs.Queue(ctx, name)
	if err != nil {
		return err
	}
	open := queue.Running != nil && queue.Running.ID == q.Deployment
	for _, rec := range queue.Waiting {
		open = open || rec.ID == q.Deployment
	}
	if !open {
		return nil
	}
	if _, err := h.Runs.Cancel(ctx, name, q.Deployment, h.Pusher); err != nil && fault.KindOf(err) != fault.Refused {
		return err // Refused: it can no longer be cancelled, and ends
	}
	_, err = h.Runs.Wait(ctx, q.Deployment)
	return err
}

// Upgrade implements remote.Handler.
func (h Handler) Upgrade(ctx context.Context, in *bufio.Reader) error {
	if h.Upgrader == nil {
		return fault.New(fault.Refused, "", "no agent that dials in runs here").WithHint("install the other release on the machine")
	}
	return h.Audited(audit.Entry{Action: "agent upgrade"}, h.Upgrader(ctx, in))
}

// Plan implements remote.Handler.
func (h Handler) Plan(ctx context.Context, q remote.PlanRequest) (remote.Planned, error) {
	name, err := project.ParseName(string(q.Project))
	if err != nil {
		return remote.Planned{}, err
	}
	p, err := h.Bundles.Plan(ctx, name, q)
	if err != nil {
		return p, err
	}
	queue, err := h.Runs.Queue(ctx, name)
	if err == nil && queue.Running != nil {
		p.Running = queue.Running.ID
	}
	return p, err
}

// Check implements remote.Handler.
func (h Handler) Check(ctx context.Context, name project.Name) (project.Result, error) {
	name, err := project.ParseName(string(name))
	if err != nil {
		return project.Result{}, err
	}
	id, err := h.Runs.Start(ctx, project.Deployment{Project: name, Trigger: project.TriggerCheck, Pusher: h.Pusher}, nil)
	if err != nil {
		return project.Result{}, err
	}
	return h.Runs.Wait(ctx, id)
}

// Converge implements remote.Handler.
func (h Handler) Converge(ctx context.Context, q remote.ConvergeRequest) (project.Result, error) {
	name, err := project.ParseName(string(q.Project))
	if err != nil {
		return project.Result{}, err
	}
	if !slices.Contains(project.ConvergeModes(), q.Run.Mode) {
		return project.Result{}, fault.New(fault.Refused, "", "%q is not a mode of a converge", string(q.Run.Mode))
	}
	if _, err := project.ParseIDPrefix(string(q.Deployment)); err != nil || len(q.Deployment) != 36 {
		return project.Result{}, fault.New(fault.Refused, "", "%q is not the ID of a deployment", string(q.Deployment))
	}
	if err := h.Bundles.Fence(ctx, name, q.Lease); err != nil {
		return project.Result{}, h.Audited(audit.Entry{Action: "converge", Project: string(name)}, err)
	}
	id, err := h.Runs.Start(ctx, project.Deployment{ID: q.Deployment, Project: name, Trigger: project.TriggerConverge, Converge: q.Run, Pusher: h.Pusher}, nil)
	if fault.KindOf(err) == fault.Busy { // not an error of the connection
		return project.Result{State: project.Refused, Kind: fault.Busy.String(), Reason: err.Error()}, nil
	}
	if err != nil {
		return project.Result{}, err
	}
	return h.Runs.Wait(ctx, id)
}
