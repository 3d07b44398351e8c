package pipeline

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
	"corpus-git/procedures"
	"corpus-git/project"
)

// deployment is one from Start to its end, in this process. The first fields are set when it is made; mu guards those that others look at
// while it runs; what follows belongs to the goroutine that drives it.
type deployment struct {
	p      *Pipeline
	set    Settings
	in     project.Incoming
	log    *event.Log
	redact *redact.Redactor
	cancel context.CancelCauseFunc
	turn   chan struct{} // closed when the queue lets it run
	ended  chan struct{} // closed when res is final
	// hurry is closed when what runs beside a rollback, and after the end, shall end at once; see ending.
	hurry      chan struct{}
	asideEnded sync.Once

	mu    sync.Mutex
	rec   project.Record
	past  bool   // it can no longer be cancelled: it fails, or has ended
	kept  []byte // the end of what it told, as deploy_ret.comment has it
	place int    // in the queue; the pipeline's mu guards it

	// reopened: an earlier server began it; nobody joins it.
	reopened bool
	// holders are to be waited for before it begins.
	holders []*holder

	// tools are those of this deployment: its steps share a runner.
	tools *procedures.Tools
	// env is what the procedures see of it, once it is prepared.
	env *procedures.Env
	// journal is its project's, from when it is accepted.
	journal *Journal
	res     project.Result
	// livePins and newPins are staged by accept; begun tells that beside is done, published that publish is.
	livePins, newPins stagedRefs
	begun, published  bool
	// soon tells that the verdict is told before what it says is durable everywhere, which settle sees to: rest.
	soon bool
	rest []func() error
	// archived: what was live is in an archive.
	archived bool
	// stepsBegan: steps of the deployment may have changed something. rollbacks counts how often its rollback began.
	stepsBegan bool
	rollbacks  int
	// stepsLimit is a shorter limit than the release's own for the steps that a rollback applies; 0 is none.
	stepsLimit time.Duration
}

// newDeployment makes one that nothing has been written of.
func (p *Pipeline) newDeployment(rec project.Record) *deployment {
	return &deployment{p: p, rec: rec, cancel: func(error) {}, ended: make(chan struct{}), turn: make(chan struct{}), hurry: make(chan struct{})}
}

func (dep *deployment) record() project.Record {
	dep.mu.Lock()
	defer dep.mu.Unlock()
	return dep.rec
}

func (dep *deployment) update(f func(*project.Record)) {
	dep.mu.Lock()
	defer dep.mu.Unlock()
	f(&dep.rec)
}

// hide redacts the texts of a result, before it is written anywhere.
func (dep *deployment) hide(res *project.Result) {
	for _, s := range []*string{&res.Reason, &res.Unhealthy, &res.Hint, &res.Step, &res.StateID} {
		*s = dep.redact.String(event.Scrub(*s))
	}
	for i := range res.Timings { // they name states
		res.Timings[i].Name = dep.redact.String(event.Scrub(res.Timings[i].Name))
	}
}

// shown is the record as it is written and shown: what the pusher named may be a secret's value.
func (dep *deployment) shown() project.Record {
	rec := dep.record()
	text := func(s string) string { return dep.redact.String(event.Scrub(s)) }
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
func (dep *deployment) ending() {
	dep.mu.Lock()
	dep.past = true
	dep.mu.Unlock()
}

// stop cancels the deployment. One that can no longer be cancelled ends sooner: what runs beside its rollback, and
// after its end, is ended.
func (dep *deployment) stop(why *ended) {
	dep.mu.Lock()
	past := dep.past
	dep.past = true
	dep.mu.Unlock()
	dep.cancel(why)
	if past {
		dep.endAside()
	}
}

func (dep *deployment) endAside() { dep.asideEnded.Do(func() { close(dep.hurry) }) }

// maxKept bounds what a deployment keeps of what it told, in bytes.
const maxKept = 64 << 10

// keepOutput keeps the text of an event for the project's own rollback and notify.
func (dep *deployment) keepOutput(e event.Event) {
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
	text = dep.redact.String(text) + "\n"
	dep.mu.Lock()
	defer dep.mu.Unlock()
	if dep.kept = append(dep.kept, text...); len(dep.kept) > maxKept {
		dep.kept = bytes.Clone(dep.kept[len(dep.kept)-maxKept:])
	}
}

// output is what keepOutput kept, whole lines of it.
func (dep *deployment) output() string {
	dep.mu.Lock()
	defer dep.mu.Unlock()
	text := dep.kept
	if len(text) == maxKept {
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	return strings.TrimRight(string(text), "\n")
}
