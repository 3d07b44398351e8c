package pipeline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/project"
)

// undeploy runs the project's own undeploy.sls, stops its units, and undoes what its deployments changed outside the trees; the nodes of a project do the same first. The trees,
// the repositories and the data stay. Each part can be repeated: after a crash the next start repeats the interrupted one.
func (dep *deployment) undeploy(ctx context.Context) {
	d, p := dep.env.Deployment, dep.p
	dep.res = project.Result{Started: p.cfg.Now(), Code: d.LiveCode, Pillar: d.LivePillar}
	dep.update(func(rec *project.Record) {
		rec.State, rec.Procedure, rec.Since = project.Running, string(project.TriggerUndeploy), p.cfg.Now()
	})
	if err := p.records.Put(ctx, dep.shown()); err != nil {
		dep.refuse(fault.New(fault.Internal, "record undeploy", "%w", err))
		return
	}
	p.cfg.Boundary(d.Project, "undeploy begun")
	if err := dep.env.DropPoint(); err != nil {
		dep.refuse(fault.New(fault.Internal, "discard the resume point", "%w", err))
		return
	}
	dep.log.Append(event.Event{Kind: event.Head, Text: fmt.Sprintf("%s  undeploy of %s  by %s", d.Project, d.LiveCode.Short(), d.Pusher.Key)})
	if len(dep.env.Prepared.Steps) > 0 {
		err := dep.env.Prepared.Store(ctx, dep.env.Tools, d.Project)
		if err == nil {
			err = dep.env.Task(ctx, dep.env.Prepared.Steps[0])
		}
		if err != nil {
			dep.res.State = project.Failed
			dep.setFailure(string(project.TriggerUndeploy), err)
			dep.res.Hint = "nothing else was done; fix .salt/undeploy.sls and push it, or run  corpus-git undeploy " + d.Project.String() + " --yes  again"
			return
		}
	}
	p.cfg.Boundary(d.Project, "undeploy own")
	var failed []string
	if dep.env.Prepared.Rollout != nil {
		if err := dep.undeployNodes(ctx); err != nil {
			failed = append(failed, texts.Short(err))
		}
	}
	begun := p.cfg.Now()
	stopped, err := p.cfg.StopUnits(ctx, d.Project)
	if err != nil {
		dep.reportUndeploy(event.Bad, "units", "could not be stopped", begun, dep.explain(err))
		failed = append(failed, "some units could not be stopped")
	} else if len(stopped) > 0 {
		dep.reportUndeploy(event.OK, "units", "stopped "+strings.Join(stopped, ", "), begun, nil)
	}
	p.cfg.Boundary(d.Project, "undeploy stopped")
	if r := (procedures.Reverse{All: true}); r.Needed(dep.env) {
		begun = p.cfg.Now()
		if err := r.Run(ctx, dep.env); err != nil {
			dep.reportUndeploy(event.Bad, procedures.NameUndo, "failed", begun, dep.explain(err))
			failed = append(failed, "some changes outside of the tree could not be undone")
		} else {
			text, lines := dep.env.TakeSummary()
			dep.reportUndeploy(event.OK, procedures.NameUndo, text, begun, lines)
		}
	}
	p.cfg.Boundary(d.Project, "undeploy undone")
	if err := context.Cause(ctx); err != nil {
		failed = append(failed, texts.Short(err))
	}
	if len(failed) > 0 {
		dep.res.State, dep.res.Kind, dep.res.Reason = project.Failed, fault.Failed.String(), strings.Join(failed, ", and ")
		dep.res.Hint = "to complete it, run it again:  corpus-git undeploy " + d.Project.String() + " --yes"
		return
	}
	dep.res.State, dep.res.Reason = project.Done, "its tree, repositories and data stay;  corpus-git deploy "+d.Project.String()+"  deploys it again"
}

// undeployNodes undeploys the project on its nodes.
func (dep *deployment) undeployNodes(ctx context.Context) error {
	r, err := dep.nodes(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Nodes.Close() }() // errors of ending unneeded sessions are ignored
	return r.Undeploy(ctx)
}

func (dep *deployment) reportUndeploy(status event.Status, name, text string, begun time.Time, lines []string) {
	kind := event.ProcedureDone
	if status == event.Bad {
		kind, text = event.Failure, name+"  "+text
	}
	dep.log.Append(event.Event{Kind: kind, Status: status, Procedure: name, Duration: dep.p.cfg.Now().Sub(begun), Text: text, Lines: lines})
}

// undeployAgain returns an undeploy that a dead server had begun. It is in the queue.
func (p *Pipeline) undeployAgain(ctx context.Context, rec project.Record) (func(context.Context, time.Duration), error) {
	dep, err := p.reopen(ctx, rec)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ time.Duration) {
		defer p.dropRecipes(rec.ID, p.kept.Drop)
		tools, end := p.cfg.Tools.Open()
		defer func() {
			if err := end(); err != nil {
				p.cfg.Logger.Error().Err(err).Str("deployment", string(rec.ID)).Msg("end the runner of steps")
			}
		}()
		dep.tools = tools
		dep.log.Append(event.Event{Kind: event.Note, Text: "interrupted by a stop of the server; starting again"})
		var err error
		if dep.set, err = p.cfg.Settings(ctx, rec.Project); err == nil {
			err = dep.prepare(ctx)
		}
		if err != nil {
			dep.refuse(err)
			dep.res.State = project.Failed
		} else {
			dep.undeploy(ctx)
		}
		dep.finish()
	}, nil
}

// Undeployed reports whether a project was undeployed, and nothing has gone live since.
func (p *Pipeline) Undeployed(ctx context.Context, name project.Name) (bool, error) {
	return p.records.Undeployed(ctx, name)
}
