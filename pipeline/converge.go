package pipeline

import (
	"context"
	"errors"
	"fmt"

	"corpus-git/fleet"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/project"
)

// converge applies the live release again, or reports what that would change. It deploys nothing: no journal, no archive, no branch. A
// failure is not rolled back, since everything done until then is what the release requires. What it changes outside the trees is
// recorded in its own undo log.
func (dep *deployment) converge(ctx context.Context) {
	d, p := dep.env.Deployment, dep.p
	dep.res = project.Result{Started: p.cfg.Now(), Code: d.LiveCode, Pillar: d.LivePillar}
	if err := dep.mayConverge(ctx); err != nil {
		dep.refuse(err)
		dep.res.Procedure = string(project.TriggerConverge) // nothing is wrong with what is live
		return
	}
	dep.update(func(rec *project.Record) {
		rec.State, rec.Procedure, rec.Since = project.Running, string(project.TriggerConverge), p.cfg.Now()
	})
	enter, what := p.records.Put, "converge to"
	if d.Converge.Mode == project.ConvergeReport {
		enter, what = p.records.Note, "differences from"
	}
	if err := enter(ctx, dep.shown()); err != nil {
		dep.refuse(fault.New(fault.Internal, "record converge", "%w", err))
		return
	}
	dep.log.Append(event.Event{Kind: event.Head, Text: fmt.Sprintf("%s  %s %s  by %s", d.Project, what, d.LiveCode.Short(), d.Pusher.Key)})
	name, err := string(project.TriggerConverge), error(nil)
	switch {
	case dep.env.Prepared.Rollout != nil:
		err = dep.unlessWanted(ctx, dep.convergeNodes)
	case d.Converge.Mode == project.ConvergeReport:
		err = dep.unlessWanted(ctx, func(ctx context.Context) error { return procedures.Drift(ctx, dep.env) })
	default:
		name, err = dep.enforce(ctx)
	}
	dep.res.Timings, dep.res.Changed, dep.res.Drift = dep.env.Timings, dep.env.Changed, dep.env.Drift
	if err != nil {
		var step *procedures.Failure
		if !errors.As(err, &step) && name == string(project.TriggerConverge) {
			dep.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: "failed", Lines: dep.explain(err)})
		}
		dep.res.State = project.Failed
		dep.setFailure(name, err)
		if nodes := (*fleet.Failure)(nil); errors.As(err, &nodes) {
			dep.res.Reason = nodes.Error()
		}
		return
	}
	dep.res.State = project.Done
	switch {
	case dep.res.Changed == 0:
		dep.res.Reason = "no differences from " + d.LiveCode.Short()
	case d.Converge.Mode == project.ConvergeReport:
		dep.res.Reason = humanize.Plural(dep.res.Changed, "difference") + ", nothing was changed"
	default:
		dep.res.Reason = humanize.Plural(dep.res.Changed, "thing") + " changed"
	}
}

// enforce applies the live release, part by part, and names the one that failed.
func (dep *deployment) enforce(ctx context.Context) (failed string, err error) {
	failed = string(project.TriggerConverge)
	if err := dep.env.OpenUndo(); err != nil {
		return failed, fault.New(fault.Internal, "open the undo log", "%w", err)
	}
	defer func() {
		if kerr := dep.env.KeepConverged(); kerr != nil {
			dep.p.cfg.Logger.Error().Err(kerr).Str("deployment", string(dep.rec.ID)).Msg("keep the undo log of a converge")
			err = errors.Join(err, fault.New(fault.Internal, "keep the undo log", "%w", kerr))
		}
	}()
	if err := dep.env.Prepared.Store(ctx, dep.env.Tools, dep.rec.Project); err != nil {
		return failed, err
	}
	if err := dep.env.Edited(ctx, false); err != nil {
		return failed, err
	}
	for _, proc := range []procedures.Procedure{procedures.Sync{}, procedures.Fixperms{Early: true}, procedures.Install{}, procedures.Fixperms{}} {
		if why, skip := dep.env.Prepared.Skips(proc.Name()); skip {
			dep.env.Note("%s skipped: %s", proc.Name(), why)
			continue
		}
		if err := dep.yield(); err != nil {
			return failed, err
		}
		if err := dep.procedure(ctx, dep.env, proc); err != nil {
			return proc.Name(), err
		}
	}
	if dep.env.Changed > 0 {
		if _, err := dep.env.SyncWritten(); err != nil {
			return failed, err
		}
	}
	if _, skip := dep.env.Prepared.Skips(procedures.NameChecks); skip || !dep.env.Prepared.HasChecks(project.OnConverge) {
		return "", nil
	}
	return procedures.NameChecks, dep.unlessWanted(ctx, func(ctx context.Context) error {
		return dep.procedure(ctx, dep.env, procedures.Checks{On: project.OnConverge})
	})
}

