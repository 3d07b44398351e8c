package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"corpus-git/internal/diskfull"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/sources"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/project"
)

// execute runs the procedures, and always ends in a result.
func (dep *deployment) execute(ctx context.Context) {
	d := dep.env.Deployment
	begun := dep.p.cfg.Now()
	desc, err := dep.described()
	if err != nil {
		dep.p.cfg.Logger.Warn().Err(dep.redact.Error(err)).Str("deployment", string(d.ID)).Msg("describe")
	}
	dep.env.Brings = desc
	dep.log.Append(texts.Headline(d, desc, dep.redact.String))
	dep.printSettings()
	dep.printEstimate()
	for _, n := range dep.env.Prepared.Notes {
		dep.log.Append(event.Event{Kind: event.Note, Text: n})
	}
	dep.res = project.Result{Started: begun}
	dep.noteReverted(ctx, desc)
	dep.runAll(ctx, dep.order())
}

// runAll runs procedures, one after the other, and then moves the branch, unless the deployment fails or is suspended.
func (dep *deployment) runAll(ctx context.Context, list []procedures.Procedure) {
	d := dep.env.Deployment
	for _, proc := range list {
		name := proc.Name()
		if name != procedures.NameArchive {
			if err := dep.publish(ctx); err != nil {
				dep.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: "the pushed objects could not be stored", Lines: dep.explain(err)})
				dep.fail(ctx, publishing, err)
				return
			}
		}
		why, skip := dep.skipped(name)
		if skip {
			dep.env.Note("%s skipped: %s%s", name, why, skipNote(name, d))
		} else {
			if name == procedures.NameInstall && !dep.continuing {
				dep.reverse(ctx)
			}
			if err := dep.procedure(ctx, dep.env, proc); err != nil {
				if !dep.isSuspended() {
					dep.fail(ctx, name, err)
				}
				return
			}
		}
		switch {
		case name == procedures.NameArchive:
			dep.archived = !skip
			if err := dep.hold(ctx); err != nil { // also without an archive: the stages decide when it continues
				dep.fail(ctx, name, err)
				return
			}
		case name == procedures.NameInstall && !skip:
			dep.restartReversed(ctx)
			dep.stageVerdict() // little is left that may fail
		}
	}
	if d.Trigger == project.TriggerRollback {
		dep.follow(ctx)
	}
	dep.commit(ctx)
}

// skipped reports whether a procedure is skipped, and why. Those of the nodes never are: each node skips the same procedures as this machine.
func (dep *deployment) skipped(name string) (why string, skip bool) {
	if name == procedures.NameRollout || name == procedures.NameNodes {
		return "", false
	}
	return dep.env.Prepared.Skips(name)
}

// skipNote says what skipping a procedure means for the deployment's changes.
func skipNote(procedure string, d project.Deployment) string {
	if procedure != procedures.NameReleaseSync || d.Change.Ref == "" || d.Change.New == d.Change.Old {
		return ""
	}
	return "; the branch moves anyway, and the tree is outdated until the next deployment"
}

// publishing is the location of a failure to publish what was pushed: it is not a procedure, and nothing was changed.
const publishing = "publish"

// order returns the procedures in their order: first the archive, which only reads what is live.
func (dep *deployment) order() []procedures.Procedure {
	nodes := dep.env.Prepared.Rollout != nil
	switch {
	case dep.env.Deployment.Trigger == project.TriggerRollback && nodes:
		return []procedures.Procedure{procedures.Archive{}, procedures.Nodes{}, procedures.Sync{}, procedures.Restore{}, procedures.Rollout{}}
	case dep.env.Deployment.Trigger == project.TriggerRollback:
		return []procedures.Procedure{procedures.Archive{}, procedures.Sync{}, procedures.Restore{}}
	case nodes:
		// This machine only keeps the trees; the services run on the nodes.
		return []procedures.Procedure{
			procedures.Archive{}, procedures.Nodes{}, procedures.Sync{}, procedures.PreDeploy(), procedures.ReleaseSync{}, procedures.Fixperms{Synced: true}, procedures.Rollout{}, procedures.PostDeploy(),
		}
	}
	list := []procedures.Procedure{
		procedures.Archive{}, procedures.Sync{}, procedures.PreDeploy(), procedures.ReleaseSync{}, procedures.Fixperms{Early: true, Synced: true},
		procedures.Install{}, procedures.Fixperms{},
	}
	if dep.env.Prepared.HasChecks(project.OnDeploy) {
		list = append(list, procedures.Checks{On: project.OnDeploy})
	}
	return append(list, procedures.PostDeploy())
}

