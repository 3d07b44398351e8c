package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
)

// pinPrefix is where the commits of deployments are kept from collection; receive never shows it.
const pinPrefix = "refs/corpus/deployments/"

// deploy runs one deployment whose turn has come.
func (p *Pipeline) deploy(ctx context.Context, r *run, set Settings) project.Result {
	// What is done to archives in the background waits: the disk is the deployment's, and so are the archives it finds.
	defer p.cfg.Tools.Archives(r.record().Project).Pause()()
	d, err := p.resolve(ctx, r.record().Deployment, set)
	if err != nil {
		return p.refuse(r, err)
	}
	r.update(func(rec *project.Record) { rec.Deployment = d })
	tools, end := p.cfg.Tools.Open()
	defer func() {
		if err := end(); err != nil {
			p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("end the runner of steps")
		}
	}()
	env, err := p.prepare(ctx, r, tools, d, set)
	if err != nil {
		return p.refuse(r, err)
	}
	switch d.Trigger {
	case project.TriggerPlan:
		return p.plan(ctx, r, env)
	case project.TriggerTask:
		return p.task(ctx, r, env)
	}
	j, _, err := OpenJournal(p.cfg.State.Journal(d.Project.String()))
	if err != nil {
		return p.refuse(r, err)
	}
	defer j.Close()
	if err := p.accept(ctx, r, d, j); err != nil {
		return p.refuse(r, err)
	}
	return p.execute(ctx, r, env, j)
}

// resolve fills in the commits that a deployment is about, now that nothing else runs.
func (p *Pipeline) resolve(ctx context.Context, d project.Deployment, set Settings) (project.Deployment, error) {
	if set.RemoteLess {
		if d.Change.Ref != "" {
			return d, fault.New(fault.Refused, "push", "%s is remote-less: it has no repositories to push to", d.Project).
				WithHint("deploy it on its machine:  corpus-git deploy %s", d.Project)
		}
		return d, nil
	}
	if d.Change.Ref != "" {
		if err := p.compare(ctx, d); err != nil {
			return d, err
		}
	}
	d.LiveCode = p.commitOf(ctx, d.Project, project.Code)
	d.LivePillar = p.commitOf(ctx, d.Project, project.PillarRepo)
	d.Code, d.Pillar = d.LiveCode, d.LivePillar
	switch {
	case d.Trigger == project.TriggerRollback:
		a, err := p.findArchive(ctx, d)
		if err != nil {
			return d, err
		}
		d.Restore = a.ID
		d.Code, d.Pillar = a.Code, a.Pillar
	case d.Change.Ref != "" && d.Repo == project.PillarRepo:
		d.Pillar = d.Change.New
	case d.Change.Ref != "":
		d.Code = d.Change.New
	}
	if d.Code == "" && d.Pillar == "" {
		return d, fault.New(fault.Refused, string(d.Trigger), "%s has no code yet", d.Project).WithHint("push a branch  master  or  main  first")
	}
	return d, nil
}

// prepare builds the environment of the procedures and checks everything that can be checked now.
func (p *Pipeline) prepare(ctx context.Context, r *run, tools *procedures.Tools, d project.Deployment, set Settings) (*procedures.Env, error) {
	src, err := p.sources(ctx, d, set, r.in)
	if err != nil {
		return nil, err
	}
	prep, err := procedures.Prepare(ctx, tools, d, src, r.redact)
	if err != nil {
		return nil, err
	}
	return &procedures.Env{
		Tools: tools, Deployment: d, Paths: p.cfg.Root.Project(d.Project.String()), Report: &tracker{r, p.cfg.Now}, Prepared: prep,
		ArchiveName: layout.ArchiveName(d.At, string(d.ID)), Usual: p.records.usual(ctx, d.Project), RemoteLess: set.RemoteLess, Unlinked: set.Unlinked,
	}, nil
}

