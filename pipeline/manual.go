package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/pipeline/sources"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/project/planned"
)

// plan shows what a deployment would do, and changes nothing.
func (dep *deployment) plan(ctx context.Context) {
	d := dep.env.Deployment
	dep.res = project.Result{State: project.Done, Started: dep.p.cfg.Now(), Code: d.LiveCode, Pillar: d.LivePillar}
	if dep.in != nil {
		// The objects are read from the quarantine; a plan publishes nothing.
		dep.env.Note("planned from the pushed commit, which is not stored")
	}
	desc, err := dep.p.cfg.Repository(d.Project, project.Code).Describe(ctx, d.LiveCode, d.Code, dep.in)
	if err == nil {
		dep.log.Append(texts.Headline(d, &desc, dep.redact.String))
	} else {
		dep.log.Append(texts.Headline(d, nil, dep.redact.String))
	}
	if err == nil {
		dep.noteReverted(ctx, &desc)
	}
	dep.printSettings()
	var n int
	var refused error
	var nodes *planned.Readiness
	err = dep.recoverPanic("plan", func() (err error) {
		if n, err = procedures.Plan(ctx, dep.env, desc); err == nil {
			nodes, refused, err = dep.env.PlanNodes(ctx, func(ctx context.Context, live project.Commit) (project.Description, error) {
				return dep.p.cfg.Repository(d.Project, project.Code).Describe(ctx, live, d.Code, sources.Incoming(d, dep.in, project.Code))
			})
		}
		return err
	})
	if err := cmp.Or(err, refused); err != nil {
		dep.refuse(err)
		dep.res.Nodes = nodes
		return
	}
	dep.res.Nodes = nodes
	dep.res.Reason = fmt.Sprintf("a deployment would change %s, nothing was changed", humanize.Plural(n, "thing"))
}

// task runs one task of the live recipe.
func (dep *deployment) task(ctx context.Context) {
	d := dep.env.Deployment
	dep.res = project.Result{Started: dep.p.cfg.Now(), Code: d.LiveCode, Pillar: d.LivePillar}
	dep.update(func(rec *project.Record) {
		rec.State, rec.Procedure, rec.Since = project.Running, "task", dep.p.cfg.Now()
	})
	if err := dep.p.records.Put(ctx, dep.shown()); err != nil {
		dep.refuse(fault.New(fault.Internal, "record task", "%w", err))
		return
	}
	dep.log.Append(event.Event{Kind: event.Head, Text: fmt.Sprintf("%s  task %s  by %s", d.Project, d.Task, d.Pusher.Key)})
	dep.printSettings()
	err := dep.env.Prepared.Store(ctx, dep.env.Tools, d.Project)
	if err == nil {
		err = dep.recoverPanic("task", func() error { return dep.env.Task(ctx, dep.env.Prepared.Steps[0]) })
	}
	dep.res.Timings, dep.res.Outputs, dep.res.Tests = dep.env.Timings, dep.env.Outputs(), dep.env.Tests()
	if err == nil {
		dep.res.State, dep.res.Reason = project.Done, d.Task
		return
	}
	dep.res.State = project.Failed
	dep.setFailure("task", err)
	var f *procedures.Failure
	if errors.As(err, &f) && f.StateID != "" {
		dep.res.Reason = fmt.Sprintf("task %s, state %s", f.Step, f.StateID)
	}
}

// check runs all checks of the live release.
func (dep *deployment) check(ctx context.Context) {
	d := dep.env.Deployment
	dep.res = project.Result{Started: dep.p.cfg.Now(), Code: d.LiveCode, Pillar: d.LivePillar}
	if !dep.env.Prepared.HasChecks("") {
		dep.refuse(fault.New(fault.Refused, "check", "%s has no checks", d.Project).WithHint("the key  checks  of its configuration names some"))
		return
	}
	dep.update(func(rec *project.Record) {
		rec.State, rec.Procedure, rec.Since = project.Running, procedures.NameChecks, dep.p.cfg.Now()
	})
	if err := dep.p.records.Put(ctx, dep.shown()); err != nil {
		dep.refuse(fault.New(fault.Internal, "record check", "%w", err))
		return
	}
	dep.log.Append(event.Event{Kind: event.Head, Text: fmt.Sprintf("%s  check of %s  by %s", d.Project, d.LiveCode.Short(), d.Pusher.Key)})
	err := dep.env.AskAll(ctx)
	dep.res.Timings, dep.res.Outputs, dep.res.Tests = dep.env.Timings, dep.env.Outputs(), dep.env.Tests()
	if err == nil {
		dep.res.State, dep.res.Reason = project.Done, "all checks succeeded"
		return
	}
	dep.env.Report.Append(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: procedures.NameChecks, Text: "checks failed", Lines: dep.explain(err)})
	dep.res.State = project.Failed
	dep.setFailure(procedures.NameChecks, err)
}

