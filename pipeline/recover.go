package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/project"
)

// Recover completes what a dead server left unfinished: it calls FindUnfinished and ends every unfinished deployment. It runs before the first
// Start; a second call changes nothing. The error joins the errors of single projects, which are in bad; the others are recovered anyway.
func (p *Pipeline) Recover(ctx context.Context, names []project.Name, all bool) (bad map[project.Name]bool, err error) {
	list, bad, err := p.FindUnfinished(ctx, names, all)
	if bad == nil {
		return nil, err
	}
	errs := []error{err}
	for _, u := range list {
		if err := p.FinishNow(ctx, u); err != nil {
			bad[u.Project] = true
			errs = append(errs, err)
		}
	}
	return bad, errors.Join(errs...)
}

// Unfinished is a project in which a dead server left a deployment open. That deployment is in the queue: later ones wait.
type Unfinished struct {
	Project project.Name
	// finish ends the deployment; limit is the time limit for the steps that a rollback applies, 0 means none. waiting are the deployments that
	// were queued behind it.
	finish  func(ctx context.Context, limit time.Duration)
	waiting []project.Record
	// paused is the deployment if it waits for signals, and may continue.
	paused *deployment
}

// FindUnfinished examines what a dead server left unfinished: processes of its steps are killed, deployments that waited are recorded as
// refused, leftovers are removed, and each deployment that has not ended is put in the queue: Recover or Finish rolls it back or commits it
// according to its journal. It runs before the first Start. It examines the named projects, those that have unfinished records, and, if all is
// true, each one that has a journal or events. The error joins the errors of single projects, which are in bad; bad is nil if nothing could
// be examined.
func (p *Pipeline) FindUnfinished(ctx context.Context, names []project.Name, all bool) (list []Unfinished, bad map[project.Name]bool, err error) {
	var errs []error
	if n, err := execx.Reap("/proc", p.cfg.State.Processes()); err != nil {
		errs = append(errs, fmt.Errorf("end left-over processes: %w", err))
	} else if n > 0 {
		p.cfg.Logger.Warn().Int("processes", n).Msg("stopped left-over processes of steps")
	}
	look, err := p.left(ctx, names, all)
	if err != nil {
		return nil, nil, errors.Join(append(errs, err)...)
	}
	bad = map[project.Name]bool{}
	at := map[project.Name]int{}
	for _, name := range look {
		u, err := p.takeUp(ctx, name)
		switch {
		case err != nil:
			bad[name] = true
			errs = append(errs, fmt.Errorf("recover %s: %w", name, err))
		case u != nil:
			at[name] = len(list)
			list = append(list, *u)
		}
	}
	open, err := p.records.Unfinished(ctx)
	if err != nil {
		return list, bad, errors.Join(append(errs, err)...)
	}
	for _, rec := range open {
		if i, ok := at[rec.Project]; ok {
			list[i].waiting = append(list[i].waiting, rec)
		} else if rec.Trigger == project.TriggerUndeploy && rec.State == project.Running {
			finish, err := p.undeployAgain(ctx, rec)
			if err != nil {
				bad[rec.Project] = true
				errs = append(errs, err)
				continue
			}
			at[rec.Project] = len(list)
			list = append(list, Unfinished{Project: rec.Project, finish: finish})
		} else if err := p.closeRecord(ctx, rec); err != nil {
			bad[rec.Project] = true
			errs = append(errs, err)
		}
	}
	errs = append(errs, p.completeRecords(ctx))
	for _, name := range look {
		if _, ok := at[name]; !ok {
			errs = append(errs, p.Sweep(ctx, name))
		}
	}
	return list, bad, errors.Join(errs...)
}

// FinishNow ends the deployment that FindUnfinished found in a project, and returns when that is done.
func (p *Pipeline) FinishNow(ctx context.Context, u Unfinished) error {
	return p.finishOne(ctx, u, recoverySteps)
}

// recoveries is the number of projects that are recovered at the same time in the background.
const recoveries = 4

