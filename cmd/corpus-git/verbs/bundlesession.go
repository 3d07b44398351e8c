package verbs

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	"corpus-git/bundle"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/remote"
)

// nothingBefore is said of a bundle that takes a deployment back which is not the last that went live.
const nothingBefore = "nothing to roll back: the deployment is not what went live last"

func bundleSession(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "session", Short: "Answer the requests of another corpus-git on standard input", Hidden: true, Args: exactly(),
		Annotations: map[string]string{ReadsStdin: "yes", Creates: "yes"},
		RunE: func(*cobra.Command, []string) error {
			if err := s.local("bundle session", ""); err != nil {
				return err
			}
			if err := s.prepare(); err != nil {
				return err
			}
			return remote.Serve(s.ctx, s.in, s.out, s.b.Hello(), requests{s})
		},
	}
}

// requests implements remote.Handler as the verbs do.
type requests struct{ *session }

// Trust implements remote.Handler.
func (r requests) Trust(ctx context.Context, key string) error {
	fp, changed, err := r.b.Bundles.Trust(ctx, key)
	if !changed && err == nil {
		return nil
	}
	return r.audited(audit.Entry{Action: "bundle trust", Object: fp}, err)
}

// Tips implements remote.Handler.
func (r requests) Tips(ctx context.Context, name project.Name) (bundle.Tips, error) {
	name, err := project.ParseName(string(name))
	if err != nil {
		return bundle.Tips{}, err
	}
	return r.b.Bundles.Tips(ctx, name)
}

// Apply implements remote.Handler.
func (r requests) Apply(ctx context.Context, q remote.ApplyRequest, in *bufio.Reader, send func(remote.Frame) error) error {
	d, _, err := r.b.Bundles.Take(ctx, in, r.who.Pusher())
	if err != nil || q.StoreOnly {
		detail := ""
		if q.StoreOnly {
			detail = "stored only"
		}
		return r.audited(audit.Entry{Action: "bundle apply", Project: string(d.Project), Object: string(d.Code), Detail: detail}, err)
	}
	if d.Trigger == "" {
		return send(remote.Frame{Result: &project.Result{State: project.Done, Reason: nothingBefore}})
	}
	d.Hold = q.Hold && d.Trigger == project.TriggerBundle
	id, err := r.b.Runs.Start(ctx, d, nil)
	if err != nil {
		return r.audited(audit.Entry{Action: "bundle apply", Project: string(d.Project)}, err)
	}
	if d.Hold {
		if ended, err := r.b.Runs.Held(ctx, id); err != nil || !ended {
			return err
		}
	} else {
		r.b.Runs.Release(id, d.Exports)
	}
	for e, err := range r.b.Runs.Follow(ctx, id, q.After) {
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
	res, err := r.b.Runs.Wait(ctx, id)
	if err != nil {
		return err
	}
	return send(remote.Frame{Result: &res, Exit: exitOf(res)})
}

// Cancel implements remote.Handler.
func (r requests) Cancel(ctx context.Context, q remote.CancelRequest) error {
	name, err := project.ParseName(string(q.Project))
	if err != nil {
		return err
	}
	if err := r.b.Bundles.Fence(ctx, name, q.Lease); err != nil {
		return r.audited(audit.Entry{Action: "bundle cancel", Project: string(name)}, err)
	}
	queue, err := r.b.Runs.Queue(ctx, name)
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
	if _, err := r.b.Runs.Cancel(ctx, name, q.Deployment, r.who.Pusher()); err != nil && fault.KindOf(err) != fault.Refused {
		return err // Refused: it can no longer be cancelled, and ends
	}
	_, err = r.b.Runs.Wait(ctx, q.Deployment)
	return err
}

// Upgrade implements remote.Handler.
func (r requests) Upgrade(ctx context.Context, in *bufio.Reader) error {
	if r.b.Upgrade == nil {
		return fault.New(fault.Refused, "", "no agent that dials in runs here").WithHint("install the other release on the machine")
	}
	return r.audited(audit.Entry{Action: "agent upgrade"}, r.b.Upgrade(ctx, in))
}

// Check implements remote.Handler.
func (r requests) Check(ctx context.Context, name project.Name) (project.Result, error) {
	name, err := project.ParseName(string(name))
	if err != nil {
		return project.Result{}, err
	}
	id, err := r.b.Runs.Start(ctx, project.Deployment{Project: name, Trigger: project.TriggerCheck, Pusher: r.who.Pusher()}, nil)
	if err != nil {
		return project.Result{}, err
	}
	return r.b.Runs.Wait(ctx, id)
}
