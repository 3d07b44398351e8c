package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/staged"
	"corpus-git/procedures"
	"corpus-git/project"
)

// deployment is one deployment from Start to its end, in this process. The first fields are set when it is created; mu guards those that
// others read while it runs; the rest belongs to the goroutine that drives it.
type deployment struct {
	p      *Pipeline
	set    Settings
	in     project.Incoming
	log    *event.Log
	redact *redact.Redactor
	cancel context.CancelCauseFunc
	turn   chan struct{} // closed when the queue lets it run
	ended  chan struct{} // closed when res is final
	// hurry is closed when what is running during a rollback, and after the end, should stop immediately; see ending.
	hurry      chan struct{}
	asideEnded sync.Once
	// wanted is closed when a converge should end at the next state, since another deployment is waiting; see yield.
	wanted     chan struct{}
	wantedOnce sync.Once

	mu    sync.Mutex
	rec   project.Record
	past  bool   // it can no longer be cancelled: it fails, or has ended
	kept  []byte // the end of its output, for deploy_ret.comment
	place int    // in the queue; the pipeline's mu guards it

	// reopened: begun by an earlier server; no push joins it.
	reopened bool
	// stopping cancels a reopened one, with a cause.
	stopping chan error
	// resting: it waits for signals, and a later process may continue it. suspended: this process leaves it to that one. left: this process is not a
	// server, and never continues it. continued: an earlier one began it, and this one continues it. The pipeline's mu guards them.
	resting, suspended, left, continued bool
	// rests is closed when a continued one waits again; broken is why it cannot continue.
	rests     chan struct{}
	restsOnce sync.Once
	broken    string
	// continuing: prepare prepares what an earlier process began.
	continuing bool
	// holders must end before it begins.
	holders []*holder

	// need is the number of approvals that it needs from others.
	need int
	// tools are those of this deployment: its steps share a runner.
	tools *procedures.Tools
	// env is the procedures' environment, once it is prepared.
	env *procedures.Env
	// journal is the journal of its project, once it is accepted.
	journal *journal.Journal
	res     project.Result
	// livePins and newPins are staged by accept; begun reports that beside has run, published that publish has run.
	livePins, newPins staged.Refs
	begun, published  bool
	recorded          func() error                 // waits until accept's record is written
	names             []func(covered uint64) error // syncs of names, for settleNames
	verdict           func() error                 // waits for stageVerdict; nil before
	// soon reports that the verdict is reported before everything is durable; settle then runs rest.
	soon bool
	rest []func() error
	// held is closed when the deployment waits after its archive, released when it continues; see project.Deployment.Hold.
	held, released chan struct{}
	release        sync.Once
	// exports are the values passed to Release.
	exports json.RawMessage
	// archived: what was live is in an archive.
	archived bool
	// stepsBegan: steps of the deployment may have changed something. rollbacks counts how often its rollback began.
	stepsBegan bool
	rollbacks  int
	usual      map[string]project.Estimate
	// stepsLimit is a shorter limit than the release's own for the steps that a rollback applies; 0 means none.
	stepsLimit time.Duration
	// estimated waits until usual, and the record's estimate, are known; described waits for what the deployment brings. Both are found out beside other work.
	estimated func()
	described func() (*project.Description, error)
}

// newDeployment makes a deployment without recording anything.
func (p *Pipeline) newDeployment(rec project.Record) *deployment {
	dep := &deployment{p: p, rec: rec, cancel: func(error) {}, ended: make(chan struct{}), turn: make(chan struct{}), hurry: make(chan struct{}), wanted: make(chan struct{}), held: make(chan struct{}), released: make(chan struct{}), rests: make(chan struct{}),
		described: func() (*project.Description, error) { return nil, nil }, recorded: func() error { return nil }}
	dep.estimated = sync.OnceFunc(dep.estimate)
	return dep
}

// estimate estimates the duration of the deployment and its parts from past ones. Only deployments of a commit have an estimate.
func (dep *deployment) estimate() {
	d := dep.record().Deployment
	switch d.Trigger {
	case project.TriggerPush, project.TriggerRedeploy, project.TriggerBundle, project.TriggerPromote:
	default:
		return
	}
	var err error
	if dep.usual, err = dep.p.records.Estimates(context.Background(), d.Project); err != nil {
		dep.p.cfg.Logger.Warn().Err(err).Str("deployment", string(d.ID)).Msg("estimate a deployment")
	}
	if e, ok := dep.usual[""]; ok && len(d.Select.Only)+len(d.Select.OnlySteps)+len(d.Select.Skip) == 0 {
		dep.update(func(rec *project.Record) { rec.Estimate = &e })
	}
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

// hide redacts the texts of a result, before it is written.
func (dep *deployment) hide(res *project.Result) {
	for _, s := range []*string{&res.Reason, &res.Unhealthy, &res.Hint, &res.Step, &res.StateID} {
		*s = dep.redact.String(event.Scrub(*s))
	}
	for i := range res.Drift {
		res.Drift[i] = dep.redact.String(event.Scrub(res.Drift[i]))
	}
	for i := range res.Timings { // their names contain states
		res.Timings[i].Name = dep.redact.String(event.Scrub(res.Timings[i].Name))
	}
	for i := range res.Outputs {
		o := &res.Outputs[i]
		o.Step, o.Name = dep.redact.String(o.Step), dep.redact.String(o.Name)
	}
	for i := range res.Tests { // their texts were redacted before they were cut
		res.Tests[i].Step = dep.redact.String(event.Scrub(res.Tests[i].Step))
	}
}

// shown returns the record as it is written and shown: names that the pusher chose may contain a secret.
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
	rec.Task, rec.Step, rec.Waits = text(rec.Task), text(rec.Step), text(rec.Waits)
	rec.Signatures = slices.Clone(rec.Signatures)
	for i := range rec.Signatures { // push options are signed, and may set secrets
		rec.Signatures[i].Certificate = dep.redact.String(rec.Signatures[i].Certificate)
	}
	rec.Select = project.Selection{Only: all(rec.Select.Only), OnlySteps: all(rec.Select.OnlySteps), Skip: all(rec.Select.Skip)}
	return rec
}

// ending records that the deployment can no longer be cancelled.
func (dep *deployment) ending() {
	dep.mu.Lock()
	dep.past = true
	dep.mu.Unlock()
}

// stop cancels the deployment. If it can no longer be cancelled, what is running during its rollback, or after its end, is stopped.
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

// maxKept limits the output that a deployment keeps, in bytes.
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

// output returns what keepOutput kept, in whole lines.
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