func (p *Pipeline) sources(ctx context.Context, d project.Deployment, set Settings, in project.Incoming) (procedures.Sources, error) {
	src := procedures.Sources{Environment: set.Environment, RemoteLess: set.RemoteLess}
	paths := p.cfg.Root.Project(d.Project.String())
	if set.RemoteLess || d.Trigger == project.TriggerTask {
		src.Code, src.Pillar = dirWith(paths.Live(), ""), dirWith(paths.Pillar(), layout.PillarFile)
		return src, nil
	}
	// What was pushed belongs to one of the two repositories.
	of := func(repo project.Repo) project.Incoming {
		if repo == d.Repo {
			return in
		}
		return nil
	}
	var err error
	if d.Code != "" {
		if src.Code, err = p.cfg.Repos.Tree(ctx, d.Project, project.Code, d.Code, of(project.Code)); err != nil {
			return src, fault.New(fault.KindOf(err), "read commit "+d.Code.Short(), "%w", err)
		}
	}
	if d.Pillar != "" {
		if src.Pillar, err = p.cfg.Repos.Tree(ctx, d.Project, project.PillarRepo, d.Pillar, of(project.PillarRepo)); err != nil {
			return src, fault.New(fault.KindOf(err), "read pillar commit "+d.Pillar.Short(), "%w", err)
		}
	}
	return src, nil
}

// dirWith is a folder as a file system, nil where it, or the file in it that is wanted, is missing.
func dirWith(path, file string) fs.FS {
	if _, err := os.Stat(filepath.Join(path, file)); err != nil {
		return nil
	}
	return os.DirFS(path)
}

// accept publishes what the push brought, pins both commits and opens the journal: from here on a crash is recovered from.
func (p *Pipeline) accept(ctx context.Context, r *run, d project.Deployment, j *Journal) error {
	if r.in != nil {
		if err := r.in.Migrate(ctx); err != nil {
			return fault.New(fault.Internal, "publish objects", "%w", err)
		}
	}
	for _, pin := range pins(d) {
		if err := p.cfg.Repos.CompareAndSwap(ctx, d.Project, pin.Repo, pin.Change); err != nil {
			return fault.New(fault.Internal, "pin commits", "%w", err)
		}
	}
	if err := p.journal(j, Entry{Kind: Accepted, Deployment: d.ID, Facts: &d}); err != nil {
		return err
	}
	rec := r.update(func(rec *project.Record) { rec.State, rec.Since = project.Running, p.cfg.Now() })
	if err := p.records.put(ctx, rec); err != nil {
		return fault.New(fault.Internal, "record deployment", "%w", err)
	}
	return nil
}

func pins(d project.Deployment) []RefChange {
	var out []RefChange
	if d.Code != "" {
		out = append(out, RefChange{Repo: project.Code, Change: project.Change{Ref: pinPrefix + string(d.ID), New: d.Code}})
	}
	if d.Pillar != "" {
		out = append(out, RefChange{Repo: project.PillarRepo, Change: project.Change{Ref: pinPrefix + string(d.ID), New: d.Pillar}})
	}
	return out
}

func (p *Pipeline) journal(j *Journal, e Entry) error {
	e.Time = p.cfg.Now()
	if err := j.Append(e); err != nil {
		return fault.New(fault.Internal, "journal", "%w", err)
	}
	point := string(e.Kind)
	if e.Procedure != "" {
		point += " " + e.Procedure
	}
	p.cfg.Boundary(point)
	return nil
}

// execute runs the procedures and ends in a result, whatever happens.
func (p *Pipeline) execute(ctx context.Context, r *run, env *procedures.Env, j *Journal) project.Result {
	d := env.Deployment
	begun := p.cfg.Now()
	desc, err := p.describe(ctx, d)
	if err != nil {
		p.cfg.Logger.Warn().Err(err).Str("deployment", string(d.ID)).Msg("describe")
	}
	r.log.Append(headline(d, desc, r.redact.String))
	for _, n := range env.Prepared.Notes {
		r.log.Append(event.Event{Kind: event.Note, Text: n})
	}
	res := project.Result{Started: begun}
	archived := false
	for _, proc := range p.order(d) {
		name := proc.Name()
		if why, skip := env.Prepared.Skips(name); skip {
			env.Note("%s skipped: %s", name, why)
			continue
		}
		if err := p.procedure(ctx, j, r, env, proc); err != nil {
			return p.fail(ctx, r, env, j, res, name, err, archived)
		}
		if name == procedures.NameArchive {
			archived = true
		}
	}
	return p.commit(ctx, r, env, j, res, archived)
}

// order is what runs, and in which order.
func (p *Pipeline) order(d project.Deployment) []procedures.Procedure {
	if d.Trigger == project.TriggerRollback {
		return []procedures.Procedure{procedures.Archive{}, procedures.Sync{}, procedures.Restore{}, procedures.Fixperms{}}
	}
	return []procedures.Procedure{
		procedures.Archive{}, procedures.Sync{}, procedures.PreDeploy(), procedures.ReleaseSync{}, procedures.Fixperms{},
		procedures.Install{}, procedures.Fixperms{}, procedures.PostDeploy(),
	}
}