// convergeNodes has the project's nodes do the same.
func (dep *deployment) convergeNodes(ctx context.Context) error {
	r, err := dep.nodes(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Nodes.Close() }() // errors of ending unneeded sessions are ignored
	found, err := r.Converge(ctx, dep.env.Deployment.Converge)
	dep.env.Changed, dep.env.Drift = found.Changed, found.Drift
	if _, stopped := endedBy(err); !stopped && fault.KindOf(err) == fault.Busy {
		err = &ended{why: err.Error(), busy: true}
	}
	return err
}

// nodes returns the project's nodes, for what is no rollout. Its Nodes are to be closed.
func (dep *deployment) nodes(ctx context.Context) (*fleet.Rollout, error) {
	known, err := dep.env.Tools.Fleet.Known(ctx)
	if err != nil {
		return nil, err
	}
	r := dep.env.Tools.Fleet.Rollout(dep.env.Deployment, dep.env.Prepared.Rollout, known)
	r.Emit = func(e event.Event) { dep.log.Append(e) }
	return r, nil
}

// mayConverge refuses a project whose branches are not at what is live.
func (dep *deployment) mayConverge(ctx context.Context) error {
	name := dep.env.Deployment.Project
	refused := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Refused, "converge", format, args...)
	}
	if err := dep.yield(); err != nil {
		return err
	}
	dep.p.settling.Lock(name)()
	j, entries, err := dep.p.journals.Open(dep.p.cfg.State.Journal(name.String()))
	if err != nil {
		return fault.New(fault.Internal, "journal", "%w", err)
	}
	_ = j.Close()
	if journal.OpenEnded(entries) {
		return dep.p.recoverLate(ctx, name)
	}
	list, err := dep.p.records.List(ctx, name, maxBack)
	if err != nil {
		return err
	}
	for _, rec := range list {
		switch {
		case rec.Trigger == project.TriggerUndeploy && rec.State == project.Done:
			return refused("%s was undeployed", name).WithHint("corpus-git deploy %s  deploys it again", name)
		case rec.State == project.Live:
			return nil
		case rec.State == project.Failed && rec.Trigger.Deploys():
			return refused("the tree of the failed deployment %s is in place", rec.ID.Short()).WithHint("push again, or  corpus-git rollback %s", name)
		}
	}
	return nil
}

// convergeCutOff ends a converge that a dead server had begun. Its changes stay.
func (dep *deployment) convergeCutOff(ctx context.Context) error {
	d := dep.rec.Deployment
	dep.env = dep.environment(ctx, dep.p.cfg.Tools, Settings{})
	err := dep.env.KeepConverged()
	dep.res = project.Result{
		State: project.Failed, Started: d.At, Kind: fault.Failed.String(), Procedure: string(project.TriggerConverge), Code: d.LiveCode, Pillar: d.LivePillar,
		Reason: "the server stopped while the live release was applied again", Hint: "its changes were kept;  corpus-git converge " + d.Project.String() + "  completes it",
	}
	dep.env = nil
	dep.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: dep.res.Reason})
	dep.finish()
	return err
}

// stepAside tells a converge that another deployment is waiting, so that it ends before the next state.
func (dep *deployment) stepAside() {
	if dep.rec.Trigger == project.TriggerConverge {
		dep.wantedOnce.Do(func() { close(dep.wanted) })
	}
}

// yield returns the error for a converge that should end, nil if it may continue.
func (dep *deployment) yield() error {
	select {
	case <-dep.wanted:
		return &ended{why: "interrupted by another deployment", busy: true}
	default:
		return nil
	}
}

// unlessWanted runs something that changes nothing, and cancels it immediately when a deployment is waiting.
func (dep *deployment) unlessWanted(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-dep.wanted:
			cancel(dep.yield())
		case <-over:
		}
	}()
	return f(ctx)
}

// vanish ends a converge and removes its record.
func (dep *deployment) vanish() {
	p, rec := dep.p, dep.shown()
	texts.Result(dep.log, rec)
	dep.log.End()
	settled := p.settling.Lock(rec.Project)
	p.vanished.Keep(rec)
	p.leave(dep)
	close(dep.ended)
	dep.settle()
	settled()
	if err := p.records.Remove(context.Background(), []string{string(rec.ID)}); err != nil {
		p.cfg.Logger.Error().Err(err).Str("deployment", string(rec.ID)).Msg("remove the record of a converge")
		return
	}
	removeQuietly(p.cfg.State.EventLog(rec.Project.String(), string(rec.ID)))
}