// findArchive finds the archive that a rollback restores: the one named by d.Restore, if it is whole; otherwise one that holds the commits
// of the deployment d.Restore; without d.Restore the newest tree that differs from what is live, or after a manual rollback the newest one
// that is older than what that rollback restored.
func (p *Pipeline) findArchive(ctx context.Context, d project.Deployment) (procedures.Held, error) {
	whole, err := procedures.HeldTrees(p.cfg.Tools, d.Project)
	if err != nil {
		return procedures.Held{}, err
	}
	if d.Restore == "" {
		older, err := p.older(ctx, d, whole)
		if err != nil {
			return procedures.Held{}, err
		}
		for _, a := range older {
			if a.Code != d.LiveCode || a.Pillar != d.LivePillar {
				return a, nil
			}
		}
		return procedures.Held{}, fault.New(fault.Refused, "rollback", "no archive contains an earlier tree of %s", d.Project).
			WithHint("push the commit that you want live:  git push -f prod COMMIT:master  ; forward again:  corpus-git rollback %s DEPLOYMENT", d.Project)
	}
	for _, a := range whole {
		if a.Name == string(d.Restore) {
			return a, nil
		}
	}
	rec, err := p.records.Find(ctx, d.Project, string(d.Restore))
	if err != nil {
		return procedures.Held{}, err
	}
	if rec.State != project.Live {
		return procedures.Held{}, fault.New(fault.Refused, "rollback", "deployment %s was never live: it is %s", rec.ID.Short(), rec.State).
			WithHint("corpus-git deployments %s  shows which were", d.Project)
	}
	if rec.Code == d.LiveCode && rec.Pillar == d.LivePillar {
		return procedures.Held{}, fault.New(fault.Refused, "rollback", "the release of deployment %s is live: %s", rec.ID.Short(), rec.Code.Short())
	}
	for _, a := range whole {
		if a.Code == rec.Code && a.Pillar == rec.Pillar {
			return a, nil
		}
	}
	return procedures.Held{}, fault.New(fault.Refused, "rollback", "the archive with the tree of deployment %s is gone", rec.ID.Short()).
		WithHint("push its commit again:  git push -f prod %s:master", rec.Code.Short())
}

// maxBack is the number of deployments that are searched for the rollback that restored what is live.
const maxBack = 1000

// older removes the trees that are not older than what a manual rollback restored, if that is still live: the next rollback goes back one
// further. whole is ordered newest first.
func (p *Pipeline) older(ctx context.Context, d project.Deployment, whole []procedures.Held) ([]procedures.Held, error) {
	list, err := p.records.List(ctx, d.Project, maxBack)
	if err != nil {
		return nil, err
	}
	var restored project.ID
	for _, rec := range list {
		if rec.State != project.Live || rec.Trigger == project.TriggerRedeploy && rec.Code == rec.LiveCode && rec.Pillar == rec.LivePillar {
			continue
		}
		if rec.Trigger == project.TriggerRollback && rec.Code == d.LiveCode && rec.Pillar == d.LivePillar {
			restored = rec.Restore
		}
		break
	}
	if restored == "" {
		return whole, nil
	}
	// Archives have the IDs of the deployments that made them.
	newer := map[project.ID]bool{}
	for _, rec := range list {
		newer[rec.ID] = true
		if rec.ID == restored {
			break
		}
	}
	return slices.DeleteFunc(whole, func(a procedures.Held) bool { return newer[a.ID] }), nil
}

// mayMove refuses a rollback by an actor without the permission for a repository whose branch would move: configure for the pillar, deploy
// for the code, as for pushing.
func (p *Pipeline) mayMove(ctx context.Context, d project.Deployment) error {
	for _, x := range []struct {
		old, new project.Commit
		want     project.Right
		what     string
	}{{d.LiveCode, d.Code, project.Deploy, "code"}, {d.LivePillar, d.Pillar, project.Configure, "pillar"}} {
		if x.old == x.new {
			continue
		}
		ok, err := p.cfg.May(ctx, d.Pusher, d.Project, x.want)
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		to := "to " + x.new.Short()
		if x.new == "" {
			to = "to where there was none"
		}
		refused := fault.New(fault.Refused, "rollback", "%s is not allowed to: the %s would be rolled back too, from %s %s, which requires %s permission", d.Pusher.Key, x.what, x.old.Short(), to, x.want)
		if x.want == project.Configure && d.Code != d.LiveCode {
			return refused.WithHint("to roll back only the code:  git push -f prod %s:master", d.Code.Short())
		}
		return refused.WithHint("ask a user who has it, or  corpus-git access grant %s %s %s", d.Project, d.Pusher.Key, x.want)
	}
	return nil
}
