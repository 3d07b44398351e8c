package pipeline

import (
	"context"
	"errors"
	"strings"

	"corpus-git/fleet"
	"corpus-git/internal/db"
	"corpus-git/internal/event"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/staged"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/project"
)

// commit moves the branch: the deployment is live.
func (dep *deployment) commit(ctx context.Context) {
	if err := context.Cause(ctx); err != nil {
		dep.fail(ctx, procedures.NameInstall, err)
		return
	}
	ctx = context.WithoutCancel(ctx)
	d := dep.env.Deployment
	verdict := dep.stageVerdict()
	changes, err := dep.changes(ctx)
	var moves staged.Refs
	var fresh bool
	if err == nil {
		moves, fresh, err = dep.stageMoves(ctx, changes)
	}
	if err == nil && fresh {
		err = dep.enter(journal.Entry{Kind: journal.Ready, Changes: changes})
	}
	_ = verdict()
	var covered uint64
	if err == nil {
		// The files that steps wrote are in the page cache: it must be durable before the branch moves. The new values of refs, the
		// verdict, the names of the archive and of what was pushed, and the journal's Ready are made durable with it.
		covered, err = dep.env.SyncWritten()
	}
	if err == nil {
		err = errors.Join(dep.settleNames(covered), moves.Sync(covered))
	}
	if err == nil && fresh {
		err = dep.journal.SyncBut(covered)
	}
	if err == nil {
		err = dep.enter(journal.Entry{Kind: journal.Committing, Changes: changes})
	}
	if err == nil {
		if err = dep.move(ctx, moves, changes); err != nil {
			moves.Abort()
			err = errors.Join(err, dep.revert(ctx, changes))
		}
	}
	if err != nil {
		moves.Abort()
		dep.env.DropVerdict()
		dep.env.Report.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: "the branch could not be moved", Lines: dep.explain(err)})
		dep.fail(ctx, "commit", err)
		return
	}
	dep.res.State, dep.res.Code, dep.res.Pillar = project.Live, d.Code, d.Pillar
	dep.end()
}

// stageVerdict begins to write what the archive says if the deployment succeeds, and returns a function that waits for that. What is not used is removed
// with the deployment's result.
func (dep *deployment) stageVerdict() (wait func() error) {
	if dep.verdict == nil {
		dep.verdict = staged.Together(func() error { dep.env.StageVerdict(); return nil })
	}
	return dep.verdict
}

// changes returns the refs that a successful deployment moves.
func (dep *deployment) changes(ctx context.Context) ([]journal.RefChange, error) {
	d := dep.record().Deployment
	if d.Change.Ref != "" {
		ref, err := dep.p.cfg.Repository(d.Project, d.Repo).Deployed(ctx)
		if err != nil {
			return nil, err
		}
		return []journal.RefChange{{Repo: d.Repo, Change: d.Change, Head: ref == ""}}, nil
	}
	if d.Trigger != project.TriggerRollback && d.Trigger != project.TriggerBundle && d.Trigger != project.TriggerPromote {
		return nil, nil
	}
	var out []journal.RefChange
	for _, x := range []struct {
		repo project.Repo
		new  project.Commit
	}{{project.Code, d.Code}, {project.PillarRepo, d.Pillar}} {
		// A tree from before the first pillar has no pillar: then the branch of the pillar is deleted. HEAD still names it.
		ref, err := dep.p.cfg.Repository(d.Project, x.repo).Head(ctx)
		if err != nil {
			return nil, err
		}
		var old project.Commit
		deployed, err := dep.p.cfg.Repository(d.Project, x.repo).Deployed(ctx)
		if err != nil {
			return nil, err
		}
		first := deployed == "" && d.Branches[x.repo] != ""
		if first {
			ref = d.Branches[x.repo]
		}
		if ref != "" {
			// The current value instead of the recorded one: the branch may have been moved outside the server, and is moved from there.
			if old, err = dep.p.cfg.Repository(d.Project, x.repo).Get(ctx, ref); err != nil {
				return nil, err
			}
		}
		if old == x.new {
			continue
		}
		out = append(out, journal.RefChange{Repo: x.repo, Change: project.Change{Ref: ref, Old: old, New: x.new}, Head: first})
	}
	return out, nil
}

