package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"corpus-git/fleet"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/sources"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/project"
)

// fail ends a deployment that did not succeed: rolled back, or left as it is if its environment is dev.
func (dep *deployment) fail(ctx context.Context, name string, cause error) {
	ctx = context.WithoutCancel(ctx)
	dep.ending()
	if dep.verdict != nil {
		_ = dep.verdict()
	}
	cause = diskfull.Explain(cause)
	dep.res.Unhealthy = "" // from a manual rollback
	dep.setFailure(name, cause)
	dep.hide(&dep.res)
	d := dep.env.Deployment
	keep := dep.env.Prepared.Dev()
	_, skipped := dep.env.Prepared.Skips(procedures.NameRollback)
	if name == procedures.NameArchive || name == publishing || name == procedures.NameNodes {
		// Nothing has changed yet: there is nothing to roll back.
		dep.res.State, dep.res.Code, dep.res.Pillar = project.RolledBack, d.LiveCode, d.LivePillar
		if procedures.ShortOfSpace(cause) {
			dep.res.State, dep.res.Reason = project.Refused, "not enough disk space"
		}
		if name == procedures.NameNodes {
			dep.undoRollout(ctx, false)
			_, stopped := endedBy(cause)
			if kind := fault.KindOf(cause); !stopped && (kind == fault.Refused || kind == fault.Busy) {
				dep.res.State, dep.res.Reason = project.Refused, texts.Short(cause)
			}
		}
		dep.end()
		return
	}
	dep.env.FreeSpace(cause)
	if err := dep.enter(journal.Entry{Kind: journal.Failing, Procedure: name, Keep: keep || skipped || !dep.archived, Result: &dep.res}); err != nil {
		dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(dep.rec.ID)).Msg("journal")
	}
	dep.res.Code, dep.res.Pillar = d.LiveCode, d.LivePillar
	switch {
	case keep:
		dep.res.State = project.Failed
		dep.log.Append(event.Event{Kind: event.Note, Text: "environment " + dep.env.Prepared.Environment() + ": the failed tree stays in place"})
	case skipped:
		dep.res.State = project.Failed
		dep.log.Append(event.Event{Kind: event.Note, Text: "rollback was skipped: the failed tree stays in place"})
	case !dep.archived:
		dep.res.State = project.Failed
		dep.log.Append(event.Event{Kind: event.Note, Text: "archive was skipped: there is nothing to roll back to, the failed tree stays in place"})
	default:
		dep.rollback(ctx)
	}
	if dep.res.State == project.Failed && dep.env.Prepared.Rollout != nil && name == procedures.NameRollout && dep.rollbacks == 0 {
		dep.undoRollout(ctx, true)
	}
	dep.end()
	if dep.res.State == project.Failed && dep.rollbacks == 0 && name == procedures.NameInstall && dep.res.Step != "" {
		if err := dep.env.SavePoint(dep.res.Step); err != nil {
			dep.p.cfg.Logger.Warn().Err(err).Str("deployment", string(dep.rec.ID)).Msg("save the resume point: the deployment cannot be resumed")
		}
	}
}

// setFailure fills in what failed and why.
func (dep *deployment) setFailure(name string, cause error) {
	dep.res.Procedure = name
	dep.res.Kind = fault.KindOf(cause).String()
	var checks *procedures.CheckFailure
	var step *procedures.Failure
	var nodes *fleet.Failure
	if errors.As(cause, &step) {
		dep.res.Step, dep.res.StateID, dep.res.Kind = step.Step, step.StateID, fault.Failed.String()
	}
	dep.res.Hint = fault.HintOf(cause)
	switch e, stopped := endedBy(cause); {
	case stopped:
		dep.res.Reason = e.why
		if e.busy {
			dep.res.Kind = fault.Busy.String()
		}
	case errors.As(cause, &nodes):
		dep.res.Reason = "failed in rollout: " + nodes.Error()
	case errors.As(cause, &checks):
		dep.res.Reason = checks.Error()
	case dep.res.StateID != "":
		dep.res.Reason = fmt.Sprintf("failed in %s, state %s", dep.res.Step, dep.res.StateID)
	case dep.res.Step != "":
		dep.res.Reason = "failed in " + dep.res.Step
	default:
		dep.res.Reason = "failed in " + name
	}
	if dep.res.Hint == "" {
		again := ""
		if dep.env.Deployment.Trigger == project.TriggerPush {
			again = " ; push the same commit again to try again"
		}
		dep.res.Hint = fmt.Sprintf("full log:  corpus-git logs %s %s%s", dep.env.Deployment.Project, dep.env.Deployment.ID.Short(), again)
	}
}

