package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
)

// runStage deploys the rest of one stage.
func (r *Rollout) runStage(ctx context.Context, i int, s PlanStage) error {
	at := r.stage(i)
	if at.Done >= at.Of {
		return nil
	}
	names := make([]string, len(s.Nodes))
	for k, m := range s.Nodes {
		names[k] = m.Name
	}
	r.Emit(event.Event{Kind: event.Note, Text: fmt.Sprintf("stage %s: %s", s.Name, Shortened(names))})
	if !at.Waited {
		for _, w := range s.WaitFor {
			if err := r.await(ctx, s, w); err != nil {
				return err
			}
		}
		if err := r.waited(ctx, i, len(s.WaitFor) > 0); err != nil {
			return err
		}
	}
	for k := at.Done; k < r.stage(i).Of; k++ {
		if _, err := r.waitWhilePaused(ctx); err != nil {
			return err
		}
		batch, err := r.nextBatch(ctx, i, k, s)
		if err != nil {
			return err
		}
		if batch == nil {
			break
		}
		if err := r.batch(ctx, i, k, s, batch); err != nil {
			return err
		}
	}
	if failed := r.failed(s.Nodes); len(failed) > 0 {
		r.Emit(event.Event{Kind: event.Note, Text: fmt.Sprintf("stage %s: %s failed, and max_failures allows %d", s.Name, Shortened(failed), s.MaxFailures)})
	}
	return nil
}

// waited records that what a stage waits for was available. Its nodes see the keys with the values of that time.
func (r *Rollout) waited(ctx context.Context, i int, anew bool) (err error) {
	var keys json.RawMessage
	if anew {
		if keys, err = r.keys(ctx); err != nil {
			return err
		}
	}
	return r.change(func(p *Progress) {
		if p.Stages[i].Waited = true; anew {
			p.KV, r.fixed = keys, nil
		}
	})
}

// failed returns the names of the given nodes that failed.
func (r *Rollout) failed(nodes []Member) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range nodes {
		if r.p.node(m.Name).State == NodeFailed {
			names = append(names, m.Name)
		}
	}
	return names
}

// await waits for what a stage waits for.
func (r *Rollout) await(ctx context.Context, s PlanStage, w Wait) error {
	limit, every, err := w.times()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	begun, goes := r.Now(), func() {}
	defer func() { goes() }()
	for n := 0; ; n++ {
		reason, err := r.ask(ctx, w, max(limit-r.Now().Sub(begun), leastAsk))
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return &Failure{Stage: s.Name, Reason: fmt.Sprintf("wait_for %s: %v", w, err)}
		}
		took := r.Now().Sub(begun)
		if reason == "" {
			if n > 0 {
				r.Emit(event.Event{Kind: event.Note, Text: fmt.Sprintf("%s: there after %s", w, humanize.Seconds(took))})
			}
			return nil
		}
		if took >= limit {
			why, _, _ := strings.Cut(reason, "\n")
			r.Emit(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Text: fmt.Sprintf("stage %s waited %s for %s", s.Name, limit, w), Lines: strings.Split(reason, "\n")})
			return &Failure{Stage: s.Name, Reason: fmt.Sprintf("waited %s for %s: %s", limit, w, why)}
		}
		if n == 0 {
			if goes, err = r.rests(); err != nil {
				goes = func() {}
				return err
			}
			lines := strings.Split(reason, "\n")
			r.Emit(event.Event{Kind: event.Note, Text: fmt.Sprintf("waiting for %s: %s", w, lines[0]), Lines: lines[1:]})
		}
		select {
		case <-time.After(min(every, limit-took)):
		case <-ctx.Done():
		}
	}
}

// leastAsk is how long the last try may take, even if the wait has ended meanwhile.
const leastAsk = time.Second

// ask checks once.
func (r *Rollout) ask(ctx context.Context, w Wait, within time.Duration) (string, error) {
	if w.Checks == "" {
		return r.Hub.Ask(ctx, w, within)
	}
	var live []Member
	for _, m := range r.Plan.Nodes() {
		if r.node(m.Name).State == NodeLive {
			live = append(live, m)
		}
	}
	reasons, errs := make([]string, len(live)), make([]error, len(live))
	within = max(within, checksEvery)
	ctx, end := context.WithTimeoutCause(ctx, within, fault.New(fault.Busy, "", "no answer within %s", within.Round(time.Second))) // a node may hang
	defer end()
	together(len(live), maxAtOnce, func(i int) {
		reasons[i], errs[i] = r.Nodes.Check(ctx, r.known(live[i].Name), r.order(live[i]))
		if reasons[i] != "" {
			reasons[i] = live[i].Name + ": " + reasons[i]
		}
	})
	for i, err := range errs { // of a node that is not reached it is unknown: it may be restarting
		if err != nil {
			reasons[i] = live[i].Name + ": " + err.Error()
		}
	}
	if i := slices.IndexFunc(reasons, func(s string) bool { return s != "" }); i >= 0 {
		return reasons[i], nil
	}
	return "", nil
}

