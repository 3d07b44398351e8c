package pipeline

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// queue is the queue of one project: the first element runs, the others wait in the order of arrival.
type queue struct {
	all []*deployment
}

// errStopping ends what is waiting when the server shuts down.
var errStopping = fault.New(fault.Busy, "deploy", "the server is shutting down").WithHint("push again later")

// enqueue appends dep to its project's queue; its turn channel is closed when it may run. Called with p.mu held.
func (p *Pipeline) enqueue(dep *deployment) {
	q := p.queues[dep.rec.Project]
	if q == nil {
		q = &queue{}
		p.queues[dep.rec.Project] = q
	}
	for _, x := range q.all {
		x.stepAside()
	}
	q.all = append(q.all, dep)
	dep.holders = p.holders[dep.rec.Project]
	for _, g := range dep.holders {
		g.cancel(&ended{why: "a deployment begins", busy: true})
	}
	dep.place = len(q.all) - 1
	if dep.place == 0 {
		close(dep.turn)
	}
}

// leave removes dep from the queue and lets the next one run; those that moved up are notified.
func (p *Pipeline) leave(dep *deployment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[dep.rec.Project]
	for i, x := range q.all {
		if x == dep {
			q.all = append(q.all[:i:i], q.all[i+1:]...)
			break
		}
	}
	for i, x := range q.all {
		if x.place == i {
			continue
		}
		x.place = i
		if i == 0 {
			close(x.turn)
		} else {
			x.printWaiting(q.all[:i], p.cfg.Now())
		}
	}
	if len(q.all) == 0 {
		delete(p.queues, dep.rec.Project)
	}
	delete(p.byID, dep.rec.ID)
}

// await returns when it is dep's turn, or, with the cause, when it was ended.
func (dep *deployment) await(ctx context.Context) error {
	if err := dep.awaitTurn(ctx); err != nil {
		return err
	}
	for _, g := range dep.holders {
		select {
		case <-g.done:
		case <-ctx.Done():
		}
	}
	dep.holders = nil
	return context.Cause(ctx)
}

// holder is something that runs in a project while no deployment does, and yields to one.
type holder struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// Quiet reports whether nothing is running or waiting in a project. If so, the next deployment cancels during, and does not begin before
// end is called. end must be called, and may be called more than once.
func (p *Pipeline) Quiet(name project.Name) (during context.Context, end func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[name] != nil || p.stopping {
		return nil, nil, false
	}
	during, cancel := context.WithCancelCause(context.Background())
	g := &holder{cancel: cancel, done: make(chan struct{})}
	p.holders[name] = append(p.holders[name], g)
	return during, sync.OnceFunc(func() {
		cancel(nil)
		close(g.done)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.holders[name] = slices.DeleteFunc(slices.Clone(p.holders[name]), func(x *holder) bool { return x == g }); len(p.holders[name]) == 0 {
			delete(p.holders, name)
		}
	}), true
}

// joinable finds a deployment that is running or waiting for exactly the same change. Called with p.mu held.
func (p *Pipeline) joinable(d project.Deployment) *deployment {
	if d.Trigger != project.TriggerPush {
		return nil
	}
	q := p.queues[d.Project]
	if q == nil {
		return nil
	}
	for _, dep := range q.all {
		x := dep.record().Deployment
		if (!dep.reopened || dep.continued) && x.Trigger == d.Trigger && x.Repo == d.Repo && x.Change == d.Change && equalSelection(x.Select, d.Select) && slices.Equal(x.Set, d.Set) && x.AllowEmpty == d.AllowEmpty && x.Overwrite == d.Overwrite && x.AllowMissing == d.AllowMissing && slices.Equal(x.Nodes, d.Nodes) && x.Resume == d.Resume {
			return dep
		}
	}
	return nil
}

func equalSelection(a, b project.Selection) bool {
	eq := func(x, y []string) bool {
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if x[i] != y[i] {
				return false
			}
		}
		return true
	}
	return eq(a.Only, b.Only) && eq(a.OnlySteps, b.OnlySteps) && eq(a.Skip, b.Skip)
}

// Queue returns what is running and what is waiting.
func (p *Pipeline) Queue(_ context.Context, name project.Name) (project.Queue, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out project.Queue
	q := p.queues[name]
	if q == nil {
		return out, nil
	}
	for i, dep := range q.all {
		rec := dep.shown()
		if i == 0 {
			out.Running = &rec
		} else {
			out.Waiting = append(out.Waiting, rec)
		}
	}
	return out, nil
}

