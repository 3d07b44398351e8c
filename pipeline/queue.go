package pipeline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/redact"
	"corpus-git/project"
)

// run is one deployment from Start to its end, in this process.
type run struct {
	mu     sync.Mutex
	rec    project.Record
	in     project.Incoming
	log    *event.Log
	redact *redact.Redactor
	cancel context.CancelCauseFunc
	ended  chan struct{}
	last   project.Result
	turn   chan struct{} // closed when the queue lets it run
	// hurry is closed when what runs beside a rollback, and after the end, shall end at once; see ending.
	hurry   chan struct{}
	hurried sync.Once
	past    bool   // it can no longer be cancelled: it fails, or has ended
	said    []byte // the end of what it told, as deploy_ret.comment has it
	place   int
}

func (r *run) record() project.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rec
}

func (r *run) update(f func(*project.Record)) project.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.rec)
	return r.rec
}

// hide redacts the texts of a result, before it is written anywhere.
func (r *run) hide(res *project.Result) {
	for _, s := range []*string{&res.Reason, &res.Hint, &res.Step, &res.StateID} {
		*s = r.redact.String(event.Scrub(*s))
	}
	for i := range res.Timings { // they name states
		res.Timings[i].Name = r.redact.String(event.Scrub(res.Timings[i].Name))
	}
}

// shown is the record as it is written and shown: what the pusher named may be a secret's value.
func (r *run) shown() project.Record {
	rec := r.record()
	text := func(s string) string { return r.redact.String(event.Scrub(s)) }
	all := func(list []string) []string {
		out := slices.Clone(list)
		for i := range out {
			out[i] = text(out[i])
		}
		return out
	}
	rec.Task, rec.Step = text(rec.Task), text(rec.Step)
	rec.Select = project.Selection{Only: all(rec.Select.Only), OnlySteps: all(rec.Select.OnlySteps), Skip: all(rec.Select.Skip)}
	return rec
}

// ending notes that the deployment can no longer be cancelled.
func (r *run) ending() {
	r.mu.Lock()
	r.past = true
	r.mu.Unlock()
}

// end cancels the deployment. One that can no longer be cancelled ends sooner: what runs beside its rollback, and
// after its end, is ended.
func (r *run) end(why *ended) {
	r.mu.Lock()
	past := r.past
	r.past = true
	r.mu.Unlock()
	r.cancel(why)
	if past {
		r.rush()
	}
}

func (r *run) rush() { r.hurried.Do(func() { close(r.hurry) }) }

// maxSaid bounds what a run keeps of what it told, in bytes.
const maxSaid = 64 << 10

// tell keeps the text of an event for the project's own rollback and notify.
func (r *run) tell(e event.Event) {
	switch e.Kind {
	case event.ProcedureDone, event.StepDone, event.Failure, event.Note:
	default:
		return
	}
	text := e.Text
	if e.Kind != event.Note && e.Kind != event.Failure {
		name := e.Step
		if name == "" {
			name = e.Procedure
		}
		text = name + ": " + text
	}
	for _, l := range e.Lines {
		text += "\n  " + l
	}
	text = r.redact.String(text) + "\n"
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said = append(r.said, text...); len(r.said) > maxSaid {
		r.said = bytes.Clone(r.said[len(r.said)-maxSaid:])
	}
}

// toldSoFar is what tell kept, whole lines of it.
func (r *run) toldSoFar() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.said
	if len(text) == maxSaid {
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	return strings.TrimRight(string(text), "\n")
}

// queue is the line of one project: the first element runs, the others wait in the order they came.
type queue struct {
	runs []*run
}

// doors let one at a time pass for each project.
type doors struct {
	mu   sync.Mutex
	open map[project.Name]*door
}

// door is there while somebody stands at it.
type door struct {
	sync.Mutex
	users int
}

// lock waits until nobody else is in the door of a project.
func (d *doors) lock(name project.Name) (unlock func()) {
	d.mu.Lock()
	if d.open == nil {
		d.open = map[project.Name]*door{}
	}
	x := d.open[name]
	if x == nil {
		x = &door{}
		d.open[name] = x
	}
	x.users++
	d.mu.Unlock()
	x.Lock()
	return func() {
		x.Unlock()
		d.mu.Lock()
		defer d.mu.Unlock()
		if x.users--; x.users == 0 {
			delete(d.open, name)
		}
	}
}

// errStopping ends what waits when the server shuts down.
var errStopping = fault.New(fault.Busy, "deploy", "the server is shutting down").WithHint("push again in a moment")

