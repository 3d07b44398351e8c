package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/procedures/oldprocs"
	"corpus-git/project"
)

// restoreOutside restores, after the tree of a release, what is outside the trees: what the failed deployment changed is undone, the steps
// of the release are applied, services are restarted, permissions are fixed, its checks are run. on_rollback of that release configures how
// much of this is done. Failures change nothing but the result. All of it can be repeated after a crash.
func (dep *deployment) restoreOutside(ctx context.Context) {
	live, end, err := dep.again(ctx)
	defer end()
	reach := project.RollbackSteps
	if live != nil {
		reach = live.Prepared.Cfg.OnRollback()
	}
	if reach != project.RollbackTree {
		dep.undo(ctx)
	}
	dep.reportOwnFailed()
	if err != nil {
		dep.unsure("the configuration of %s could not be read: %s", dep.env.Deployment.LiveCode.Short(), texts.Short(err))
	}
	if live != nil && reach == project.RollbackSteps && dep.stepsBegan {
		dep.reinstall(ctx, live)
	}
	if reach != project.RollbackTree {
		dep.restart(ctx)
	}
	dep.reportOldProcesses()
	if live == nil {
		dep.fixperms(ctx, dep.env, true)
		return
	}
	dep.fixperms(ctx, live, true)
	dep.recheck(ctx, live)
	dep.env.Timings = live.Timings
}

// follow applies steps, permissions and checks of the release that a manual rollback restored. Failures change nothing but the result.
func (dep *deployment) follow(ctx context.Context) {
	dep.env.Since = dep.since(ctx)
	dep.reverse(ctx)
	if dep.env.Prepared.Cfg.OnRollback() == project.RollbackSteps {
		dep.stepsBegan = true
		dep.reinstall(ctx, dep.env)
	}
	dep.restartReversed(ctx)
	dep.reportOldProcesses()
	dep.fixperms(ctx, dep.env, false)
	dep.recheck(ctx, dep.env)
}

// reportOldProcesses names the processes that are still running in a tree that is no longer live, after steps and services.
func (dep *deployment) reportOldProcesses() {
	lines := oldprocs.List("/proc", dep.env.Paths, dep.env.Hide)
	if len(lines) == 0 {
		return
	}
	dep.log.Append(event.Event{Kind: event.Note, Text: "these processes still run in a tree that is no longer live; restart them:", Lines: lines})
}

func (dep *deployment) reportOwnFailed() {
	for _, file := range dep.env.OwnFailed {
		failed := "the project's own " + file + " failed after the tree was restored"
		dep.res.Reason += "; " + failed
		dep.res.Hint = failed + ": its repairs may be incomplete; " + dep.res.Hint
	}
}

// fixperms fixes the permissions of the restored release; early reports that an account named by a rule may be missing.
func (dep *deployment) fixperms(ctx context.Context, live *procedures.Env, early bool) {
	if why, skip := dep.skips(live, procedures.NameFixperms); skip {
		if dep.env.Deployment.Trigger == project.TriggerRollback {
			dep.env.Note("%s skipped: %s", procedures.NameFixperms, why)
		}
		return
	}
	if err := dep.procedure(ctx, live, procedures.Fixperms{Early: early}); err != nil {
		dep.unsure("some permissions could not be fixed")
	}
}

// skips reports whether a procedure of the restored release is skipped: by its own configuration, or as requested for the deployment.
func (dep *deployment) skips(live *procedures.Env, name string) (why string, skip bool) {
	for _, p := range []*procedures.Prepared{dep.env.Prepared, live.Prepared} {
		if why, skip := p.Skips(name); skip {
			return why, true
		}
	}
	return "", false
}

// unsure adds a reason why a rollback is incomplete.
func (dep *deployment) unsure(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if dep.res.Unhealthy == "" {
		dep.res.Unhealthy = text
		return
	}
	dep.res.Unhealthy += ", and " + text
}

// again returns the environment of the restored release: its own configuration, pillar and recipe, without the settings of the failed
// deployment. It is nil if nothing was live, and also if they can't be read, which the error reports. end closes it.
func (dep *deployment) again(ctx context.Context) (live *procedures.Env, end func(), err error) {
	d := dep.env.Deployment
	if d.LiveCode == "" && !dep.env.RemoteLess {
		return nil, func() {}, nil
	}
	// The trees use their repositories until the context ends.
	ctx, done := context.WithCancel(ctx)
	end = done
	set, err := dep.p.cfg.Settings(ctx, d.Project)
	if err != nil {
		return nil, end, err
	}
	if dep.tools == nil { // in a recovery
		tools, over := dep.p.cfg.Tools.Open()
		dep.tools = tools
		end = func() {
			done()
			dep.tools = nil
			if err := over(); err != nil {
				dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("end the runner of steps")
			}
		}
	}
	d.Code, d.Pillar, d.Change, d.Trigger = d.LiveCode, d.LivePillar, project.Change{}, project.TriggerRollback
	d.Set, d.Select = nil, project.Selection{}
	src, err := dep.p.sources(ctx, d, set, nil)
	if err != nil {
		return nil, end, err
	}
	if err := dep.submodules(ctx, d, &src); err != nil {
		dep.p.cfg.Logger.Warn().Err(err).Str("deployment", string(d.ID)).Msg("submodules of what is live again")
	}
	src.Private = dep.p.cfg.State.Recipe(string(d.ID), restored)
	prep, err := procedures.PrepareRollback(ctx, dep.tools, d, src, dep.redact)
	if err != nil {
		return nil, end, err
	}
	return dep.env.Again(dep.tools, prep, d), end, nil
}

