package pipeline

import (
	"context"
	"time"

	"corpus-git/project"
)

// newNotification returns a new notification about the deployment. Its ID is the same each time.
func (dep *deployment) newNotification(rec project.Record, event string) project.Notification {
	d := rec.Deployment
	n := project.Notification{
		ID: "deployment_" + string(d.ID) + "_" + event, Event: event, At: dep.p.cfg.Now(), Project: d.Project, Environment: dep.set.Environment, Deployment: &d, Result: rec.Result, By: &d.Pusher,
	}
	if dep.env != nil && dep.env.Prepared != nil {
		n.Environment = dep.env.Prepared.Environment()
	}
	if n.Environment == "" && dep.p.cfg.Tools.Environments != nil {
		n.Environment = dep.p.cfg.Tools.Environments().Default
	}
	return n
}

// notificationsOf returns the notifications for a deployment that has ended.
func (dep *deployment) notificationsOf(rec project.Record) (out []project.Notification) {
	event := project.EventOf(rec)
	if event == "" {
		return nil
	}
	if dep.env != nil && dep.env.Short != nil {
		n := dep.newNotification(rec, project.EventLowSpace)
		n.Space = dep.env.Short
		out = append(out, n)
	}
	out = append(out, dep.newNotification(rec, event))
	if dep.reopened && !dep.continued && rec.State != project.Refused {
		out = append(out, dep.newNotification(rec, project.EventRecovered))
	}
	return out
}

// awaitTurn waits for the deployment's turn, and sends one notification if that takes long.
func (dep *deployment) awaitTurn(ctx context.Context) error {
	var late <-chan time.Time
	after, trigger := dep.p.cfg.QueuedAfter(), dep.record().Trigger
	if after > 0 && trigger != project.TriggerPlan && trigger != project.TriggerCheck && trigger != project.TriggerConverge {
		t := time.NewTimer(after)
		defer t.Stop()
		late = t.C
	}
	for {
		select {
		case <-dep.turn:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			late = nil
			rec := dep.shown()
			if err := dep.p.records.Put(ctx, rec, dep.newNotification(rec, project.EventQueuedTooLong)); err != nil {
				dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(rec.ID)).Msg("record that a deployment has waited for long")
			}
		}
	}
}
