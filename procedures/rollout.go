package procedures

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"corpus-git/checks"
	"corpus-git/fleet"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/py"
	"corpus-git/project"
)

// NameRollout is the name of the procedure that deploys to the project's nodes, NameNodes that of the one that prepares them.
const (
	NameRollout = fleet.Procedure
	NameNodes   = "nodes"
)

// Nodes prepares the nodes of the project: afterwards each has received and prepared the deployment and made its archive. Nothing live changes on
// any machine.
type Nodes struct{}

// Name implements Procedure.
func (Nodes) Name() string { return NameNodes }

// Run implements Procedure. Nodes that are not ready are fault.Refused.
func (Nodes) Run(ctx context.Context, e *Env) error {
	r, err := e.rollout(ctx)
	if err != nil {
		return err
	}
	nodes := e.Prepared.Rollout.Nodes()
	e.Report.Append(event.Event{Kind: event.ProcedureStart, Procedure: NameNodes, Text: fmt.Sprintf("%s in %s",
		humanize.Plural(len(nodes), "node"), humanize.Plural(len(e.Prepared.Rollout.Stages), "stage"))})
	return r.Fetch(ctx)
}

// Rollout deploys to the nodes of the project, stage by stage: each node with its own pipeline. It replaces Install. UndoRollout undoes it.
type Rollout struct{}

// Name implements Procedure.
func (Rollout) Name() string { return NameRollout }

// Run implements Procedure. If nodes failed, the error wraps a *fleet.Failure and is of kind Failed.
func (Rollout) Run(ctx context.Context, e *Env) error {
	r, err := e.rollout(ctx)
	if err != nil {
		return err
	}
	if err := r.Run(ctx); err != nil {
		return fault.New(fault.Failed, "", "%w", err)
	}
	p, _, err := fleet.ReadProgress(r.Path)
	if err != nil {
		return err
	}
	var lines []string
	if left := p.NotLive(); len(left) > 0 {
		lines = append(lines, "not live on "+fleet.Shortened(left)+":  corpus-git rollout retry "+string(e.Deployment.Project))
	}
	e.Summarize(lines, "live on %s", humanize.Plural(p.Count()[fleet.NodeLive], "node"))
	return nil
}

// rollout returns the rollout of the deployment, the same each time.
func (e *Env) rollout(ctx context.Context) (*fleet.Rollout, error) {
	if e.roll != nil {
		return e.roll, nil
	}
	if e.Tools.Fleet == nil {
		return nil, fault.New(fault.Refused, fleet.NodesFile, "this server does not deploy to nodes")
	}
	known, err := e.Tools.Fleet.Known(ctx)
	if err != nil {
		return nil, err
	}
	r := e.Tools.Fleet.Rollout(e.Deployment, e.Prepared.Rollout, known)
	r.Emit = func(ev event.Event) { e.Report.Append(ev) }
	r.Rests, r.Hub, r.AllowMissing, r.KV = e.Rests, hub{e}, e.Deployment.AllowMissing, e.Tools.Keys.Of(e.Deployment.Project, e.Prepared.nodes...)
	e.roll = r
	return r, nil
}

// RolloutBegun reports whether the deployment has begun to deploy to nodes, and not to roll them back, so that it can be continued. paused reports
// that it is waiting for a person.
func (t *Tools) RolloutBegun(id project.ID) (begun, paused bool, err error) {
	p, ok, err := fleet.ReadProgress(t.State.Rollout(string(id)))
	if err != nil || !ok {
		return false, false, err
	}
	return p.State == fleet.Running && p.Begun(), p.Paused, nil
}

// UndoRollout rolls back the nodes that the deployment reached, according to on_failure, or none if they stay. If it reached none, it does nothing. It can be run again.
func (e *Env) UndoRollout(ctx context.Context, stay bool) (u fleet.Undone, err error) {
	// Not from the plan: a recovery knows what is live, not what the deployment was to deploy.
	if _, ok, err := fleet.ReadProgress(e.Tools.State.Rollout(string(e.Deployment.ID))); err != nil || !ok {
		return u, err
	}
	r, err := e.rollout(ctx)
	if err != nil {
		return u, err
	}
	defer e.closeRollout()
	return r.Undo(ctx, stay)
}