// Finish ends what FindUnfinished found, in the background: meanwhile other projects are served, and pushes to these wait. Deployments that waited for
// signals continue if they can; their signals are acceptable on return. done is called for each project, and all when none is left, but those that
// wait again for signals. Shutdown waits for them.
func (p *Pipeline) Finish(list []Unfinished, done func(project.Name, error), all func()) {
	for _, u := range list {
		if u.paused != nil {
			u.paused.reopenWaits(context.Background())
		}
	}
	p.running.Go(func() {
		var wait sync.WaitGroup
		slots := make(chan struct{}, recoveries)
		for _, u := range list {
			wait.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if u.paused != nil {
					done(u.Project, p.continueIn(u))
					return
				}
				defer p.cfg.Tools.Archives(u.Project).Pause()()
				done(u.Project, p.finishOne(context.Background(), u, 0))
			})
		}
		wait.Wait()
		all()
	})
}

// continueIn continues a deployment that waited for signals, in the background, and returns when it waits again or has ended.
func (p *Pipeline) continueIn(u Unfinished) error {
	over, err := p.cfg.Underway.Begin(u.Project)
	if err != nil {
		return err
	}
	err = p.closeWaiting(context.Background(), u)
	u.waiting = nil
	end := make(chan error, 1)
	p.running.Go(func() {
		defer p.cfg.Tools.Archives(u.Project).Pause()()
		e := p.finishOne(context.Background(), u, 0)
		if !u.paused.isSuspended() {
			over()
		}
		end <- e
	})
	select {
	case e := <-end:
		return errors.Join(err, e)
	case <-u.paused.rests:
		return err
	}
}

// finishOne ends the deployment that a project has open, and closes those that were queued behind it.
func (p *Pipeline) finishOne(ctx context.Context, u Unfinished, limit time.Duration) error {
	u.finish(ctx, limit)
	return errors.Join(p.closeWaiting(ctx, u), p.Sweep(ctx, u.Project))
}

// closeWaiting closes the deployments that were queued behind the one that a project has open.
func (p *Pipeline) closeWaiting(ctx context.Context, u Unfinished) error {
	var errs []error
	for _, rec := range u.waiting {
		if u.paused != nil && rec.ID == u.paused.rec.ID {
			continue
		}
		if now, err := p.records.Get(ctx, rec.ID); err == nil && now.State.Terminal() {
			continue
		}
		errs = append(errs, p.closeRecord(ctx, rec))
	}
	return errors.Join(errs...)
}

