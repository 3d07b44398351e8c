package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"corpus-git/internal/diskfull"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/procedures"
	"corpus-git/project"
)

// fail ends a deployment that did not succeed: rolled back, or as it fell where its environment is dev.
func (p *Pipeline) fail(ctx context.Context, r *run, env *procedures.Env, j *Journal, res project.Result, name string, cause error, archived bool) project.Result {
	ctx = context.WithoutCancel(ctx)
	r.ending()
	cause = diskfull.Explain(cause)
	p.blame(&res, env, name, cause)
	r.hide(&res)
	d := env.Deployment
	keep := env.Prepared.Dev()
	_, skipped := env.Prepared.Skips(procedures.NameRollback)
	if name == procedures.NameArchive || name == publishing {
		// Nothing has changed yet: there is nothing to roll back.
		res.State, res.Code, res.Pillar = project.RolledBack, d.LiveCode, d.LivePillar
		if procedures.ShortOfSpace(cause) {
			res.State, res.Reason = project.Refused, "not enough disk space"
		}
		p.end(r, env, j, &res)
		return res
	}
	env.Relieve(cause)
	if err := p.journal(j, Entry{Kind: Failing, Deployment: d.ID, Procedure: name, Keep: keep || skipped || !archived, Result: &res}); err != nil {
		p.cfg.Logger.Error().Err(err).Msg("journal")
	}
	res.Code, res.Pillar = d.LiveCode, d.LivePillar
	switch {
	case keep:
		res.State = project.Failed
		r.log.Append(event.Event{Kind: event.Note, Text: "environment " + env.Prepared.Environment() + ": the failed tree stays in place"})
	case skipped:
		res.State = project.Failed
		r.log.Append(event.Event{Kind: event.Note, Text: "rollback was skipped: the failed tree stays in place"})
	case !archived:
		res.State = project.Failed
		r.log.Append(event.Event{Kind: event.Note, Text: "archive was skipped: there is nothing to roll back to, the failed tree stays in place"})
	default:
		p.rollback(ctx, r, env, j, &res)
	}
	p.end(r, env, j, &res)
	return res
}

// blame fills in what failed and why.
func (p *Pipeline) blame(res *project.Result, env *procedures.Env, name string, cause error) {
	res.Procedure = name
	res.Kind = fault.KindOf(cause).String()
	var checks *procedures.CheckFailure
	var step *procedures.Failure
	if errors.As(cause, &step) {
		res.Step, res.StateID, res.Kind = step.Step, step.StateID, fault.Failed.String()
	}
	res.Hint = fault.HintOf(cause)
	switch e, stopped := endedBy(cause); {
	case stopped:
		res.Reason = e.why
		if e.busy {
			res.Kind = fault.Busy.String()
		}
	case errors.As(cause, &checks):
		res.Reason = checks.Error()
	case res.StateID != "":
		res.Reason = fmt.Sprintf("failed in %s, state %s", res.Step, res.StateID)
	case res.Step != "":
		res.Reason = "failed in " + res.Step
	default:
		res.Reason = "failed in " + name
	}
	if res.Hint == "" {
		again := ""
		if env.Deployment.Trigger == project.TriggerPush {
			again = " ; push the same commit again to try again"
		}
		res.Hint = fmt.Sprintf("full log:  corpus-git logs %s %s%s", env.Deployment.Project, env.Deployment.ID.Short(), again)
	}
}

// rollback brings the archived tree back, and fixes its permissions.
func (p *Pipeline) rollback(ctx context.Context, r *run, env *procedures.Env, j *Journal, res *project.Result) {
	env.Result = *res
	if err := p.journal(j, Entry{Kind: RollingBack, Deployment: env.Deployment.ID, Archive: env.ArchiveName}); err != nil {
		p.cfg.Logger.Error().Err(err).Msg("journal")
	}
	if err := p.procedure(ctx, j, r, env, procedures.Rollback{}); err != nil {
		res.State = project.Failed
		res.Reason += "; the rollback failed too"
		if procedures.ArchiveDamaged(err) {
			res.Reason += ": the archive is damaged, nothing of it went live"
			res.Hint = fmt.Sprintf("full log:  corpus-git logs %[1]s %[2]s ; what is left is in %[3]s; bring the commit before again with  corpus-git deploy %[1]s",
				env.Deployment.Project, env.Deployment.ID.Short(), env.ArchiveDir())
			return
		}
		res.Hint = fmt.Sprintf("the tree before this deployment is in %s; put it back with  corpus-git rollback %s", env.ArchiveDir(), env.Deployment.Project)
		return
	}
	res.State = project.RolledBack
	p.undo(ctx, r, env, j, res)
	for _, file := range env.OwnFailed {
		failed := "the project's own " + file + " failed after the tree was back"
		res.Reason += "; " + failed
		res.Hint = failed + ": what it would have repaired may be left undone; " + res.Hint
	}
	if _, skip := env.Prepared.Skips(procedures.NameFixperms); !skip {
		if err := p.procedure(ctx, j, r, env, procedures.Fixperms{Early: true}); err != nil {
			r.log.Append(event.Event{Kind: event.Note, Text: "the tree is restored, but not all of its permissions could be fixed"})
		}
	}
	p.recheck(ctx, r, env, j, res)
}