// restored is the path of the private copy of the restored recipe.
const restored = "restored"

// undo undoes what the steps changed outside the trees.
func (dep *deployment) undo(ctx context.Context) {
	if !dep.env.HasUndo() {
		return
	}
	if err := dep.procedure(ctx, dep.env, procedures.Undo{}); err != nil {
		dep.unsure("some changes outside of the tree could not be undone")
	}
}

// restart restarts the services that the failed deployment restarted.
func (dep *deployment) restart(ctx context.Context) {
	if !dep.env.HasServices() {
		return
	}
	if err := dep.procedure(ctx, dep.env, procedures.Services{}); err != nil {
		dep.unsure("some services could not be restarted")
	}
}

// maxReinstalls is how often the steps of a release are started for one rollback during which the server died: one of them may be what
// kills the server.
const maxReinstalls = 3

// reinstall applies the steps of the restored release.
func (dep *deployment) reinstall(ctx context.Context, live *procedures.Env) {
	if live.Prepared.Rollout != nil {
		return // they ran on the nodes
	}
	of := live.Deployment.Code.Short()
	if of == "" {
		of = "what is live again"
	}
	if why, skip := live.Prepared.Skips(procedures.NameInstall); skip {
		dep.env.Note("steps of %s skipped: %s", of, why)
		return
	}
	if dep.rollbacks > maxReinstalls {
		dep.unsure("the steps of %s were not run: the server stopped %d times in this rollback", of, dep.rollbacks-1)
		return
	}
	if err := live.Prepared.Compile(ctx, live.Tools, live.Deployment); err != nil {
		dep.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: "the steps of " + of + " could not be read", Lines: dep.explain(err)})
		dep.unsure("the steps of %s could not be read: %s", of, texts.Short(err))
		return
	}
	if len(live.Prepared.Steps) == 0 {
		return
	}
	dep.env.Note("the steps of %s are applied again", of)
	err := dep.procedure(ctx, live, procedures.Reinstall{Limit: dep.stepsLimit})
	var step *procedures.Failure
	switch {
	case err == nil:
	case errors.As(err, &step) && step.StateID != "":
		dep.unsure("%s failed in %s of %s", step.StateID, step.Step, of)
	case errors.As(err, &step) && step.Err != nil:
		dep.unsure("%s of %s failed: %s", step.Step, of, texts.Short(step.Err))
	case errors.As(err, &step):
		dep.unsure("%s of %s failed", step.Step, of)
	default:
		dep.unsure("the steps of %s could not be run: %s", of, texts.Short(err))
	}
}

// recheck runs the checks of the restored release. Failures change nothing but the result.
func (dep *deployment) recheck(ctx context.Context, live *procedures.Env) {
	if !live.Prepared.HasChecks(project.OnRollback) {
		return
	}
	if why, skip := dep.skips(live, procedures.NameChecks); skip {
		dep.env.Note("checks skipped: %s", why)
		return
	}
	err := dep.procedure(ctx, live, procedures.Checks{On: project.OnRollback})
	var failed *procedures.CheckFailure
	switch {
	case errors.As(err, &failed):
		dep.unsure("%s", failed.Error())
	case err != nil:
		dep.unsure("its checks could not be run")
	}
}

// Follow implements session.Deployer.
func (p *Pipeline) Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error] {
	p.mu.Lock()
	dep := p.byID[id]
	p.mu.Unlock()
	if dep != nil {
		return dep.log.Follow(ctx, seq)
	}
	rec, err := p.records.Get(ctx, id)
	if err != nil {
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, err) }
	}
	return event.Read(p.cfg.State.EventLog(rec.Project.String(), string(id)), seq)
}

// Wait implements session.Deployer.
func (p *Pipeline) Wait(ctx context.Context, id project.ID) (project.Result, error) {
	p.mu.Lock()
	dep := p.byID[id]
	p.mu.Unlock()
	if dep != nil {
		select {
		case <-dep.ended:
			return dep.res, nil
		case <-ctx.Done():
			return project.Result{}, context.Cause(ctx)
		}
	}
	rec, err := p.records.Get(ctx, id)
	if err != nil {
		return p.vanished.Of(id, err)
	}
	if rec.Result == nil {
		return project.Result{}, fault.New(fault.Internal, "wait", "deployment %s has no result", id.Short())
	}
	return *rec.Result, nil
}
