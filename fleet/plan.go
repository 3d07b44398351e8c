package fleet

import (
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/fault"
)

// Plan are the nodes to deploy on, in order.
type Plan struct {
	OnFailure string      `json:"on_failure"`
	Stages    []PlanStage `json:"stages"`
	// Skipped are nodes that are drained.
	Skipped []string `json:"skipped,omitempty"`
	// Leads are the nodes that may lead, if steps run on the leader only.
	Leads []string `json:"leads,omitempty"`
	// Left are nodes that were not requested.
	Left []string `json:"left,omitempty"`
	// Empty are stages that have no node, each with the reason.
	Empty []string `json:"empty,omitempty"`
	// NoSubmodules: nodes get no submodules, as the configuration deploys them as empty folders.
	NoSubmodules bool `json:"-"`
}

// PlanStage is a stage with its nodes.
type PlanStage struct {
	Name   string   `json:"name"`
	Nodes  []Member `json:"nodes"`
	Canary int      `json:"canary,omitempty"`
	// AtOnce is the number of nodes of a batch that are deployed at once, Batch the number of nodes in one batch.
	AtOnce      int      `json:"at_once"`
	Batch       int      `json:"batch"`
	MaxFailures int      `json:"max_failures,omitempty"`
	WaitFor     []Wait   `json:"wait_for,omitempty"`
	Settle      int      `json:"settle,omitempty"`
	Before      []string `json:"before,omitempty"`
	After       []string `json:"after,omitempty"`
	// Line is its line in the file that defines it, for messages; 0 if it is not known.
	Line int `json:"-"`
}

// Names returns the names of nodes.
func Names(members []Member) []string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = m.Name
	}
	return out
}

// Nodes returns all nodes of the plan, in the order of their stages.
func (p *Plan) Nodes() []Member {
	out := make([]Member, 0, p.count())
	for _, s := range p.Stages {
		out = append(out, s.Nodes...)
	}
	return out
}

// count returns how many nodes Nodes returns.
func (p *Plan) count() (n int) {
	for _, s := range p.Stages {
		n += len(s.Nodes)
	}
	return n
}

// Batches returns nodes of a stage in the groups that are completed one after the other: the canaries, then the batches of rolling.
func Batches(s PlanStage, nodes []Member) (out [][]Member) {
	if s.Canary > 0 && s.Canary < len(nodes) {
		out, nodes = append(out, nodes[:s.Canary]), nodes[s.Canary:]
	}
	for len(nodes) > 0 {
		n := min(max(s.Batch, 1), len(nodes))
		out, nodes = append(out, nodes[:n]), nodes[n:]
	}
	return out
}

// empty says why no node is in a stage.
func (s Stage) empty(members []Member) string {
	var unknown []string
	for _, role := range s.Roles {
		if !slices.ContainsFunc(members, func(m Member) bool { return slices.Contains(m.Roles, role) }) {
			unknown = append(unknown, role)
		}
	}
	if len(s.Roles) > 0 && len(unknown) == len(s.Roles) {
		return "no node has the role " + strings.Join(unknown, " or ")
	}
	return "its nodes are in earlier stages, drained, or not requested"
}

// NewPlan assigns the nodes of a project to its stages. Each node is in the first stage that has one of its roles, and in one only. A node
// that the operator did not add is fault.Refused, and so is one without a stage; a drained one is skipped. only, if not empty, selects
// nodes.
func NewPlan(members []Member, s Stages, known map[string]Node, only []string) (*Plan, error) {
	var unknown []Member
	p := &Plan{OnFailure: s.OnFailure}
	if s.Leader != nil {
		if p.Leads = s.Leader.candidates(members, known); len(p.Leads) == 0 {
			return nil, fault.New(fault.Refused, StagesFile, "no node may lead: all are drained, or none has one of the roles %s", strings.Join(s.Leader.Roles, ", "))
		}
	}
	var left []Member
	for _, m := range members {
		n, ok := known[m.Name]
		switch {
		case len(only) > 0 && !slices.Contains(only, m.Name):
			p.Left = append(p.Left, m.Name)
		case !ok:
			unknown = append(unknown, m)
		case n.Drained:
			p.Skipped = append(p.Skipped, m.Name)
		default:
			left = append(left, m)
		}
	}
	if len(unknown) > 0 {
		return nil, fault.New(fault.Refused, At(NodesFile, unknown[0].Line), "this server knows no node %s", strings.Join(Names(unknown), ", ")).
			WithHint("an administrator adds it:  corpus-git node add %s --ssh USER@HOST", unknown[0].Name)
	}
	if len(left) == 0 && len(only) > 0 && len(p.Skipped) == 0 {
		return nil, fault.New(fault.Refused, NodesFile, "it names none of the nodes %s", strings.Join(only, ", "))
	}
	if len(left) == 0 {
		return nil, fault.New(fault.Refused, NodesFile, "every node is drained: %s", strings.Join(p.Skipped, ", ")).WithHint("corpus-git node undrain %s", p.Skipped[0])
	}
	for _, st := range s.Stages {
		ps := PlanStage{Name: st.Name, Canary: st.Canary, MaxFailures: st.MaxFailures, WaitFor: st.WaitFor, Settle: st.Settle, Before: st.Before, After: st.After, Line: st.Line}
		rest := left[:0:0]
		for _, m := range left {
			if len(st.Roles) == 0 || slices.ContainsFunc(m.Roles, func(r string) bool { return slices.Contains(st.Roles, r) }) {
				ps.Nodes = append(ps.Nodes, m)
			} else {
				rest = append(rest, m)
			}
		}
		left = rest
		if len(ps.Nodes) == 0 {
			p.Empty = append(p.Empty, fmt.Sprintf("%s (%s)", st.Name, st.empty(members)))
			continue
		}
		var err error
		if ps.AtOnce, err = share("parallel", st.Parallel, len(ps.Nodes)); err != nil {
			return nil, err
		}
		if ps.Batch, err = share("rolling", st.Rolling, len(ps.Nodes)); err != nil {
			return nil, err
		}
		p.Stages = append(p.Stages, ps)
	}
	if s.Partial {
		for _, m := range left {
			p.Left = append(p.Left, m.Name)
		}
		if left = nil; len(p.Stages) == 0 {
			return nil, fault.New(fault.Refused, NodesFile, "no node has a role of the stages of this job")
		}
	}
	if len(left) > 0 {
		which := "which has no roles"
		if len(left[0].Roles) > 0 {
			which = "whose roles are: " + strings.Join(left[0].Roles, ", ")
		}
		return nil, fault.New(fault.Refused, StagesFile, "no stage takes the node %s (%s), %s", left[0].Name, At(NodesFile, left[0].Line), which).
			WithHint("add a stage without roles at the end: it takes all that are left")
	}
	return p, nil
}