// Busy counts the projects in which a deployment is running or waiting.
func (p *Pipeline) Busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queues)
}

// Cancel cancels the running deployment of a project, or the waiting one with id; it is rolled back. If it is being rolled back already, or
// was cancelled before, what the project itself runs for that is stopped: hooks, and its own files. It returns the deployment's ID
// immediately; Wait reports when the deployment has ended.
func (p *Pipeline) Cancel(_ context.Context, name project.Name, id project.ID, by project.Pusher) (project.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[name]
	if q == nil {
		return "", fault.New(fault.Refused, "cancel", "no deployment of %s is running", name)
	}
	dep := q.all[0]
	if id != "" {
		dep = p.byID[id]
		if dep == nil || dep.record().Project != name {
			return "", fault.New(fault.Refused, "cancel", "deployment %s of %s is not running", id.Short(), name)
		}
	}
	if dep.suspended {
		return "", fault.New(fault.Busy, "cancel", "the server is shutting down").WithHint("cancel %s when it has started again", dep.rec.ID.Short())
	}
	dep.stop(&ended{why: "cancelled by " + by.Key})
	return dep.record().ID, nil
}

// Exclusive blocks deployments of a project until release is called: they wait in the queue. It is fault.Busy while one is running or waiting.
func (p *Pipeline) Exclusive(_ context.Context, name project.Name, what string, by project.Pusher) (release func(), err error) {
	over, err := p.cfg.Underway.Begin(name)
	if err != nil {
		return nil, fault.New(fault.Internal, what, "%w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[name]; q != nil {
		defer over()
		rec := q.all[0].record()
		return nil, fault.New(fault.Busy, what, "deployment %s of %s is running", rec.ID.Short(), name).
			WithHint("wait for it, or end it with  corpus-git cancel %s", name)
	}
	id := p.cfg.NewID()
	dep := p.newDeployment(project.Record{Deployment: project.Deployment{ID: id, Project: name, Pusher: by, At: p.cfg.Now()}, State: project.Running, Procedure: what})
	p.enqueue(dep)
	p.mu.Unlock()
	p.settling.Lock(name)() // of the deployment before it
	p.mu.Lock()
	return sync.OnceFunc(func() {
		p.leave(dep)
		over()
	}), nil
}

// Forget removes the records of a project's deployments, event logs and journal. The caller holds the project with Exclusive.
func (p *Pipeline) Forget(ctx context.Context, name project.Name) error {
	p.known.Forget(name)
	if err := errors.Join(p.approvals.Forget(ctx, name), p.records.Forget(ctx, name), p.kept.Forget(name)); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(p.cfg.State.Events(name.String())), os.RemoveAll(p.cfg.State.Journal(name.String())), os.RemoveAll(p.cfg.State.Resume(name.String())))
}

// Shutdown refuses new deployments and ends those that wait for their turn, with "try again". Those that wait for signals, and rollouts that are paused or wait, are left to the next process
// of the server (see Suspended). Other running ones may finish until ctx ends; then rollouts are left, too, and the others
// cancelled and rolled back. Hooks and files of projects for a rollback, or for after the end, have Config.StopTimeout from then on. It
// returns when nothing runs any more.
func (p *Pipeline) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	p.stopping = true
	for _, q := range p.queues {
		for _, dep := range q.all[1:] {
			dep.cancel(errShutdown())
		}
	}
	for _, dep := range p.byID {
		dep.suspend()
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.running.Wait()
		p.kept.Close()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	for _, dep := range p.byID {
		dep.resting = dep.resting || dep.mayRollOutLater()
		dep.suspend() // a rollout goes on, as after a crash
		dep.cancel(&ended{why: "the server was stopped before it finished"})
	}
	p.mu.Unlock()
	select {
	case <-done:
		return context.Cause(ctx)
	case <-time.After(p.cfg.StopTimeout):
	}
	// Restoring the tree may take any time; the projects' hooks and files for it are out of time.
	p.mu.Lock()
	for _, dep := range p.byID {
		dep.endAside()
	}
	p.mu.Unlock()
	<-done
	return errors.Join(context.Cause(ctx))
}

// errShutdown ends a waiting deployment.
func errShutdown() error { return &ended{why: "the server is shutting down", busy: true} }

// ended is the cause of a deployment that was cancelled.
type ended struct {
	why  string
	busy bool
}

func (e *ended) Error() string { return e.why }

// endedBy finds what ended a deployment's context.
func endedBy(err error) (*ended, bool) {
	var e *ended
	ok := errors.As(err, &e)
	return e, ok
}