// batch deploys one batch of a stage, between its steps on the hub.
func (r *Rollout) batch(ctx context.Context, i, k int, s PlanStage, batch []Member) error {
	about := Batch{Stage: s.Name}
	for _, m := range batch {
		if r.node(m.Name).State != Missing {
			about.Nodes = append(about.Nodes, m)
		}
	}
	if len(about.Nodes) > 0 && r.stage(i).Before <= k {
		if len(s.Before) > 0 {
			if err := r.change(func(p *Progress) { p.Stages[i].Entered = k + 1 }); err != nil {
				return err
			}
		}
		if err := r.steps(ctx, s.Before, about); err != nil {
			return err
		}
		if err := r.change(func(p *Progress) { p.Stages[i].Before = k + 1 }); err != nil {
			return err
		}
	}
	canary := s.Canary > 0 && (k == 0 || s.Canary >= len(r.present(s)))
	if err := r.deploy(ctx, s, about.Nodes, canary); err != nil {
		return err
	}
	if len(about.Nodes) > 0 {
		if err := r.steps(ctx, s.After, about); err != nil {
			return err
		}
	}
	return r.change(func(p *Progress) { p.Stages[i].Done = k + 1 })
}

func (r *Rollout) steps(ctx context.Context, tasks []string, about Batch) error {
	for _, task := range tasks {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := r.Hub.Step(ctx, task, about); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return &Failure{Stage: about.Stage, Reason: fmt.Sprintf("the step %s on the hub: %v", task, err)}
		}
	}
	return nil
}