// procedure runs one procedure between its journal entry and its event.
func (dep *deployment) procedure(ctx context.Context, env *procedures.Env, proc procedures.Procedure) (err error) {
	defer func() {
		if err != nil {
			env.EndSteps()
		}
	}()
	name := proc.Name()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	begun := dep.p.cfg.Now()
	dep.stepsBegan = dep.stepsBegan || name == procedures.NameInstall
	if dep.continuing && name == procedures.NameInstall {
		dep.continuing = false // it began before; the Waiting entry stays the last one until it waits again
	} else {
		err = dep.enter(journal.Entry{Kind: journal.Begin, Procedure: name})
	}
	if err == nil {
		dep.update(func(rec *project.Record) { rec.Procedure, rec.Step, rec.Since = name, "", dep.p.cfg.Now() })
		env.Report.Append(event.Event{Kind: event.ProcedureStart, Procedure: name, Duration: env.Usual[name].Median})
		begun = dep.p.cfg.Now()
		err = dep.recoverPanic(name, func() error { return env.Override(ctx, proc) })
	}
	if err != nil && dep.isSuspended() {
		return err
	}
	if e, ok := endedBy(context.Cause(ctx)); ok && errors.Is(err, ctx.Err()) {
		if _, told := endedBy(err); !told {
			err = fmt.Errorf("%w: %w", e, err) // what ended the context, besides the context's own error
		}
	}
	took := dep.p.cfg.Now().Sub(begun)
	text, lines := env.TakeSummary()
	var step *procedures.Failure
	switch {
	case err == nil:
		if name != procedures.NameInstall {
			env.Timings = append(env.Timings, project.Timing{Name: name, Duration: took})
		}
		env.Report.Append(event.Event{Kind: event.ProcedureDone, Status: event.OK, Procedure: name, Duration: took, Text: text, Lines: lines})
	case errors.As(err, &step):
		// the step has been reported
	default:
		if name != procedures.NameArchive && procedures.ShortOfSpace(err) {
			env.FreeSpace(err) // on a full disk the event below would be lost
		}
		lines := dep.explain(err)
		if fault.HintOf(err) != "" && env.Result.Reason == "" && len(lines) > 0 {
			lines = lines[:len(lines)-1] // the verdict has the hint, except for a rollback
		}
		env.Report.Append(event.Event{
			Kind: event.Failure, Status: event.Bad, Procedure: name, Duration: took,
			Text: fmt.Sprintf("%s  failed after %s", name, humanize.Rough(took)), Lines: lines,
		})
	}
	return err
}

// explain returns the lines that tell the pusher about an error: for an internal error the deployment's ID, since the log has the rest.
func (dep *deployment) explain(err error) []string {
	err = diskfull.Explain(err)
	if e, ok := endedBy(err); ok {
		return []string{e.why}
	}
	if fault.KindOf(err) == fault.Internal {
		dep.p.cfg.Logger.Error().Err(dep.redact.Error(err)).Str("project", dep.rec.Project.String()).Str("deployment", string(dep.rec.ID)).Msg("deployment failed with an internal error")
	}
	return procedures.ErrorLines(err)
}

// describe begins to find out what the deployment brings, once its submodules are there.
func (dep *deployment) describe(ctx context.Context) {
	d := dep.record().Deployment
	repo, old, cur := project.Code, d.LiveCode, d.Code
	if d.Repo == project.PillarRepo {
		repo, old, cur = project.PillarRepo, d.LivePillar, d.Pillar
	}
	if cur == "" {
		return
	}
	dep.described = sync.OnceValues(func() (*project.Description, error) {
		desc, err := dep.p.cfg.Repository(d.Project, repo).Describe(ctx, old, cur, sources.Incoming(d, dep.in, repo))
		if err != nil {
			return nil, err
		}
		return &desc, nil
	})
	go func() { _, _ = dep.described() }()
}

// Append implements procedures.Reporter: the record is kept up to date as events arrive.
func (dep *deployment) Append(e event.Event) uint64 {
	if e.Kind == event.StepStart {
		dep.update(func(rec *project.Record) { rec.Step, rec.Since = e.Step, dep.p.cfg.Now() })
	}
	dep.keepOutput(e)
	return dep.log.Append(e)
}