// stageMoves locks and writes the changes of refs that are to be made. fresh reports that none has been made yet: then it shows in the refs whether
// they have moved, which nobody else can do before the locks are released.
func (dep *deployment) stageMoves(ctx context.Context, changes []journal.RefChange) (moves staged.Refs, fresh bool, err error) {
	var list []journal.RefChange
	for _, c := range changes {
		at, err := dep.p.isAt(ctx, dep.rec.Project, c)
		if err != nil {
			return nil, false, err
		}
		if !at {
			list = append(list, c)
		}
	}
	moves, err = dep.stage(ctx, list)
	return moves, len(list) > 0 && len(list) == len(changes), err
}

// isAt reports whether a ref has the value that a change gives it.
func (p *Pipeline) isAt(ctx context.Context, name project.Name, c journal.RefChange) (bool, error) {
	cur, err := p.cfg.Repository(name, c.Repo).Get(ctx, c.Change.Ref)
	return cur == c.Change.New, err
}

// move is apply for staged changes.
func (dep *deployment) move(ctx context.Context, moves staged.Refs, changes []journal.RefChange) error {
	err := moves.Publish()
	if err == nil {
		err = moves.Settle(0)
	}
	for _, c := range changes {
		if err == nil && c.Head {
			err = dep.p.cfg.Repository(dep.rec.Project, c.Repo).SetDeployed(ctx, c.Change.Ref)
		}
	}
	return err
}