// left returns the projects to examine, by name.
func (p *Pipeline) left(ctx context.Context, names []project.Name, all bool) ([]project.Name, error) {
	open, err := p.records.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	set := map[project.Name]bool{}
	for _, name := range names {
		set[name] = true
	}
	for _, rec := range open {
		set[rec.Project] = true
	}
	if all {
		for _, pattern := range []string{p.cfg.State.Journal("*"), p.cfg.State.Events("*")} {
			found, err := filepath.Glob(pattern)
			if err != nil {
				return nil, err
			}
			for _, path := range found {
				if name, err := project.ParseName(strings.TrimSuffix(filepath.Base(path), journalSuffix)); err == nil {
					set[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

// journalSuffix is the suffix of a journal's name; no project's name has a dot.
const journalSuffix = ".journal"

// closeRecord ends a deployment that has no journal entry.
func (p *Pipeline) closeRecord(ctx context.Context, rec project.Record) error {
	dep, err := p.reopen(ctx, rec)
	if err != nil {
		return err
	}
	if rec.State == project.Waiting || rec.Trigger == project.TriggerPlan || rec.Trigger == project.TriggerCheck || rec.Converge.Mode == project.ConvergeReport {
		dep.refuse(&ended{why: "the server stopped while this waited", busy: true})
		dep.finish()
		return nil
	}
	if rec.Trigger == project.TriggerConverge {
		return dep.convergeCutOff(ctx)
	}
	// A task has no journal and no archive: its changes stay.
	dep.res = project.Result{
		State: project.Failed, Started: rec.At, Kind: fault.Failed.String(), Procedure: "task",
		Code: rec.LiveCode, Pillar: rec.LivePillar, Reason: "the server stopped in task " + rec.Task, Hint: "its changes were kept; run it again",
	}
	dep.log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: dep.res.Reason})
	dep.finish()
	return nil
}

// reopen reopens a recorded deployment in order to end it.
func (p *Pipeline) reopen(ctx context.Context, rec project.Record) (*deployment, error) {
	hide := p.known.Live(ctx, rec.Deployment, nil)
	p.known.Recall(ctx, rec.Deployment, nil, hide)
	log, err := p.openLog(rec.Deployment, hide)
	if err != nil {
		return nil, err
	}
	dep := p.newDeployment(rec)
	dep.log, dep.redact, dep.reopened = log, hide, true
	stopping := make(chan error, 1)
	dep.stopping = stopping
	dep.cancel = func(cause error) {
		select {
		case stopping <- cause:
		default:
		}
	}
	p.mu.Lock()
	p.byID[rec.ID] = dep
	p.enqueue(dep)
	p.mu.Unlock()
	return dep, nil
}

// takeUp checks whether a project's journal has a deployment open, and sweeps its archives and pins. u ends that deployment, which is in
// the queue; it is nil if there is none.
func (p *Pipeline) takeUp(ctx context.Context, name project.Name) (u *Unfinished, err error) {
	var j *journal.Journal
	var entries []journal.Entry
	path := p.cfg.State.Journal(name.String())
	if _, err = os.Lstat(path); err == nil {
		if j, entries, err = journal.Open(path); err == nil {
			defer func() {
				if u == nil {
					_ = j.Close()
				}
			}()
			err = j.Sync() // what follows depends on the journal, so it must be durable
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if journal.OpenEnded(entries) && journal.Changed(entries) {
		// The archive was complete before that; its name became durable with the entry, or did not.
		if err := p.cfg.Tools.Archives(name).Finish(entries[0].Facts.At, string(entries[0].Facts.ID)); err != nil {
			return nil, err
		}
	}
	if err := p.cfg.Tools.Archives(name).Sweep(); err != nil {
		p.cfg.Logger.Warn().Err(err).Str("project", name.String()).Msg("sweep archives")
	}
	if len(entries) == 0 || entries[0].Facts == nil {
		p.SweepPins(ctx, name)
		return nil, nil
	}
	if entries, err = p.decide(ctx, name, j, entries); err != nil {
		return nil, err
	}
	last, facts := entries[len(entries)-1], *entries[0].Facts
	if last.Kind == journal.Ended {
		rec, err := p.records.Get(ctx, facts.ID)
		if err != nil && fault.KindOf(err) != fault.Usage {
			return nil, err
		}
		if err == nil && rec.State.Terminal() {
			p.SweepPins(ctx, name) // a push that was pinned, but not yet accepted
			return nil, nil
		}
	}
	p.mu.Lock()
	known := p.byID[facts.ID] != nil
	p.mu.Unlock()
	if known { // LeaveWaiting left it
		return nil, nil
	}
	dep, err := p.reopen(ctx, project.Record{Deployment: facts, State: project.Running})
	if err != nil {
		return nil, err
	}
	u = &Unfinished{Project: name}
	if journal.PausedAt(entries) != nil {
		u.paused = dep
	}
	u.finish = func(ctx context.Context, limit time.Duration) {
		defer p.dropRecipes(facts.ID, p.kept.Drop)
		defer j.Close()
		dep.journal, dep.stepsLimit = j, limit
		if last.Kind == journal.Ended {
			dep.ending()
			dep.concludeAgain(ctx, last)
			dep.finish()
			p.SweepPins(ctx, name)
			return
		}
		if !dep.carryOn(ctx, entries, limit) && !dep.forward(ctx, entries, limit) {
			dep.ending() // cancelling it ends what is running for it
			if len(dep.stopping) > 0 {
				dep.endAside()
			}
			dep.recover(ctx, entries)
		}
		if dep.isSuspended() {
			dep.leaveWaiting()
			return
		}
		dep.finish()
	}
	return u, nil
}

// concludeAgain concludes a deployment whose end is in the journal but not in the table.
func (dep *deployment) concludeAgain(ctx context.Context, e journal.Entry) {
	dep.res = *e.Result
	if err := dep.prepareRecovery(ctx, dep.res.Code, dep.res.Pillar); dep.env == nil {
		dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(dep.rec.ID)).Msg("conclude")
	} else {
		dep.conclude(ctx)
	}
}

// recover ends the deployment, whose journal has these entries and no end.
func (dep *deployment) recover(ctx context.Context, entries []journal.Entry) {
	p, d, last := dep.p, dep.rec.Deployment, entries[len(entries)-1]
	code, pillar := d.LiveCode, d.LivePillar
	if last.Kind == journal.Committing {
		code, pillar = d.Code, d.Pillar
	}
	dep.pinAgain(ctx)
	err := dep.prepareRecovery(ctx, code, pillar)
	dep.res = project.Result{Started: entries[0].Time, Code: d.LiveCode, Pillar: d.LivePillar, Kind: fault.Failed.String()}
	if dep.env == nil {
		dep.res.State, dep.res.Reason = project.Failed, texts.Short(err)
		return
	}
	if err != nil {
		// Without its old configuration the permissions can't be fixed, but the tree can be restored.
		dep.log.Append(event.Event{Kind: event.Note, Text: "the configuration of " + code.Short() + " can't be read: " + texts.Short(err)})
	}
	if last.Kind == journal.Committing {
		dep.resumeCommit(ctx, last.Changes)
		return
	}
	if c := journal.First(entries, journal.Committing); c != nil {
		if err := dep.revert(ctx, c.Changes); err != nil {
			p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("move the branch back")
		}
	}
	res := &dep.res
	if f := journal.First(entries, journal.Failing); f != nil && f.Result != nil {
		res.Procedure, res.Step, res.StateID, res.Kind = f.Result.Procedure, f.Result.Step, f.Result.StateID, f.Result.Kind
	}
	res.Reason = "the server stopped " + journal.Place(entries)
	if dep.broken != "" {
		res.Reason += ", and cannot continue: " + dep.broken
	}
	res.Hint = "push the same commit again to try again"
	note := func(what string) { dep.log.Append(event.Event{Kind: event.Note, Text: res.Reason + what}) }
	switch {
	case !journal.Changed(entries):
		res.State = project.RolledBack // there is nothing to restore
		note("; nothing was changed yet")
		dep.undoRollout(ctx, false) // nodes may be waiting for the order to continue
	case journal.Keeps(entries) || dep.env.Prepared.Dev():
		res.State = project.Failed
		note("; the failed tree stays in place")
		dep.undoRollout(ctx, true)
	default:
		note("; restoring the previous release")
		dep.env.FreeSpace(nil)
		if _, err := p.cfg.Tools.Archives(d.Project).Show(string(d.ID)); err == nil {
			// The entry of the procedure that began last need not be durable: the steps may have begun.
			dep.stepsBegan = true
			for _, e := range entries {
				if e.Kind == journal.RollingBack {
					dep.rollbacks++
				}
			}
			dep.rollback(ctx)
		} else {
			res.State = project.Failed
			res.Hint = "there is no archive of the previous tree; check the live tree, then push the same commit again"
		}
	}
	dep.end()
}

// pinAgain recreates the pins of an archive that were lost in a power cut.
func (dep *deployment) pinAgain(ctx context.Context) {
	p, d := dep.p, dep.rec.Deployment
	if _, err := p.cfg.Tools.Archives(d.Project).Show(string(d.ID)); err != nil {
		return // it has none
	}
	for _, pin := range livePins(d) {
		repo := p.cfg.Repository(d.Project, pin.Repo)
		at, err := repo.Get(ctx, pin.Change.Ref)
		if err == nil && at == "" {
			err = repo.CompareAndSwap(ctx, pin.Change)
		}
		if err != nil {
			p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("pin what the archive holds")
		}
	}
}

// recoverySteps limits the duration of steps that a recovery applies while a command waits for it.
const recoverySteps = 30 * time.Second

// prepareRecovery builds the environment for what recovery runs; its configuration is that of the commits that are, or will be, live. If that
// can't be read, the error says why, and the environment has no configuration; it is nil if it can't be built at all.
func (dep *deployment) prepareRecovery(ctx context.Context, code, pillar project.Commit) error {
	p, d := dep.p, dep.rec.Deployment
	set, err := p.cfg.Settings(ctx, d.Project)
	environment := set.Environment
	if err != nil {
		set = Settings{}
	}
	dep.env = dep.environment(ctx, p.cfg.Tools, set)
	if err == nil {
		old := d
		old.Code, old.Pillar, old.Change = code, pillar, project.Change{}
		var src procedures.Sources
		if src, err = p.sources(ctx, old, set, nil); err == nil {
			src.Private = p.cfg.State.Recipe(string(d.ID), brought)
			dep.env.Prepared, err = procedures.PrepareRollback(ctx, p.cfg.Tools, old, src, dep.redact)
		}
	}
	if err != nil {
		var bare error
		if dep.env.Prepared, bare = procedures.Bare(ctx, p.cfg.Tools, d, environment, dep.redact); bare != nil {
			dep.env = nil
			return errors.Join(err, bare)
		}
	}
	return err
}