// EndRollout records how the rollout ended.
func (e *Env) EndRollout(state string) error {
	e.closeRollout()
	return fleet.Conclude(e.Tools.FS, e.Tools.State.Rollout(string(e.Deployment.ID)), state, e.Tools.Now())
}

func (e *Env) closeRollout() {
	if e.roll != nil {
		_ = e.roll.Nodes.Close() // errors of ending unneeded sessions are ignored
		e.roll = nil
	}
}

// hub implements fleet.Hub for the deployment.
type hub struct{ e *Env }

// askLimit limits the duration of one try of a wait.
const askLimit = 10 * time.Second

// Ask implements fleet.Hub.
func (h hub) Ask(ctx context.Context, w fleet.Wait, within time.Duration) (string, error) {
	if w.Key != "" {
		return h.e.Tools.Keys.Unmet(ctx, h.e.Deployment.Project, h.e.Prepared.nodes, w.Key, w.Is)
	}
	c := w.Probe()
	c.Name, c.Attempts, c.Timeout = "wait_for", 1, min(askLimit, within).Round(100*time.Millisecond)
	run := checks.Runner{Command: h.e.askByCommand, Hide: h.e.Hide}
	results, err := run.Run(ctx, []project.Check{c})
	if err != nil || len(results) != 1 || results[0].Good {
		return "", err
	}
	reason := results[0].Reason
	if c.Kind == project.CheckCommand { // what it says is why; the body of an answer of HTTP is not
		reason = strings.Join(append([]string{reason}, results[0].Answer...), "\n")
	}
	return h.e.Hide(reason), nil
}

// Step implements fleet.Hub: the task sees its context as data.rollout.
func (h hub) Step(ctx context.Context, task string, b fleet.Batch) error {
	e := h.e
	s, err := taskOf(e.Prepared.recipe, e.Deployment.Project, task)
	if err != nil {
		return err
	}
	before := e.stepCfg()
	e.cfg = &stepCfg{value: py.DeepCopy(before.value).(*py.Dict), note: e.Note}
	defer func() { e.cfg = before }()
	b.Into(e.cfg.value)
	return e.step(ctx, NameRollout, s, 1, 1, nil)
}

// checkHubSteps checks the keys that stages wait for, and compiles the tasks that they run on this machine.
func (p *Prepared) checkHubSteps(ctx context.Context, t *Tools, d project.Deployment) error {
	if p.Rollout == nil {
		return nil
	}
	of := p.checking
	defer func() { p.checking = of }()
	for _, st := range p.Rollout.Stages {
		source := fleet.At(fleet.StagesFile, st.Line)
		if d.Job != "" {
			source = fmt.Sprintf("job %s, line %d", d.Job, st.Line)
		}
		for _, w := range st.WaitFor {
			if err := t.Keys.Readable(d.Project, p.nodes, w.Key); w.Key != "" && err != nil {
				return fault.New(fault.Usage, source, "stage %s: wait_for: %w", st.Name, err).WithHint("%s", fault.HintOf(err))
			}
		}
		for _, name := range slices.Concat(st.Before, st.After) {
			s, err := taskOf(p.recipe, d.Project, name)
			if err != nil {
				return fault.New(fault.Usage, source, "stage %s: %w", st.Name, err).WithHint("%s", fault.HintOf(err))
			}
			p.checking = &stepCfg{value: p.dict()}
			fleet.Batch{Stage: st.Name, Nodes: st.Nodes}.Into(p.checking.value)
			if _, err := p.checkStep(ctx, t, d, s); err != nil {
				return err
			}
		}
	}
	return nil
}