// rollback restores the archived tree, and what is outside it.
func (dep *deployment) rollback(ctx context.Context) {
	dep.env.Result = dep.res
	dep.rollbacks++
	if err := dep.enter(journal.Entry{Kind: journal.RollingBack, Archive: dep.env.ArchiveName}); err != nil {
		dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(dep.rec.ID)).Msg("journal")
	}
	dep.undoRollout(ctx, false)
	if err := dep.procedure(ctx, dep.env, procedures.Rollback{}); err != nil {
		dep.res.State = project.Failed
		dep.res.Reason += "; " + project.RollbackFailed
		if procedures.ArchiveDamaged(err) {
			dep.res.Reason += ": the archive is damaged, nothing of it went live"
			dep.res.Hint = fmt.Sprintf("full log:  corpus-git logs %[1]s %[2]s ; the remaining files are in %[3]s; redeploy the previous commit with  corpus-git deploy %[1]s",
				dep.env.Deployment.Project, dep.env.Deployment.ID.Short(), dep.env.ArchiveDir())
			return
		}
		dep.res.Hint = fmt.Sprintf("the tree before this deployment is in %s; restore it with  corpus-git rollback %s", dep.env.ArchiveDir(), dep.env.Deployment.Project)
		return
	}
	dep.res.State = project.RolledBack
	dep.restoreOutside(ctx)
}

// undoRollout rolls back the nodes that the deployment reached, as far as the project is configured to; with stay none.
func (dep *deployment) undoRollout(ctx context.Context, stay bool) {
	u, err := dep.env.UndoRollout(ctx, stay)
	if err != nil {
		dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(dep.rec.ID)).Msg("roll back nodes")
		dep.unsure("not all nodes could be rolled back")
		return
	}
	if len(u.Keeps) > 0 {
		keep := "keep"
		if len(u.Keeps) == 1 {
			keep = "keeps"
		}
		dep.env.Note("%s: %s %s %s; the others get it with  corpus-git rollout retry %s", u.By, strings.Join(u.Keeps, ", "), keep, dep.env.Deployment.Code.Short(), dep.env.Deployment.Project)
	}
	if why := u.String(); why != "" {
		dep.unsure("%s", why)
	}
}

// refuse ends a deployment before anything ran.
func (dep *deployment) refuse(err error) {
	err = diskfull.Explain(err)
	d := dep.record().Deployment
	dep.res = project.Result{State: project.Refused, Kind: fault.KindOf(err).String(), Hint: fault.HintOf(err)}
	res := &dep.res
	res.Code, res.Pillar = sources.Deployed(context.Background(), dep.p.cfg.Repository(d.Project, project.Code)), sources.Deployed(context.Background(), dep.p.cfg.Repository(d.Project, project.PillarRepo))
	if e, ok := endedBy(err); ok {
		res.Reason, res.Kind = e.why, fault.Refused.String()
		if e.busy {
			res.Kind, res.Hint = fault.Busy.String(), "push again later"
		}
		dep.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: e.why})
		return
	}
	res.Reason = texts.Short(err)
	lines := dep.explain(err)
	if res.Hint != "" && len(lines) > 0 {
		lines = lines[:len(lines)-1] // the hint has its own line
	}
	dep.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: lines[0], Lines: lines[1:]})
}
