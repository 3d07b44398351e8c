package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Converged is what a converge found on the nodes of a plan.
type Converged struct {
	// Changed is the number of things that were changed, or differ, on all nodes; Drift names the first, each after its node.
	Changed int
	Drift   []string
}

// maxDrift is how many things are named, and driftLine the maximum length of a line.
const (
	maxDrift  = 20
	driftLine = 200
)

// Converge applies again on the nodes of the plan what is live there, or compares it, each with its own pipeline. Nodes are reached in the order, the batches
// and as many at once as in a rollout, a comparison reaches all at once. Nothing else of a stage applies: no release is introduced, so no node
// keeps the others from being converged. A *Failure (fault.Failed) names the nodes where it failed, that could not be reached, or on which another
// release is live; if there are none, fault.Busy names those where something else was running. It has no progress and leaves no file: each
// node's own record is all that there is.
func (r *Rollout) Converge(ctx context.Context, run project.ConvergeRun) (Converged, error) {
	c := &converging{r: r, run: run, of: len(r.Plan.Nodes())}
	if len(r.Plan.Skipped) > 0 {
		r.Emit(event.Event{Kind: event.Note, Text: "drained: " + Shortened(r.Plan.Skipped)})
	}
	if run.Mode == project.ConvergeReport {
		c.all(ctx, r.Plan.Nodes(), maxAtOnce)
	}
	for _, s := range r.Plan.Stages {
		for _, batch := range Batches(s, s.Nodes) {
			if run.Mode != project.ConvergeReport {
				c.all(ctx, batch, min(max(s.AtOnce, 1), maxAtOnce))
			}
		}
	}
	return c.found()
}

// converging collects what the nodes report.
type converging struct {
	r   *Rollout
	run project.ConvergeRun
	of  int

	mu sync.Mutex
	n  int
	// ended is why the converge ended before its end.
	ended error
	by    map[string]Outcome
	errs  map[string]error
}

// all converges some nodes, k at once; none is begun after ctx has ended.
func (c *converging) all(ctx context.Context, nodes []Member, k int) {
	together(len(nodes), k, func(i int) {
		if context.Cause(ctx) == nil {
			c.one(ctx, nodes[i])
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = context.Cause(ctx)
	})
}

func (c *converging) one(ctx context.Context, m Member) {
	begun := c.r.Now()
	o := c.r.Order
	o.Node, o.Run = m, 1
	out, err := c.r.Nodes.Converge(ctx, c.r.Known[m.Name], o, c.run)
	if context.Cause(ctx) != nil {
		return // what the node does is unknown
	}
	took := c.r.Now().Sub(begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if c.by == nil {
		c.by, c.errs = map[string]Outcome{}, map[string]error{}
	}
	c.by[m.Name] = out
	if err != nil {
		c.errs[m.Name] = err
		c.r.Emit(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Step: m.Name, N: c.n, Of: c.of, Duration: took,
			Text: fmt.Sprintf("%d/%d %s  %s", c.n, c.of, m.Name, printable.Line(err.Error()))})
		return
	}
	e := event.Event{Kind: event.StepDone, Status: event.OK, Procedure: Procedure, Step: m.Name, N: c.n, Of: c.of, Duration: took, Text: "in sync"}
	switch {
	case out.Changed > 0 && c.run.Mode == project.ConvergeReport:
		e.Text = humanize.Plural(out.Changed, "difference")
	case out.Changed > 0:
		e.Text = fmt.Sprintf("%d changed", out.Changed)
	}
	for _, line := range out.Drift {
		e.Lines = append(e.Lines, printable.Line(line))
	}
	c.r.Emit(e)
}

// found returns what was found, in the order of the plan.
func (c *converging) found() (out Converged, err error) {
	var failed, busy []string
	var first string
	for _, m := range c.r.Plan.Nodes() {
		o, err := c.by[m.Name], c.errs[m.Name]
		out.Changed += o.Changed
		for _, line := range o.Drift {
			if len(out.Drift) < maxDrift {
				out.Drift = append(out.Drift, printable.Shorten(m.Name+": "+printable.Line(line), driftLine))
			}
		}
		switch {
		case err == nil:
		case fault.KindOf(err) == fault.Busy:
			busy = append(busy, m.Name)
		default:
			if failed = append(failed, m.Name); first == "" {
				first = printable.Line(err.Error())
			}
		}
	}
	switch {
	case c.ended != nil:
		return out, c.ended
	case len(failed) > 0:
		return out, fault.New(fault.Failed, "", "%w", &Failure{Nodes: failed, Reason: first})
	case len(busy) > 0:
		return out, fault.New(fault.Busy, "", "something else runs on %s", strings.Join(busy, ", "))
	}
	return out, nil
}
