package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
)

// Recover finishes what a dead server left: processes of its steps are ended, each unfinished deployment is
// rolled back or committed by what its journal says, deployments that waited are recorded as refused, leftovers
// are swept. It runs before the first Start; a second call changes nothing. The error joins those of single
// projects; the others are recovered all the same.
func (p *Pipeline) Recover(ctx context.Context) error {
	var errs []error
	if n, err := execx.Reap("/proc", p.cfg.State.Path()); err != nil {
		errs = append(errs, fmt.Errorf("end left-over processes: %w", err))
	} else if n > 0 {
		p.cfg.Logger.Warn().Int("processes", n).Msg("ended processes of steps that outlived the server")
	}
	journals, err := filepath.Glob(filepath.Join(p.cfg.State.Journals(), "*.journal"))
	if err != nil {
		return err
	}
	for _, path := range journals {
		name, err := project.ParseName(strings.TrimSuffix(filepath.Base(path), ".journal"))
		if err != nil {
			continue
		}
		if err := p.recoverProject(ctx, name, path); err != nil {
			errs = append(errs, fmt.Errorf("recover %s: %w", name, err))
		}
	}
	open, err := p.records.unfinished(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, rec := range open {
		errs = append(errs, p.closeRecord(ctx, rec))
	}
	return errors.Join(errs...)
}

// closeRecord ends a deployment that never got as far as its journal.
func (p *Pipeline) closeRecord(ctx context.Context, rec project.Record) error {
	r, err := p.reopen(ctx, rec)
	if err != nil {
		return err
	}
	p.finish(r, p.refuse(r, &ended{why: "the server stopped while this waited", busy: true}))
	return nil
}

// reopen makes a run of a recorded deployment, to end it.
func (p *Pipeline) reopen(ctx context.Context, rec project.Record) (*run, error) {
	hide := p.liveRedactor(ctx, rec.Deployment, nil)
	log, err := event.Create(p.cfg.State.EventLog(rec.Project.String(), string(rec.ID)), p.cfg.Now, hide)
	if err != nil {
		return nil, err
	}
	r := &run{rec: rec, log: log, redact: hide, cancel: func(error) {}, ended: make(chan struct{}), turn: make(chan struct{})}
	p.mu.Lock()
	p.byID[rec.ID] = r
	p.enqueue(r)
	p.mu.Unlock()
	return r, nil
}

func (p *Pipeline) recoverProject(ctx context.Context, name project.Name, path string) error {
	j, entries, err := OpenJournal(path)
	if err != nil {
		return err
	}
	defer j.Close()
	if err := p.cfg.Tools.Archives(name).Sweep(); err != nil {
		p.cfg.Logger.Warn().Err(err).Str("project", name.String()).Msg("sweep archives")
	}
	if len(entries) == 0 || entries[0].Facts == nil {
		return nil
	}
	last, facts := entries[len(entries)-1], *entries[0].Facts
	if last.Kind == Ended {
		return p.finishRecorded(ctx, facts, last)
	}
	r, err := p.reopen(ctx, project.Record{Deployment: facts, State: project.Running})
	if err != nil {
		return err
	}
	p.finish(r, p.recover(ctx, r, j, entries, last))
	return nil
}

// finishRecorded completes the record of a deployment whose end is in the journal but not in the table.
func (p *Pipeline) finishRecorded(ctx context.Context, d project.Deployment, e Entry) error {
	rec, err := p.records.get(ctx, d.ID)
	if err == nil && rec.State.Terminal() {
		return nil
	}
	if err != nil && fault.KindOf(err) != fault.Usage {
		return err
	}
	r, err := p.reopen(ctx, project.Record{Deployment: d, State: project.Running})
	if err != nil {
		return err
	}
	p.finish(r, *e.Result)
	return nil
}

// recover ends the deployment whose journal stops at last.
func (p *Pipeline) recover(ctx context.Context, r *run, j *Journal, entries []Entry, last Entry) project.Result {
	d := r.rec.Deployment
	where := place(entries)
	env, err := p.recoveryEnv(ctx, r, d)
	res := project.Result{Started: entries[0].Time, Code: d.LiveCode, Pillar: d.LivePillar, Kind: fault.Failed.String()}
	if env == nil {
		res.State, res.Reason = project.Failed, shortReason(err)
		return res
	}
	if err != nil {
		// Without its old configuration the permissions can't be mended, but the tree can come back.
		r.log.Append(event.Event{Kind: event.Note, Text: "the configuration of " + d.LiveCode.Short() + " can't be read: " + shortReason(err)})
	}
	if last.Kind == Committing {
		r.log.Append(event.Event{Kind: event.Note, Text: "the server stopped while the branch moved; everything had run, so it moves now"})
		if err := p.apply(ctx, d.Project, last.Changes); err != nil {
			res.State, res.Reason = project.Failed, "the branch could not be moved: "+shortReason(err)
			res.Hint = "the new tree is live; push the same commit again"
		} else {
			res.State, res.Code, res.Pillar = project.Live, d.Code, d.Pillar
		}
		p.end(r, env, j, &res)
		return res
	}
	res.Reason = "the server stopped " + where
	res.Hint = "push the same commit again to try again"
	if keepsFailure(entries) || (env.Prepared.Environment() == "dev" && begun(entries, procedures.NameSync)) {
		res.State = project.Failed
		r.log.Append(event.Event{Kind: event.Note, Text: res.Reason + "; the tree stays as it fell"})
		p.end(r, env, j, &res)
		return res
	}
	r.log.Append(event.Event{Kind: event.Note, Text: res.Reason + "; bringing back what was live before"})
	_, err = p.cfg.Tools.Archives(d.Project).Show(string(d.ID))
	switch {
	case err == nil:
		p.rollback(ctx, r, env, j, &res)
	case !begun(entries, procedures.NameSync) && !begun(entries, procedures.NameReleaseSync):
		res.State = project.RolledBack // it stopped before anything was changed
	default:
		res.State = project.Failed
		res.Hint = "there is no archive of the tree before it; look at the tree, then push the same commit again"
	}
	p.end(r, env, j, &res)
	return res
}

// recoveryEnv is the environment of a rollback: the configuration is that of what was live.
func (p *Pipeline) recoveryEnv(ctx context.Context, r *run, d project.Deployment) (*procedures.Env, error) {
	env := &procedures.Env{
		Tools: p.cfg.Tools, Deployment: d, Paths: p.cfg.Root.Project(d.Project.String()), Report: &tracker{r, p.cfg.Now},
		ArchiveName: layout.ArchiveName(d.At, string(d.ID)), Usual: p.records.usual(ctx, d.Project),
	}
	set, err := p.cfg.Settings(ctx, d.Project)
	if err == nil {
		env.RemoteLess = set.RemoteLess
		old := d
		old.Code, old.Pillar, old.Change = d.LiveCode, d.LivePillar, project.Change{}
		var src procedures.Sources
		if src, err = p.sources(ctx, old, set, nil); err == nil {
			env.Prepared, err = procedures.PrepareRollback(ctx, p.cfg.Tools, old, src, r.redact)
		}
	}
	if err != nil {
		var bare error
		if env.Prepared, bare = procedures.Bare(ctx, p.cfg.Tools, d, set.Environment, r.redact); bare != nil {
			return nil, errors.Join(err, bare)
		}
	}
	return env, err
}

// place says where a deployment stopped.
func place(entries []Entry) string {
	last := entries[len(entries)-1]
	switch last.Kind {
	case Begin:
		return "in " + last.Procedure
	case Failing:
		if last.Result != nil && last.Result.Reason != "" {
			return "after it had " + last.Result.Reason
		}
		return "after it had failed"
	case RollingBack:
		return "during the rollback"
	}
	return "before it began"
}

func begun(entries []Entry, procedure string) bool {
	for _, e := range entries {
		if e.Kind == Begin && e.Procedure == procedure {
			return true
		}
	}
	return false
}

func keepsFailure(entries []Entry) bool {
	for _, e := range entries {
		if e.Kind == Failing {
			return e.Keep
		}
	}
	return false
}

// Sweep removes what belongs to no project and no deployment any more: event logs without a record.
func (p *Pipeline) Sweep(ctx context.Context, name project.Name) error {
	dir := p.cfg.State.Events(name.String())
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".jsonl")
		if !ok {
			continue
		}
		if _, err := p.records.get(ctx, project.ID(id)); fault.KindOf(err) == fault.Usage && err != nil {
			removeQuietly(filepath.Join(dir, f.Name()))
		}
	}
	return nil
}
