package pipeline

import (
	"context"
	"time"

	"corpus-git/internal/event"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/project"
)

// forward continues a rollout that the server's death interrupted, if that is possible: nodes have been begun, none was rolled back, and
// everything that it began with is still known. done reports that this ended the deployment. A command that does this instead of a
// server (limit is not 0) does not wait for people: a paused rollout is rolled back.
func (dep *deployment) forward(ctx context.Context, entries []journal.Entry, limit time.Duration) (done bool) {
	p, d := dep.p, dep.rec.Deployment
	if journal.First(entries, journal.Failing) != nil || journal.First(entries, journal.RollingBack) != nil || journal.First(entries, journal.Committing) != nil {
		return false
	}
	begun, paused, err := p.cfg.Tools.RolloutBegun(d.ID)
	if err == nil && (!begun || paused && limit > 0) {
		return false
	}
	for _, s := range d.Set {
		if s.Secret && s.Value == "" {
			dep.log.Append(event.Event{Kind: event.Note, Text: "the value of " + s.Key + " was secret and is not stored: rolling back"})
			return false
		}
	}
	tools, end := p.cfg.Tools.Open()
	defer func() {
		if err := end(); err != nil {
			p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("end the runner of steps")
		}
	}()
	dep.tools = tools
	if err == nil {
		dep.set, err = p.cfg.Settings(ctx, d.Project)
	}
	if err == nil {
		err = dep.recoverPanic("prepare", func() error { return dep.prepare(ctx) })
	}
	if err == nil {
		err = dep.env.OpenUndo()
	}
	if err != nil {
		dep.broken, dep.env = texts.Short(err), nil
		return false
	}
	dep.pinAgain(ctx)
	dep.log.Append(event.Event{Kind: event.Note, Text: "the server stopped " + journal.Place(entries) + "; the rollout continues"})
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.Deadline, &ended{why: "deadline of " + p.cfg.Deadline.String() + " exceeded"})
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case cause := <-dep.stopping:
			stop(cause)
		case <-ctx.Done():
		}
	}()
	dep.res = project.Result{Started: entries[0].Time}
	dep.begun, dep.published, dep.archived = true, true, true
	dep.resume(ctx)
	return true
}

// resume repeats what follows the archive in a rollout. The trees of this machine may not have been durable: they are checked out again.
func (dep *deployment) resume(ctx context.Context) {
	list := []procedures.Procedure{procedures.ReleaseSync{}, procedures.Fixperms{Synced: true}, procedures.Rollout{}, procedures.PostDeploy()}
	if dep.env.Deployment.Trigger == project.TriggerRollback {
		list = []procedures.Procedure{procedures.Restore{}, procedures.Rollout{}}
	}
	for _, proc := range list {
		if _, skip := dep.skipped(proc.Name()); skip {
			continue
		}
		if err := dep.procedure(ctx, dep.env, proc); err != nil {
			dep.fail(ctx, proc.Name(), err)
			return
		}
	}
	dep.commit(ctx)
}