// undo takes back what the steps changed outside of the trees.
func (p *Pipeline) undo(ctx context.Context, r *run, env *procedures.Env, j *Journal, res *project.Result) {
	if !env.HasUndo() {
		return
	}
	if err := p.procedure(ctx, j, r, env, procedures.Undo{}); err != nil {
		res.Unhealthy = "not everything outside of the tree could be undone"
	}
}

// recheck asks the checks of the release whose tree is back. What they find changes nothing but the result.
func (p *Pipeline) recheck(ctx context.Context, r *run, env *procedures.Env, j *Journal, res *project.Result) {
	if why, skip := env.Prepared.Skips(procedures.NameChecks); skip {
		if env.Prepared.HasChecks(project.OnRollback) {
			env.Note("checks skipped: %s", why)
		}
		return
	}
	live := *env
	if env.Deployment.Trigger != project.TriggerRollback && !env.RemoteLess {
		var err error
		if live.Prepared, err = p.configured(ctx, r, env.Deployment); err != nil {
			r.log.Append(event.Event{Kind: event.Note, Text: "the checks of what is live again could not be read: " + shortReason(err)})
			return
		}
	}
	if live.Prepared == nil || !live.Prepared.HasChecks(project.OnRollback) {
		return
	}
	err := p.procedure(ctx, j, r, &live, procedures.Checks{On: project.OnRollback})
	env.Timings = live.Timings
	var failed *procedures.CheckFailure
	switch {
	case errors.As(err, &failed):
		res.Unhealthy = joined(res.Unhealthy, failed.Error())
	case err != nil:
		res.Unhealthy = joined(res.Unhealthy, "its checks could not be asked")
	}
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", and " + b
}

// configured is the configuration of what was live before a deployment, nil where nothing was.
func (p *Pipeline) configured(ctx context.Context, r *run, d project.Deployment) (*procedures.Prepared, error) {
	if d.LiveCode == "" {
		return nil, nil
	}
	set, err := p.cfg.Settings(ctx, d.Project)
	if err != nil {
		return nil, err
	}
	d.Code, d.Pillar, d.Change = d.LiveCode, d.LivePillar, project.Change{}
	src, err := p.sources(ctx, d, set, nil)
	if err != nil {
		return nil, err
	}
	return procedures.PrepareRollback(ctx, p.cfg.Tools, d, src, r.redact)
}

// refuse ends a deployment before anything ran.
func (p *Pipeline) refuse(r *run, err error) project.Result {
	err = diskfull.Explain(err)
	d := r.record().Deployment
	ctx := context.Background()
	res := project.Result{State: project.Refused, Kind: fault.KindOf(err).String(), Hint: fault.HintOf(err)}
	res.Code, res.Pillar = p.commitOf(ctx, d.Project, project.Code), p.commitOf(ctx, d.Project, project.PillarRepo)
	if e, ok := endedBy(err); ok {
		res.Reason, res.Kind = e.why, fault.Refused.String()
		if e.busy {
			res.Kind, res.Hint = fault.Busy.String(), "push again in a moment"
		}
		r.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: e.why})
		return res
	}
	res.Reason = shortReason(err)
	lines := p.explain(d, err)
	if res.Hint != "" && len(lines) > 0 {
		lines = lines[:len(lines)-1] // the hint has its own line
	}
	r.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: lines[0], Lines: lines[1:]})
	return res
}

// shortReason is an error in one line: its place and its cause.
func shortReason(err error) string {
	text, _, _ := strings.Cut(procedures.Cause(err), "\n")
	if at, ok := fault.PosOf(err); ok {
		text = at.String() + ": " + text
	}
	return text
}