// apply moves refs; a ref that already has its new value is skipped, so that apply can be repeated after a crash.
func (dep *deployment) apply(ctx context.Context, changes []journal.RefChange) error {
	for _, c := range changes {
		cur, err := dep.p.cfg.Repository(dep.rec.Project, c.Repo).Get(ctx, c.Change.Ref)
		if err != nil {
			return err
		}
		if cur != c.Change.New {
			if err := dep.p.cfg.Repository(dep.rec.Project, c.Repo).CompareAndSwap(ctx, c.Change); err != nil {
				return err
			}
		}
		if c.Head {
			if err := dep.p.cfg.Repository(dep.rec.Project, c.Repo).SetDeployed(ctx, c.Change.Ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// decide adds a Committing to a journal that ends with a Ready, if a ref has moved since. What the refs have moved to is durable then, but not yet that they have moved.
func (p *Pipeline) decide(ctx context.Context, name project.Name, j *journal.Journal, entries []journal.Entry) ([]journal.Entry, error) {
	last := entries[len(entries)-1]
	if last.Kind != journal.Ready {
		return entries, nil
	}
	for _, c := range last.Changes {
		moved, err := p.isAt(ctx, name, c)
		if err != nil {
			return nil, err
		}
		if moved {
			e := journal.Entry{Kind: journal.Committing, Time: p.cfg.Now(), Deployment: last.Deployment, Changes: last.Changes}
			return append(entries, e), j.Append(e)
		}
	}
	return entries, nil
}

// resumeCommit moves the branch of a deployment that was committing.
func (dep *deployment) resumeCommit(ctx context.Context, changes []journal.RefChange) {
	dep.log.Append(event.Event{Kind: event.Note, Text: "the server stopped while moving the branch; all steps had succeeded, so the branch is moved now"})
	err := dep.apply(ctx, changes)
	if err == nil {
		_, err = dep.env.SyncWritten() // what moved before the crash may not be durable
	}
	if err != nil {
		dep.res.State, dep.res.Reason = project.Failed, "the branch could not be moved: "+texts.Short(err)
		dep.res.Hint = "the new tree is live; push the same commit again"
	} else {
		dep.res.State, dep.res.Kind, dep.res.Code, dep.res.Pillar = project.Live, "", dep.rec.Code, dep.rec.Pillar
	}
	dep.end()
}

// revert undoes what apply moved before it failed: the old tree is restored.
func (dep *deployment) revert(ctx context.Context, changes []journal.RefChange) error {
	var errs []error
	for _, c := range changes {
		cur, err := dep.p.cfg.Repository(dep.rec.Project, c.Repo).Get(ctx, c.Change.Ref)
		if err == nil && cur == c.Change.New && cur != c.Change.Old {
			err = dep.p.cfg.Repository(dep.rec.Project, c.Repo).CompareAndSwap(ctx, project.Change{Ref: c.Change.Ref, Old: c.Change.New, New: c.Change.Old})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// end makes the result final: archive verdict, rotation, journal, notification.
func (dep *deployment) end() {
	ctx := context.Background()
	dep.res.Timings, dep.res.Outputs, dep.res.Tests = dep.env.Timings, dep.env.Outputs(), dep.env.Tests()
	dep.res.End(dep.p.cfg.Now())
	dep.hide(&dep.res)
	dep.p.known.Project(dep.rec.Project).Remember(dep.rec.ID+" outputs", dep.env.SecretOutputs())
	// For a deployment that went live the journal says so already: Ready or Committing is durable, and that the refs have moved.
	dep.soon = dep.res.State == project.Live && !dep.reopened
	if err := dep.enter(journal.Entry{Kind: journal.Ended, Result: &dep.res}); err != nil {
		dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(dep.env.Deployment.ID)).Msg("journal")
	}
	dep.conclude(ctx)
}

// later runs f after the verdict is reported if that is allowed, otherwise now. It is used to make durable what is already visible,
// and what recovery would repeat.
func (dep *deployment) later(f func() error) error {
	if !dep.soon {
		return f()
	}
	dep.rest = append(dep.rest, f)
	return nil
}

// settle runs what was deferred until after the verdict.
func (dep *deployment) settle() {
	if dep.journal != nil && dep.soon {
		dep.rest = append(dep.rest, dep.journal.Sync)
	}
	if dep.soon {
		dep.rest = append(dep.rest, func() error { return db.Flush(context.Background(), dep.p.cfg.DB) })
	}
	dep.rest = append(dep.rest, dep.log.Close)
	for _, f := range dep.rest {
		if err := f(); err != nil {
			dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(dep.rec.ID)).Msg("make durable what a deployment left")
		}
	}
	if dep.journal != nil && !dep.reopened {
		_ = dep.journal.Close()
	}
}

// conclude does what follows the deployment's last journal entry. After a crash before its record is final it is repeated.
func (dep *deployment) conclude(ctx context.Context) {
	dep.ending()
	dep.env.Result = dep.res
	if dep.res.State == project.Live {
		if err := dep.env.EndRollout(fleet.Live); err != nil {
			dep.p.cfg.Logger.Warn().Err(err).Str("deployment", string(dep.rec.ID)).Msg("remove the notes of the rollout")
		}
	}
	dep.moveEnvironment(ctx)
	settle, err := dep.env.RetainSoon(dep.res.State)
	if err = errors.Join(err, dep.later(settle)); err != nil {
		dep.log.Append(event.Event{Kind: event.Note, Text: "old archives were not rotated: " + strings.Join(dep.explain(err), " ")})
	}
	// Pins only keep objects: what is left by a crash is removed by the next start, or after the next deployment.
	_ = dep.later(func() error {
		dep.p.sweepPins(ctx, dep.env.Deployment.Project, dep.env.Deployment.ID)
		return nil
	})
	if err := dep.env.DropUndo(dep.res.State); err != nil {
		dep.p.cfg.Logger.Warn().Err(err).Str("deployment", string(dep.rec.ID)).Msg("remove the undo log")
	}
	if _, skip := dep.env.Prepared.Skips(procedures.NameNotify); !skip {
		if err := dep.env.Override(ctx, procedures.Notify{}); err != nil {
			dep.env.Note("notify: %s", strings.Join(dep.explain(err), " "))
		}
		if _, lines := dep.env.TakeSummary(); len(lines) > 0 {
			dep.env.Note("notify: %s", strings.Join(lines, " "))
		}
	}
}