// deploy deploys nodes, as many at once as the stage allows. After too many failures no further node is begun, except for those that a dead server recorded as applying: their state is unknown otherwise.
func (r *Rollout) deploy(ctx context.Context, s PlanStage, nodes []Member, canary bool) error {
	tooMany := func() bool { return r.tooMany(s, nodes, canary) }
	todo := slices.DeleteFunc(slices.Clone(nodes), func(m Member) bool {
		st := r.node(m.Name).State
		return st == NodeLive || st == NodeFailed
	})
	unknown := map[string]bool{}
	for _, m := range todo {
		unknown[m.Name] = r.node(m.Name).State == Applying
	}
	slices.SortStableFunc(todo, func(a, b Member) int { return cmp.Compare(number(unknown[b.Name]), number(unknown[a.Name])) })
	var wg sync.WaitGroup
	var stopped error
	var broken errorOnce
	turn := make(chan struct{}, min(max(s.AtOnce, 1), maxAtOnce))
	next := &ahead{r: r, nodes: todo, most: cap(turn)}
	for len(next.nodes) > 0 {
		turn <- struct{}{}
		if stopped = next.waitWhilePaused(ctx); stopped != nil || len(next.nodes) == 0 {
			break
		}
		m := next.nodes[0]
		if !unknown[m.Name] && tooMany() || broken.get() != nil {
			break
		}
		if err := next.begin(); err != nil {
			broken.set(err)
			break
		}
		wg.Go(func() {
			defer func() { <-turn }()
			broken.set(r.apply(ctx, s, m))
		})
	}
	next.leave()
	wg.Wait()
	if err := cmp.Or(broken.get(), r.save(), stopped, context.Cause(ctx)); err != nil {
		return err
	}
	if failed := r.failed(s.Nodes); tooMany() {
		return &Failure{Stage: s.Name, Nodes: failed, Reason: r.node(failed[0]).Reason}
	}
	return r.allow(ctx, nodes)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ahead records that nodes are applying before they are: some at a time, with one change of the file.
type ahead struct {
	r     *Rollout
	nodes []Member // those that are not begun
	most  int
	// before is what was known about the first of nodes that are recorded.
	before []NodeProgress
}

// begin records, durably, that the next node is applying.
func (a *ahead) begin() error {
	if len(a.before) == 0 {
		n := min(a.most, len(a.nodes))
		err := a.r.change(func(p *Progress) {
			for _, m := range a.nodes[:n] {
				node := p.node(m.Name)
				a.before = append(a.before, *node)
				node.State, node.Run = Applying, max(node.Run, 1)
			}
		})
		if err != nil {
			return err
		}
	}
	a.nodes, a.before = a.nodes[1:], a.before[1:]
	return nil
}

// leave takes back what is recorded of nodes that are not begun.
func (a *ahead) leave() {
	a.r.note(func(p *Progress) {
		for i, was := range a.before {
			node := p.node(a.nodes[i].Name)
			node.State, node.Run = was.State, was.Run
		}
	})
	a.before = nil
}

// waitWhilePaused waits while the rollout is paused. Nodes that were drained or removed meanwhile are left out.
func (a *ahead) waitWhilePaused(ctx context.Context) error {
	if len(a.before) > 0 && a.r.paused() {
		a.leave()
		if err := a.r.save(); err != nil {
			return err
		}
	}
	waited, err := a.r.waitWhilePaused(ctx)
	if !waited || err != nil {
		return err
	}
	a.leave()
	if _, err := a.r.lookAgain(ctx, a.nodes, none); err != nil {
		return err
	}
	a.nodes = a.r.reached(a.nodes)
	return nil
}

// errorOnce is the first error of several goroutines.
type errorOnce struct {
	mu  sync.Mutex
	err error
}

func (e *errorOnce) set(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
}

func (e *errorOnce) get() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// apply deploys one node, which is recorded as applying, until it settles if the stage requires that, and reports it. An error is not one of the node: the progress
// could not be written, or ctx ended.
func (r *Rollout) apply(ctx context.Context, s PlanStage, m Member) error {
	begun := r.Now()
	var first event.Event
	var out Outcome
	run := max(r.node(m.Name).Run, 1)
	r.mu.Lock()
	exports, err := r.p.exports(s.Name)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	for from := run; ; run++ {
		if run > from {
			if err := r.change(func(p *Progress) { p.node(m.Name).Run = run }); err != nil {
				return err
			}
		}
		o := r.order(m)
		o.Run, o.Exports = run, exports
		out, err = r.Nodes.Apply(ctx, r.known(m.Name), o, func(e event.Event) {
			switch {
			case e.Kind == event.Failure && first.Text == "":
				first = e
			case e.Kind == event.Waiting && e.Procedure == Procedure:
				r.Emit(event.Event{Kind: event.Note, Text: e.Text})
			}
		})
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause // the rollout was cancelled, so the node's state is unknown
		}
		if err != nil || !out.Good() || s.Settle == 0 || out.Changed == 0 || run >= s.Settle {
			break
		}
	}
	touched := err != nil || run > 1 || out.State == project.Live || out.State == project.Failed
	strays := err == nil && touched
	switch {
	case err != nil:
	case !out.Good():
		err = errors.New(cmp.Or(out.Reason, string(out.State)))
	case s.Settle > 0 && out.Changed > 0:
		err = fmt.Errorf("it does not settle: run %d of %d changed %s", run, s.Settle, humanize.Plural(out.Changed, "state"))
	}
	n := 0
	r.note(func(p *Progress) {
		node := p.node(m.Name)
		if node.State = NodeLive; err != nil {
			node.State, node.Reason, node.Touched, node.Strays = NodeFailed, err.Error(), touched, strays
		}
		node.Exports = exportsOf(out)
		for _, x := range p.Nodes {
			if x.State == NodeLive || x.State == NodeFailed {
				n++
			}
		}
	})
	took := r.Now().Sub(begun)
	if err != nil {
		r.Emit(r.failureMessage(m, n, took, out, first, err))
		return nil
	}
	e := event.Event{Kind: event.StepDone, Status: event.OK, Procedure: Procedure, Step: m.Name, N: n, Of: r.Plan.count(), Duration: took, Text: "live"}
	if s.Settle > 0 {
		e.Text = fmt.Sprintf("live, settled in run %d", run)
	}
	r.Emit(e)
	return nil
}

// exportsOf returns the outputs of a node's steps, by name: that of the later step if two wrote the same.
func exportsOf(out Outcome) map[string]json.RawMessage {
	values := map[string]json.RawMessage{}
	for _, o := range out.Outputs {
		if !o.Secret && len(o.Value) > 0 {
			values[o.Name] = o.Value
		}
	}
	return values
}

// failureMessage returns the message to the pusher about a node that failed.
func (r *Rollout) failureMessage(m Member, n int, took time.Duration, out Outcome, first event.Event, err error) event.Event {
	of := r.Plan.count()
	e := event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Step: m.Name, N: n, Of: of, Duration: took, Text: fmt.Sprintf("%d/%d %s  %s", n, of, m.Name, err)}
	if first.Text != "" {
		e.Lines = append([]string{first.Text}, first.Lines...)
	}
	if out.State != "" {
		e.Lines = append(e.Lines, "there: "+string(out.State))
	}
	return e
}
