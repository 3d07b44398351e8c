package plantext

import (
	"fmt"
	"strings"

	"corpus-git/fleet"
	"corpus-git/internal/event"
	"corpus-git/internal/humanize"
	"corpus-git/procedures/recipe"
)

// Rollout returns what a plan shows of a rollout: the nodes in their order, and the steps, of the procedure install, that run there. What these would change is not
// known on the machine that plans.
func Rollout(p *fleet.Plan, install string, steps []recipe.Step) []event.Event {
	shown := func(procedure, text string, lines []string) event.Event {
		return event.Event{Kind: event.Plan, Status: event.Changed, Procedure: procedure, Text: procedure + "  " + text, Lines: lines}
	}
	out := []event.Event{shown(fleet.Procedure, humanize.Plural(len(p.Nodes()), "node")+" in "+humanize.Plural(len(p.Stages), "stage"), stages(p))}
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	if len(names) > 0 {
		out = append(out, shown(install, humanize.Plural(len(names), "step")+" on the nodes: what they change is known after they have run there", names))
	}
	return out
}

// stages returns what each stage of a rollout does, in order, and which nodes are left out.
func stages(p *fleet.Plan) (lines []string) {
	for _, s := range p.Stages {
		line := fmt.Sprintf("stage %s: %s", s.Name, strings.Join(fleet.Names(s.Nodes), ", "))
		for _, w := range s.WaitFor {
			line += "; waits for " + w.String()
		}
		if s.Canary > 0 {
			line += fmt.Sprintf("; canary %d", s.Canary)
		}
		if s.Batch < len(s.Nodes) {
			line += fmt.Sprintf("; batches of %d", s.Batch)
		}
		if s.AtOnce < min(s.Batch, len(s.Nodes)) {
			line += fmt.Sprintf("; %d at once", s.AtOnce)
		}
		if s.MaxFailures > 0 {
			line += "; " + humanize.Plural(s.MaxFailures, "node may fail", "nodes may fail")
		}
		if s.Settle > 0 {
			line += fmt.Sprintf("; until nothing changes, in at most %d runs", s.Settle)
		}
		if len(s.Before)+len(s.After) > 0 {
			line += "; tasks here: " + strings.Join(append(append([]string{}, s.Before...), s.After...), ", ")
		}
		lines = append(lines, line)
	}
	for _, x := range []struct {
		what  string
		names []string
	}{{"drained", p.Skipped}, {"not requested", p.Left}, {"stages without nodes", p.Empty}} {
		if len(x.names) > 0 {
			lines = append(lines, x.what+": "+strings.Join(x.names, ", "))
		}
	}
	return lines
}
