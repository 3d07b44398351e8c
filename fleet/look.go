package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/planned"
)

// Brings counts what a checkout of the deployment's commit would write where live is live, "" for nothing.
type Brings func(ctx context.Context, live project.Commit) (project.Description, error)

// Looked is what a node says before a deployment.
type Looked struct {
	// Release is the release of corpus-git there, "" if it is not there.
	Release string
	// Unasked says why the node was reached and not asked further, "" if it was asked.
	Unasked string
	// Live is the commit that is live there, "" for none.
	Live project.Commit
	// Notes are lines about what the deployment would do there first.
	Notes []string
}

// verdict is what follows from the nodes of a plan that are not ready.
type verdict struct {
	// names are those nodes, reasons their reasons, each after its name, and lines the reasons with their hints.
	names, reasons, lines []string
	// refused is why nothing is deployed; nil if the others are.
	refused error
}

// judge decides what follows from the errors of nodes of the plan: it is refused, or they are left out where that is allowed, unless no node is left or the leader is one of them.
func (r *Rollout) judge(nodes []Member, errs []error, leader string) (v verdict) {
	said := "" // the last hint: many nodes have the same
	kind := fault.Busy
	for i, err := range errs {
		if err == nil {
			continue
		}
		v.names, v.reasons = append(v.names, nodes[i].Name), append(v.reasons, nodes[i].Name+": "+err.Error())
		if fault.KindOf(err) != fault.Busy {
			kind = fault.Refused
		}
		v.lines = append(v.lines, v.reasons[len(v.reasons)-1])
		if hint := fault.HintOf(err); hint != "" && hint != said {
			v.lines, said = append(v.lines, "  hint: "+hint), hint
		}
	}
	total := len(r.Plan.Nodes())
	switch {
	case len(v.names) == 0:
	case !r.AllowMissing || len(v.names) == total:
		v.refused = fault.New(kind, "", "%s", notReady(len(v.names), total)).
			WithHint("leave them out with  -o allow-missing  or  --allow-missing ; a node for longer with  corpus-git node drain NAME")
	default:
		v.refused = r.Plan.leaderMissing(leader, v.names)
	}
	return v
}

func notReady(n, total int) string { return fmt.Sprintf("%d of %d nodes are not ready", n, total) }

// notAsked are what Fetch finds out and Look does not.
func notAsked() []string {
	return []string{"whether the steps compile on each node", "what they would change there"}
}

// Look asks all nodes of the plan what would keep them from the deployment, and changes nothing, on any machine. refused is the error with which Fetch would refuse it for what was
// asked; the error of the call is that of this machine.
func (r *Rollout) Look(ctx context.Context, brings Brings) (out planned.Readiness, refused, err error) {
	all := r.Plan.Nodes()
	said, errs := make([]Looked, len(all)), make([]error, len(all))
	together(len(all), maxAtOnce, func(i int) {
		o := r.Order
		o.Node, o.Run = all[i], 1
		said[i], errs[i] = r.Nodes.Look(ctx, r.Known[all[i].Name], o, brings)
	})
	if err := context.Cause(ctx); err != nil {
		return out, nil, err
	}
	leader := ""
	if len(r.Plan.Leads) > 0 && r.Leads != nil {
		if leader, err = r.Leads(ctx, r.Order.Deployment.Project); err != nil {
			return out, nil, err
		}
		if !slices.Contains(r.Plan.Leads, leader) {
			leader = r.Plan.Leads[0] // Elect elects this one
		}
	}
	v := r.judge(all, errs, leader)
	out = planned.Readiness{Stages: []planned.StageReadiness{}, Drained: r.Plan.Skipped, NotRequested: r.Plan.Left, NotAsked: notAsked()}
	if v.refused != nil {
		out.Refused, out.Hint = v.refused.Error(), fault.HintOf(v.refused)
	}
	i := 0
	for _, s := range r.Plan.Stages {
		st := planned.StageReadiness{Name: s.Name, Nodes: []planned.NodeReadiness{}}
		for range s.Nodes {
			n := r.looked(all[i].Name, said[i], errs[i])
			n.LeftOut = !n.Ready && v.refused == nil
			st.Nodes = append(st.Nodes, n)
			i++
		}
		out.Stages = append(out.Stages, st)
	}
	return out, v.refused, nil
}

// looked returns what a node said.
func (r *Rollout) looked(name string, l Looked, err error) planned.NodeReadiness {
	n := planned.NodeReadiness{Name: name, Ready: err == nil, Live: string(l.Live), Release: l.Release}
	if err != nil {
		n.Reason, n.Hint = printable.Line(err.Error()), fault.HintOf(err)
		return n
	}
	if l.Unasked != "" {
		n.Notes = append(n.Notes, "not asked for its space and what is live there: "+l.Unasked)
	} else {
		n.Behind = l.Live != r.Order.Deployment.LiveCode
	}
	for _, line := range l.Notes {
		n.Notes = append(n.Notes, printable.Line(line))
	}
	return n
}

// PlanLines returns what a plan shows of its nodes, stage by stage.
func PlanLines(n planned.Readiness, d project.Deployment) (lines []string) {
	for _, s := range n.Stages {
		lines = append(lines, "stage "+s.Name)
		for _, m := range s.Nodes {
			lines = append(lines, planLine(m, d)...)
		}
	}
	if len(n.Drained) > 0 {
		lines = append(lines, "drained, gets nothing: "+Shortened(n.Drained))
	}
	if len(n.NotRequested) > 0 {
		lines = append(lines, "not requested, gets nothing: "+Shortened(n.NotRequested))
	}
	return append(lines, "not asked: "+strings.Join(n.NotAsked, ", "))
}

func planLine(m planned.NodeReadiness, d project.Deployment) []string {
	live := project.Commit(m.Live)
	text := "gets " + d.Code.Short()
	switch {
	case !m.Ready && m.LeftOut:
		text = "! left out: " + m.Reason
	case !m.Ready:
		text = "! not ready: " + m.Reason
	case live == "" && m.Behind:
		text += ": nothing is live there"
	case live != "" && live == d.Code:
		text = "has " + d.Code.Short() + " already"
	case m.Behind:
		text += fmt.Sprintf(": %s is live there, not %s", live.Short(), d.LiveCode.Short())
	}
	lines := []string{"  " + m.Name + "  " + text}
	for _, note := range m.Notes {
		lines = append(lines, "    "+note)
	}
	if m.Hint != "" {
		lines = append(lines, "    hint: "+m.Hint)
	}
	return lines
}
