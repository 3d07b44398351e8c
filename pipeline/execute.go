package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"corpus-git/internal/diskfull"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/procedures"
	"corpus-git/project"
)

// execute runs the procedures and ends in a result, whatever happens.
func (p *Pipeline) execute(ctx context.Context, r *run, env *procedures.Env, j *Journal) project.Result {
	d := env.Deployment
	begun := p.cfg.Now()
	desc, err := p.describe(ctx, d, r.in)
	if err != nil {
		p.cfg.Logger.Warn().Err(r.redact.Error(err)).Str("deployment", string(d.ID)).Msg("describe")
	}
	env.Brings = desc
	r.log.Append(headline(d, desc, r.redact.String))
	r.saySettings()
	for _, n := range env.Prepared.Notes {
		r.log.Append(event.Event{Kind: event.Note, Text: n})
	}
	res := project.Result{Started: begun}
	archived, published := false, false
	for _, proc := range p.order(env) {
		name := proc.Name()
		if name != procedures.NameArchive && !published {
			if err := p.publish(ctx, r, d); err != nil {
				r.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: "what was pushed could not be stored", Lines: p.explain(d, err)})
				return p.fail(ctx, r, env, j, res, publishing, err, archived)
			}
			published = true
		}
		if why, skip := env.Prepared.Skips(name); skip {
			env.Note("%s skipped: %s%s", name, why, behind(name, d))
			continue
		}
		if err := p.procedure(ctx, j, r, env, proc); err != nil {
			return p.fail(ctx, r, env, j, res, name, err, archived)
		}
		if name == procedures.NameArchive {
			archived = true
		}
	}
	if d.Trigger == project.TriggerRollback {
		p.recheck(ctx, r, env, j, &res)
	}
	return p.commit(ctx, r, env, j, res, archived)
}

// behind says what it means for what a deployment brings that a procedure is left out.
func behind(procedure string, d project.Deployment) string {
	if procedure != procedures.NameReleaseSync || d.Change.Ref == "" || d.Change.New == d.Change.Old {
		return ""
	}
	return "; the branch moves all the same, and the tree stays behind it until the next deployment"
}

// publishing is where a deployment failed that could not publish what it brings: no procedure, and nothing was changed.
const publishing = "publish"

// order is what runs, and in which order: the archive first, which only reads what is live.
func (p *Pipeline) order(env *procedures.Env) []procedures.Procedure {
	if env.Deployment.Trigger == project.TriggerRollback {
		return []procedures.Procedure{procedures.Archive{}, procedures.Sync{}, procedures.Restore{}, procedures.Fixperms{}}
	}
	list := []procedures.Procedure{
		procedures.Archive{}, procedures.Sync{}, procedures.PreDeploy(), procedures.ReleaseSync{}, procedures.Fixperms{Early: true, Synced: true},
		procedures.Install{}, procedures.Fixperms{},
	}
	if env.Prepared.HasChecks(project.OnDeploy) {
		list = append(list, procedures.Checks{On: project.OnDeploy})
	}
	return append(list, procedures.PostDeploy())
}

// procedure runs one procedure between its journal entry and its event.
func (p *Pipeline) procedure(ctx context.Context, j *Journal, r *run, env *procedures.Env, proc procedures.Procedure) error {
	name := proc.Name()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	begun := p.cfg.Now()
	err := p.journal(j, Entry{Kind: Begin, Deployment: env.Deployment.ID, Procedure: name})
	if err == nil {
		r.update(func(rec *project.Record) { rec.Procedure, rec.Step, rec.Since = name, "", p.cfg.Now() })
		env.Report.Append(event.Event{Kind: event.ProcedureStart, Procedure: name, Duration: env.Usual[name]})
		begun = p.cfg.Now()
		err = env.Override(ctx, proc)
	}
	took := p.cfg.Now().Sub(begun)
	text, lines := env.TakeSummary()
	var step *procedures.Failure
	switch {
	case err == nil:
		if name != procedures.NameInstall {
			env.Timings = append(env.Timings, project.Timing{Name: name, Duration: took})
		}
		env.Report.Append(event.Event{Kind: event.ProcedureDone, Status: event.OK, Procedure: name, Duration: took, Text: text, Lines: lines})
	case errors.As(err, &step):
		// the step has reported itself
	default:
		if name != procedures.NameArchive && procedures.ShortOfSpace(err) {
			env.Relieve(err) // on a full disk the line below would be lost
		}
		lines := p.explain(env.Deployment, err)
		if fault.HintOf(err) != "" && env.Result.Reason == "" && len(lines) > 0 {
			lines = lines[:len(lines)-1] // the verdict has the hint, but that of a rollback
		}
		env.Report.Append(event.Event{
			Kind: event.Failure, Status: event.Bad, Procedure: name, Duration: took,
			Text: fmt.Sprintf("%s  failed after %s", name, humanize.Rough(took)), Lines: lines,
		})
	}
	return err
}

// explain is an error as the pusher reads it: a server fault shows the deployment's ID, the log has the rest.
func (p *Pipeline) explain(d project.Deployment, err error) []string {
	err = diskfull.Explain(err)
	if e, ok := endedBy(err); ok {
		return []string{e.why}
	}
	if fault.KindOf(err) == fault.Internal {
		p.cfg.Logger.Error().Err(p.hidden(d.ID, err)).Str("project", d.Project.String()).Str("deployment", string(d.ID)).Msg("deployment failed by the server's fault")
	}
	return procedures.ErrorLines(err)
}

// hidden is an error without the secrets of the deployment that it is of, for the server's own log.
func (p *Pipeline) hidden(id project.ID, err error) error {
	p.mu.Lock()
	r := p.byID[id]
	p.mu.Unlock()
	if r == nil {
		return errors.New("what it was stands in no log: the deployment has ended")
	}
	return r.redact.Error(err)
}

func (p *Pipeline) describe(ctx context.Context, d project.Deployment, in project.Incoming) (*project.Description, error) {
	repo, old, cur := project.Code, d.LiveCode, d.Code
	if d.Repo == project.PillarRepo {
		repo, old, cur = project.PillarRepo, d.LivePillar, d.Pillar
	}
	if cur == "" {
		return nil, nil
	}
	desc, err := p.cfg.Repository(d.Project, repo).Describe(ctx, old, cur, incomingOf(d, in, repo))
	if err != nil {
		return nil, err
	}
	return &desc, nil
}

// tracker keeps the record of a running deployment up to date while its events pass by.
type tracker struct {
	r   *run
	now func() time.Time
}

// Append implements procedures.Reporter.
func (t *tracker) Append(e event.Event) uint64 {
	if e.Kind == event.StepStart {
		t.r.update(func(rec *project.Record) { rec.Step, rec.Since = e.Step, t.now() })
	}
	t.r.tell(e)
	return t.r.log.Append(e)
}
