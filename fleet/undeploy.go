package fleet

import (
	"context"
	"fmt"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
)

// Undeploy undeploys the project on all nodes of the plan, each with its own pipeline, and goes on after one that fails: a *Failure names those. A node that was removed from
// the server is left as it is. It has no progress, and can be run again.
func (r *Rollout) Undeploy(ctx context.Context) error {
	nodes := r.Plan.Nodes()
	errs := make([]error, len(nodes))
	together(len(nodes), maxAtOnce, func(i int) {
		m, begun := nodes[i], r.Now()
		node, ok := r.Known[m.Name]
		if !ok {
			r.Emit(event.Event{Kind: event.Note, Text: m.Name + " was removed from this server, and is left as it is"})
			return
		}
		o := r.Order
		o.Node, o.Run = m, 1
		if errs[i] = r.Nodes.Undeploy(ctx, node, o); errs[i] != nil {
			e := event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Step: m.Name, Text: fmt.Sprintf("%s was not undeployed: %s", m.Name, printable.Line(errs[i].Error()))}
			if hint := fault.HintOf(errs[i]); hint != "" {
				e.Lines = []string{"hint: " + printable.Line(hint)}
			}
			r.Emit(e)
			return
		}
		r.Emit(event.Event{Kind: event.Note, Text: fmt.Sprintf("%s is undeployed after %s", m.Name, humanize.Seconds(r.Now().Sub(begun)))})
	})
	f := &Failure{}
	for i, err := range errs {
		if err == nil {
			continue
		}
		if f.Nodes = append(f.Nodes, nodes[i].Name); f.Reason == "" {
			f.Reason = printable.Line(err.Error())
		}
	}
	if len(f.Nodes) == 0 {
		return nil
	}
	return f
}

// EveryNode returns a plan of all nodes of a project at once, also of those that are drained.
func EveryNode(members []Member) *Plan {
	return &Plan{OnFailure: All, Stages: []PlanStage{{Name: "nodes", Nodes: members, AtOnce: len(members), Batch: len(members)}}}
}
