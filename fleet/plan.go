package fleet

import (
	"slices"
	"strings"

	"corpus-git/internal/fault"
)

// Plan is which nodes get a deployment, and in which order.
type Plan struct {
	OnFailure string      `json:"on_failure"`
	Stages    []PlanStage `json:"stages"`
	// Skipped are nodes that are drained.
	Skipped []string `json:"skipped,omitempty"`
}

// PlanStage is a stage with its nodes.
type PlanStage struct {
	Name        string   `json:"name"`
	Nodes       []Member `json:"nodes"`
	Canary      int      `json:"canary,omitempty"`
	AtOnce      int      `json:"at_once"`
	MaxFailures int      `json:"max_failures,omitempty"`
}

// Nodes are all nodes of the plan, in the order of their stages.
func (p *Plan) Nodes() (out []Member) {
	for _, s := range p.Stages {
		out = append(out, s.Nodes...)
	}
	return out
}

// Batches are the nodes of a stage in the groups in which they are deployed: the canaries, then as many at once as it says.
func (s PlanStage) Batches() (out [][]Member) {
	list := s.Nodes
	if s.Canary > 0 && s.Canary < len(list) {
		out, list = append(out, list[:s.Canary]), list[s.Canary:]
	}
	for len(list) > 0 {
		n := min(s.AtOnce, len(list))
		out, list = append(out, list[:n]), list[n:]
	}
	return out
}

// NewPlan puts the nodes of a project into its stages. Each node is in the first stage that one of its roles is in, and in one only. A node that the
// operator does not know is fault.Refused, and so is one that no stage takes; one that is drained is left out.
func NewPlan(members []Member, s Stages, known map[string]Node) (*Plan, error) {
	var unknown []string
	p := &Plan{OnFailure: s.OnFailure}
	var left []Member
	for _, m := range members {
		n, ok := known[m.Name]
		switch {
		case !ok:
			unknown = append(unknown, m.Name)
		case n.Drained:
			p.Skipped = append(p.Skipped, m.Name)
		default:
			left = append(left, m)
		}
	}
	if len(unknown) > 0 {
		return nil, fault.New(fault.Refused, NodesFile, "this server knows no node %s", strings.Join(unknown, ", ")).
			WithHint("an administrator adds it:  corpus-git node add %s --ssh USER@HOST", unknown[0])
	}
	if len(left) == 0 {
		return nil, fault.New(fault.Refused, NodesFile, "every node is drained: %s", strings.Join(p.Skipped, ", ")).WithHint("corpus-git node undrain %s", p.Skipped[0])
	}
	for _, st := range s.Stages {
		ps := PlanStage{Name: st.Name, Canary: st.Canary, MaxFailures: st.MaxFailures}
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
			continue
		}
		n, err := st.atOnce(len(ps.Nodes))
		if err != nil {
			return nil, err
		}
		ps.AtOnce = n
		p.Stages = append(p.Stages, ps)
	}
	if len(left) > 0 {
		return nil, fault.New(fault.Refused, StagesFile, "no stage takes the node %s, whose roles are: %s", left[0].Name, strings.Join(left[0].Roles, ", ")).
			WithHint("add a stage without roles at the end: it takes all that are left")
	}
	return p, nil
}
