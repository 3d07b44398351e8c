package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/procedures/resume"
	"corpus-git/procedures/waiting"
	"corpus-git/project"
)

// pause is procedures.Env.Pause.
func (dep *deployment) pause(at resume.Paused) error {
	if err := dep.log.Sync(); err != nil {
		dep.p.cfg.Logger.Warn().Err(err).Str("deployment", string(dep.rec.ID)).Msg("sync the log before a wait")
	}
	if err := dep.enter(journal.Entry{Kind: journal.Waiting, Paused: &at}); err != nil {
		return err
	}
	dep.restsOnce.Do(func() { close(dep.rests) })
	dep.p.mu.Lock()
	defer dep.p.mu.Unlock()
	dep.resting = at.Lost == ""
	if dep.p.stopping {
		dep.suspend()
	}
	return nil
}

// goes is procedures.Env.Goes.
func (dep *deployment) goes() error {
	dep.p.mu.Lock()
	dep.resting = false
	left := dep.suspended
	dep.p.mu.Unlock()
	if left {
		return waiting.ErrSuspended
	}
	return dep.enter(journal.Entry{Kind: journal.Waited})
}

// restsOrGoes is procedures.Env.Rests.
func (dep *deployment) restsOrGoes(rests bool) {
	dep.p.mu.Lock()
	defer dep.p.mu.Unlock()
	if dep.resting = rests && dep.mayRollOutLater(); dep.p.stopping {
		dep.suspend()
	}
}

// mayRollOutLater reports whether the next process of this server can continue a rollout: secrets that were set for it are stored nowhere.
func (dep *deployment) mayRollOutLater() bool {
	rec := dep.record()
	return rec.Procedure == procedures.NameRollout && dep.p.cfg.Tools.Signals != nil && !slices.ContainsFunc(rec.Set, func(s project.Setting) bool { return s.Secret })
}

// suspend leaves a deployment that waits to the next process of the server. Called with p.mu held.
func (dep *deployment) suspend() {
	dep.mu.Lock()
	past := dep.past
	dep.mu.Unlock()
	if dep.resting && !past && !dep.suspended {
		dep.suspended = true
		dep.cancel(waiting.ErrSuspended)
	}
}

func (dep *deployment) isSuspended() bool {
	dep.p.mu.Lock()
	defer dep.p.mu.Unlock()
	return dep.suspended
}

// Suspended reports whether a deployment waits for the next process of the server: the state must not be marked as cleanly left.
func (p *Pipeline) Suspended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, dep := range p.byID {
		if dep.suspended || dep.left {
			return true
		}
	}
	return false
}

// leaveWaiting tells the followers of a suspended deployment that this process is done with it. It stays in the queue, and its record open.
func (dep *deployment) leaveWaiting() {
	d, what := dep.rec.Deployment, "waiting for signals"
	if dep.mayRollOutLater() {
		what = "in rollout"
	}
	dep.res = texts.Left(d, what)
	dep.log.Append(event.Event{Kind: event.Hint, Text: dep.res.Hint})
	dep.log.Append(event.Event{Kind: event.Note, Status: event.Bad, Text: dep.res.Reason})
	err := errors.Join(dep.p.records.Put(context.Background(), dep.shown()), dep.log.Close())
	if !dep.reopened {
		err = errors.Join(err, dep.journal.Close())
	}
	if err != nil {
		dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("leave a deployment that waits")
	}
	close(dep.ended)
}

// LeaveWaiting leaves a deployment that waits for signals to the next process of the server: this one is none. Until then the project has no other
// deployment, and cancelling it rolls it back. It reports false, and does nothing, if the deployment does not wait.
func (p *Pipeline) LeaveWaiting(u Unfinished) bool {
	dep := u.paused
	if dep == nil || dep.broken != "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	dep.left = true
	dep.cancel = func(cause error) { // by Cancel, with mu held
		if dep.left {
			dep.left, dep.broken = false, cause.Error()
			p.running.Go(func() { _ = p.finishOne(context.Background(), u, recoverySteps) })
		}
	}
	return true
}

// carryOn continues a deployment that waited for signals when the server ended, if everything that it depends on is still the same. done reports that
// this ended or suspended it; otherwise broken says why not. A command that does this instead of a server (limit is not 0) continues nothing.
func (dep *deployment) carryOn(ctx context.Context, entries []journal.Entry, limit time.Duration) (done bool) {
	at := journal.PausedAt(entries)
	if at == nil {
		return false
	}
	p, d := dep.p, dep.rec.Deployment
	tools, end := p.cfg.Tools.Open()
	defer func() {
		if err := end(); err != nil {
			p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("end the runner of steps")
		}
	}()
	dep.tools = tools
	if err := dep.mayContinue(ctx, *at, limit); err != nil {
		dep.broken, dep.env, dep.tools = texts.Short(err), nil, nil
		p.dropRecipes(d.ID, p.kept.Drop)
		return false
	}
	dep.pinAgain(ctx)
	ctx, cancel := context.WithDeadlineCause(ctx, entries[0].Time.Add(p.cfg.Deadline), &ended{why: "deadline of " + p.cfg.Deadline.String() + " exceeded"})
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p.mu.Lock()
	dep.cancel, dep.continued = stop, true
	select {
	case cause := <-dep.stopping:
		stop(cause)
	default:
	}
	p.mu.Unlock()
	dep.log.Append(event.Event{Kind: event.Note, Text: "the server was started again: " + at.Step + " waits for " + at.Wait})
	dep.res = project.Result{Started: entries[0].Time}
	dep.begun, dep.published, dep.archived, dep.stepsBegan = true, true, true, true
	list := dep.order()
	from := slices.IndexFunc(list, func(proc procedures.Procedure) bool { return proc.Name() == procedures.NameInstall })
	dep.runAll(ctx, list[from:])
	return true
}

// mayContinue prepares the deployment again, and compares it with what was recorded. The error says why it cannot continue.
func (dep *deployment) mayContinue(ctx context.Context, at resume.Paused, limit time.Duration) (err error) {
	p, d := dep.p, dep.rec.Deployment
	refused := func(format string, args ...any) error { return fault.New(fault.Refused, "", format, args...) }
	switch {
	case dep.broken != "":
		return refused("%s", dep.broken)
	case at.Lost != "":
		return refused("%s", at.Lost)
	case limit > 0:
		return refused("no server was running")
	}
	for _, s := range d.Set {
		if s.Secret && s.Value == "" {
			return refused("the value of %s was secret and is not stored", s.Key)
		}
	}
	for e, err := range event.Read(p.cfg.State.EventLog(d.Project.String(), string(d.ID)), 0) {
		if err != nil {
			return err
		}
		dep.keepOutput(e)
	}
	dep.continuing = true
	if dep.set, err = p.cfg.Settings(ctx, d.Project); err != nil {
		return err
	}
	if err := dep.recoverPanic("prepare", func() error { return dep.prepare(ctx) }); err != nil {
		return err
	}
	if err := dep.env.Prepared.Store(ctx, dep.tools, d.Project); err != nil {
		return err
	}
	if err := dep.env.OpenUndo(); err != nil {
		return err
	}
	return dep.env.Continue(at)
}

// reopenWaits makes the signals of a deployment that may continue acceptable, before anybody can send one.
func (dep *deployment) reopenWaits(ctx context.Context) {
	to := dep.p.cfg.Tools.Signals
	if to == nil {
		dep.broken = "no server receives signals"
		return
	}
	if err := to.Reopen(ctx, dep.rec.ID, dep.redact.String); err != nil {
		dep.broken = texts.Short(err)
	}
}
