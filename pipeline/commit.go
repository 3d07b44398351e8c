package pipeline

import (
	"context"
	"errors"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/procedures"
	"corpus-git/project"
)

// commit moves the branch: the deployment is live.
func (p *Pipeline) commit(ctx context.Context, r *run, env *procedures.Env, j *Journal, res project.Result, archived bool) project.Result {
	if err := context.Cause(ctx); err != nil {
		return p.fail(ctx, r, env, j, res, procedures.NameInstall, err, archived)
	}
	ctx = context.WithoutCancel(ctx)
	d := env.Deployment
	changes, err := p.changes(ctx, d)
	if err == nil {
		// What steps wrote is in the page cache: it must be on the disk before the branch says that it is live.
		err = env.Settle()
	}
	if err == nil {
		err = p.journal(j, Entry{Kind: Committing, Deployment: d.ID, Changes: changes})
	}
	if err == nil {
		if err = p.apply(ctx, d.Project, changes); err != nil {
			err = errors.Join(err, p.revert(ctx, d.Project, changes))
		}
	}
	if err != nil {
		env.Report.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: "the branch could not be moved", Lines: p.explain(d, err)})
		return p.fail(ctx, r, env, j, res, "commit", err, archived)
	}
	res.State, res.Code, res.Pillar = project.Live, d.Code, d.Pillar
	p.end(r, env, j, &res)
	return res
}

// changes are the refs that a successful deployment moves.
func (p *Pipeline) changes(ctx context.Context, d project.Deployment) ([]RefChange, error) {
	if d.Change.Ref != "" {
		ref, err := p.cfg.Repository(d.Project, d.Repo).Deployed(ctx)
		if err != nil {
			return nil, err
		}
		return []RefChange{{Repo: d.Repo, Change: d.Change, Head: ref == ""}}, nil
	}
	if d.Trigger != project.TriggerRollback {
		return nil, nil
	}
	var out []RefChange
	for _, x := range []struct {
		repo project.Repo
		new  project.Commit
	}{{project.Code, d.Code}, {project.PillarRepo, d.Pillar}} {
		// A tree from before the first pillar has none: then its branch goes. HEAD still names it, for when it comes back.
		ref, err := p.cfg.Repository(d.Project, x.repo).Head(ctx)
		if err != nil {
			return nil, err
		}
		var old project.Commit
		if ref != "" {
			// Not what was live: somebody may have moved it beside the server, and it comes back from there.
			if old, err = p.cfg.Repository(d.Project, x.repo).Get(ctx, ref); err != nil {
				return nil, err
			}
		}
		if old == x.new {
			continue
		}
		out = append(out, RefChange{Repo: x.repo, Change: project.Change{Ref: ref, Old: old, New: x.new}})
	}
	return out, nil
}

// apply moves refs; one that is where it should be already is left, so it can be run again after a crash.
func (p *Pipeline) apply(ctx context.Context, name project.Name, changes []RefChange) error {
	for _, c := range changes {
		cur, err := p.cfg.Repository(name, c.Repo).Get(ctx, c.Change.Ref)
		if err != nil {
			return err
		}
		if cur != c.Change.New {
			if err := p.cfg.Repository(name, c.Repo).CompareAndSwap(ctx, c.Change); err != nil {
				return err
			}
		}
		if c.Head {
			if err := p.cfg.Repository(name, c.Repo).SetDeployed(ctx, c.Change.Ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// revert moves back what apply moved before it failed: the old tree is coming back.
func (p *Pipeline) revert(ctx context.Context, name project.Name, changes []RefChange) error {
	var errs []error
	for _, c := range changes {
		cur, err := p.cfg.Repository(name, c.Repo).Get(ctx, c.Change.Ref)
		if err == nil && cur == c.Change.New && cur != c.Change.Old {
			err = p.cfg.Repository(name, c.Repo).CompareAndSwap(ctx, project.Change{Ref: c.Change.Ref, Old: c.Change.New, New: c.Change.Old})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// end makes the result final: archive verdict, rotation, journal, notification.
func (p *Pipeline) end(r *run, env *procedures.Env, j *Journal, res *project.Result) {
	ctx := context.Background()
	res.Timings = env.Timings
	res.Ended = p.cfg.Now()
	r.hide(res)
	if err := p.journal(j, Entry{Kind: Ended, Deployment: env.Deployment.ID, Result: res}); err != nil {
		p.cfg.Logger.Error().Err(err).Str("deployment", string(env.Deployment.ID)).Msg("journal")
	}
	p.conclude(ctx, r, env, res)
}

// conclude does what is left when the journal has ended a deployment. A crash before its record is final does it again.
func (p *Pipeline) conclude(ctx context.Context, r *run, env *procedures.Env, res *project.Result) {
	r.ending()
	env.Result = *res
	if err := env.Retain(res.State); err != nil {
		r.log.Append(event.Event{Kind: event.Note, Text: "old archives were not rotated: " + strings.Join(p.explain(env.Deployment, err), " ")})
	}
	if err := env.DropUndo(res.State); err != nil {
		p.cfg.Logger.Warn().Err(err).Str("deployment", string(env.Deployment.ID)).Msg("remove the undo log")
	}
	p.sweepPins(ctx, env.Deployment.Project, env.Deployment.ID)
	if _, skip := env.Prepared.Skips(procedures.NameNotify); !skip {
		if err := env.Override(ctx, procedures.Notify{}); err != nil {
			env.Note("notify: %s", strings.Join(p.explain(env.Deployment, err), " "))
		}
		if _, lines := env.TakeSummary(); len(lines) > 0 {
			env.Note("notify: %s", strings.Join(lines, " "))
		}
	}
}