// procedure runs one procedure between its journal entry and its event.
func (p *Pipeline) procedure(ctx context.Context, j *Journal, r *run, env *procedures.Env, proc procedures.Procedure) error {
	name := proc.Name()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := p.journal(j, Entry{Kind: Begin, Deployment: env.Deployment.ID, Procedure: name}); err != nil {
		return err
	}
	r.update(func(rec *project.Record) { rec.Procedure, rec.Step, rec.Since = name, "", p.cfg.Now() })
	env.Report.Append(event.Event{Kind: event.ProcedureStart, Procedure: name, Duration: env.Usual[name]})
	begun := p.cfg.Now()
	err := env.Override(ctx, proc)
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
		env.Report.Append(event.Event{
			Kind: event.Failure, Status: event.Bad, Procedure: name, Duration: took,
			Text: fmt.Sprintf("%s  failed after %s", name, event.Rough(took)), Lines: p.explain(env.Deployment, err),
		})
	}
	return err
}

// explain is an error as the pusher reads it: a server fault shows the deployment's ID, the log has the rest.
func (p *Pipeline) explain(d project.Deployment, err error) []string {
	if e, ok := endedBy(err); ok {
		return []string{e.why}
	}
	if fault.KindOf(err) == fault.Internal {
		p.cfg.Logger.Error().Err(err).Str("project", d.Project.String()).Str("deployment", string(d.ID)).Msg("deployment failed by the server's fault")
	}
	return procedures.ErrorLines(err)
}

// fail ends a deployment that did not succeed: rolled back, or as it fell where its environment is dev.
func (p *Pipeline) fail(ctx context.Context, r *run, env *procedures.Env, j *Journal, res project.Result, name string, cause error, archived bool) project.Result {
	ctx = context.WithoutCancel(ctx)
	p.blame(&res, env, name, cause)
	d := env.Deployment
	keep := env.Prepared.Environment() == "dev"
	_, skipped := env.Prepared.Skips(procedures.NameRollback)
	if name == procedures.NameArchive {
		// Nothing has changed yet: there is nothing to roll back.
		res.State, res.Code, res.Pillar = project.RolledBack, d.LiveCode, d.LivePillar
		p.end(r, env, j, &res)
		return res
	}
	if err := p.journal(j, Entry{Kind: Failing, Deployment: d.ID, Procedure: name, Keep: keep || skipped || !archived, Result: &res}); err != nil {
		p.cfg.Logger.Error().Err(err).Msg("journal")
	}
	res.Code, res.Pillar = d.LiveCode, d.LivePillar
	switch {
	case keep:
		res.State = project.Failed
		r.log.Append(event.Event{Kind: event.Note, Text: "environment dev: the tree stays as it fell"})
	case skipped:
		res.State = project.Failed
		r.log.Append(event.Event{Kind: event.Note, Text: "rollback was skipped: the tree stays as it fell"})
	case !archived:
		res.State = project.Failed
		r.log.Append(event.Event{Kind: event.Note, Text: "archive was skipped: there is nothing to roll back to, the tree stays as it fell"})
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
		res.Hint = fmt.Sprintf("see it whole with  corpus-git logs %s %s%s", env.Deployment.Project, env.Deployment.ID.Short(), again)
	}
}

// rollback brings the archived tree back, and mends its permissions.
func (p *Pipeline) rollback(ctx context.Context, r *run, env *procedures.Env, j *Journal, res *project.Result) {
	env.Result = *res
	if err := p.journal(j, Entry{Kind: RollingBack, Deployment: env.Deployment.ID, Archive: env.ArchiveName}); err != nil {
		p.cfg.Logger.Error().Err(err).Msg("journal")
	}
	if err := p.procedure(ctx, j, r, env, procedures.Rollback{}); err != nil {
		res.State = project.Failed
		res.Reason += "; the rollback failed too"
		res.Hint = fmt.Sprintf("the tree before this deployment is in %s; put it back with  corpus-git rollback %s", env.ArchiveDir(), env.Deployment.Project)
		return
	}
	res.State = project.RolledBack
	if _, skip := env.Prepared.Skips(procedures.NameFixperms); !skip {
		if err := p.procedure(ctx, j, r, env, procedures.Fixperms{}); err != nil {
			r.log.Append(event.Event{Kind: event.Note, Text: "the tree is back, but its permissions could not all be mended"})
		}
	}
}