// enqueue puts r at the end of its project's line and tells it when it is its turn. Called with p.mu held.
func (p *Pipeline) enqueue(r *run) {
	q := p.queues[r.rec.Project]
	if q == nil {
		q = &queue{}
		p.queues[r.rec.Project] = q
	}
	q.runs = append(q.runs, r)
	r.place = len(q.runs) - 1
	if r.place == 0 {
		close(r.turn)
	}
}

// leave takes r out of the line and lets the next one run; those who moved up are told.
func (p *Pipeline) leave(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[r.rec.Project]
	for i, x := range q.runs {
		if x == r {
			q.runs = append(q.runs[:i:i], q.runs[i+1:]...)
			break
		}
	}
	for i, x := range q.runs {
		if x.place == i {
			continue
		}
		x.place = i
		if i == 0 {
			close(x.turn)
		} else {
			x.sayWaiting(q.runs[0].shown(), i, p.cfg.Now())
		}
	}
	if len(q.runs) == 0 {
		delete(p.queues, r.rec.Project)
	}
	delete(p.byID, r.rec.ID)
}

// await returns when it is r's turn, or with the cause that ended it.
func (r *run) await(ctx context.Context) error {
	select {
	case <-r.turn:
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// joinable finds a deployment that runs or waits for the very same change. Called with p.mu held.
func (p *Pipeline) joinable(d project.Deployment) *run {
	if d.Trigger != project.TriggerPush {
		return nil
	}
	q := p.queues[d.Project]
	if q == nil {
		return nil
	}
	for _, r := range q.runs {
		x := r.record().Deployment
		if x.Trigger == d.Trigger && x.Repo == d.Repo && x.Change == d.Change && equalSelection(x.Select, d.Select) && slices.Equal(x.Set, d.Set) && x.AllowEmpty == d.AllowEmpty && x.Overwrite == d.Overwrite {
			return r
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

// Queue tells what runs and what waits.
func (p *Pipeline) Queue(_ context.Context, name project.Name) (project.Queue, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out project.Queue
	q := p.queues[name]
	if q == nil {
		return out, nil
	}
	for i, r := range q.runs {
		rec := r.shown()
		if i == 0 {
			out.Running = &rec
		} else {
			out.Waiting = append(out.Waiting, rec)
		}
	}
	return out, nil
}

// Busy counts the projects in which something runs or waits.
func (p *Pipeline) Busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queues)
}

// Cancel ends the running deployment of a project, or the one that waits under id; it is rolled back. Of one that is being rolled back
// already, or was cancelled before, it ends what the project brings for that: hooks, and its own files. It
// returns the deployment's ID at once; Wait tells when it has ended.
func (p *Pipeline) Cancel(_ context.Context, name project.Name, id project.ID, by project.Pusher) (project.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[name]
	if q == nil {
		return "", fault.New(fault.Refused, "cancel", "nothing is being deployed to %s", name)
	}
	r := q.runs[0]
	if id != "" {
		r = p.byID[id]
		if r == nil || r.rec.Project != name {
			return "", fault.New(fault.Refused, "cancel", "deployment %s of %s is not running", id.Short(), name)
		}
	}
	r.end(&ended{why: "cancelled by " + by.Key})
	return r.rec.ID, nil
}

// Exclusive keeps deployments of a project out until release is called: they wait in line. It is fault.Busy while one
// runs or waits.
func (p *Pipeline) Exclusive(_ context.Context, name project.Name, what string, by project.Pusher) (release func(), err error) {
	over, err := p.cfg.Underway.Begin(name)
	if err != nil {
		return nil, fault.New(fault.Internal, what, "%w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[name]; q != nil {
		defer over()
		rec := q.runs[0].record()
		return nil, fault.New(fault.Busy, what, "deployment %s of %s is running", rec.ID.Short(), name).
			WithHint("wait for it, or end it with  corpus-git cancel %s", name)
	}
	id := p.cfg.NewID()
	r := &run{
		rec:    project.Record{Deployment: project.Deployment{ID: id, Project: name, Pusher: by, At: p.cfg.Now()}, State: project.Running, Procedure: what},
		cancel: func(error) {}, ended: make(chan struct{}), turn: make(chan struct{}), hurry: make(chan struct{}),
	}
	p.enqueue(r)
	return sync.OnceFunc(func() {
		p.leave(r)
		over()
	}), nil
}

// Forget removes what is recorded of a project's deployments: records, event logs, journal. The caller holds it Exclusive.
func (p *Pipeline) Forget(ctx context.Context, name project.Name) error {
	p.known.forget(name)
	if err := p.records.forget(ctx, name); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(p.cfg.State.Events(name.String())), os.RemoveAll(p.cfg.State.Journal(name.String())))
}

// errShutdown ends a deployment that waits.
func errShutdown() error { return &ended{why: "the server is shutting down", busy: true} }

// ended is the cause of a deployment that somebody or something ended.
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