// commit moves the branch: the deployment is live.
func (p *Pipeline) commit(ctx context.Context, r *run, env *procedures.Env, j *Journal, res project.Result, archived bool) project.Result {
	if err := context.Cause(ctx); err != nil {
		return p.fail(ctx, r, env, j, res, procedures.NameInstall, err, archived)
	}
	ctx = context.WithoutCancel(ctx)
	d := env.Deployment
	changes, err := p.changes(ctx, d)
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
		ref, err := p.cfg.Repos.Deployed(ctx, d.Project, d.Repo)
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
		repo     project.Repo
		old, new project.Commit
	}{{project.Code, d.LiveCode, d.Code}, {project.PillarRepo, d.LivePillar, d.Pillar}} {
		if x.old == x.new {
			continue // a tree from before the first pillar has none: then its branch goes
		}
		ref, err := p.cfg.Repos.Deployed(ctx, d.Project, x.repo)
		if err != nil {
			return nil, err
		}
		out = append(out, RefChange{Repo: x.repo, Change: project.Change{Ref: ref, Old: x.old, New: x.new}})
	}
	return out, nil
}

// apply moves refs; one that is where it should be already is left, so it can be run again after a crash.
func (p *Pipeline) apply(ctx context.Context, name project.Name, changes []RefChange) error {
	for _, c := range changes {
		cur, err := p.cfg.Repos.Get(ctx, name, c.Repo, c.Change.Ref)
		if err != nil {
			return err
		}
		if cur != c.Change.New {
			if err := p.cfg.Repos.CompareAndSwap(ctx, name, c.Repo, c.Change); err != nil {
				return err
			}
		}
		if c.Head {
			if err := p.cfg.Repos.SetDeployed(ctx, name, c.Repo, c.Change.Ref); err != nil {
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
		cur, err := p.cfg.Repos.Get(ctx, name, c.Repo, c.Change.Ref)
		if err == nil && cur == c.Change.New && cur != c.Change.Old {
			err = p.cfg.Repos.CompareAndSwap(ctx, name, c.Repo, project.Change{Ref: c.Change.Ref, Old: c.Change.New, New: c.Change.Old})
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
	env.Result = *res
	if err := env.Retain(res.State); err != nil {
		r.log.Append(event.Event{Kind: event.Note, Text: "old archives were not rotated: " + strings.Join(p.explain(env.Deployment, err), " ")})
	}
	live := project.ID("")
	if res.State == project.Live {
		live = env.Deployment.ID
	}
	p.sweepPins(ctx, env.Deployment.Project, live)
	if _, skip := env.Prepared.Skips(procedures.NameNotify); !skip {
		if err := env.Override(ctx, procedures.Notify{}); err != nil {
			env.Note("notify: %s", strings.Join(p.explain(env.Deployment, err), " "))
		}
		env.TakeSummary()
	}
}

// sweepPins drops the pins of deployments that can neither be live nor be restored: those without an archive, but for keep.
func (p *Pipeline) sweepPins(ctx context.Context, name project.Name, keep project.ID) {
	list, err := p.cfg.Tools.Archives(name).List()
	if err != nil {
		p.cfg.Logger.Warn().Err(err).Str("project", name.String()).Msg("drop pins")
		return
	}
	wanted := map[project.ID]bool{keep: true}
	for _, a := range list {
		wanted[project.ID(a.ID)] = true
	}
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		refs, err := p.cfg.Repos.List(ctx, name, repo, pinPrefix)
		if err != nil {
			continue
		}
		for ref, c := range refs {
			if wanted[project.ID(strings.TrimPrefix(ref, pinPrefix))] {
				continue
			}
			if err := p.cfg.Repos.CompareAndSwap(ctx, name, repo, project.Change{Ref: ref, Old: c}); err != nil {
				p.cfg.Logger.Warn().Err(err).Str("ref", ref).Msg("drop pin")
			}
		}
	}
}

// refuse ends a deployment before anything ran.
func (p *Pipeline) refuse(r *run, err error) project.Result {
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

func (p *Pipeline) describe(ctx context.Context, d project.Deployment) (*project.Description, error) {
	repo, old, cur := project.Code, d.LiveCode, d.Code
	if d.Repo == project.PillarRepo {
		repo, old, cur = project.PillarRepo, d.LivePillar, d.Pillar
	}
	if cur == "" {
		return nil, nil
	}
	desc, err := p.cfg.Repos.Describe(ctx, d.Project, repo, old, cur, nil)
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
	return t.r.log.Append(e)
}
