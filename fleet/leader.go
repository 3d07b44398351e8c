package fleet

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/strictyaml"
	"corpus-git/project"
)

// Leader names steps that run on one node only.
type Leader struct {
	Steps []string `yaml:"steps"`
	// Roles are the roles whose nodes may lead; none means every node.
	Roles []string `yaml:"roles"`
}

// Elect returns the leader of a project among candidates, which stays the leader as long as it is one of them, and the token of its election, which is greater than those of all
// earlier leaders.
type Elect func(ctx context.Context, name project.Name, candidates []string) (leader string, token int64, err error)

// LeaderSteps returns the steps of a recipe that run on the leader only; a step that does not exist is fault.Usage.
func LeaderSteps(recipe fs.FS, exists func(name string) bool) ([]string, error) {
	var s Stages
	text, err := read(recipe, path.Base(StagesFile), &s)
	if err != nil || s.Leader == nil {
		return nil, err
	}
	for i, name := range s.Leader.Steps {
		if !exists(name) {
			return nil, fault.New(fault.Usage, At(StagesFile, strictyaml.Parse(text).Of("leader", "steps", i)), "leader: no step %q", name).WithHint("a step is named by its file without the ending")
		}
	}
	return s.Leader.Steps, nil
}

// candidates returns the nodes that may lead: those with one of the roles that the operator has added and that are not drained, whether or not this rollout includes them.
func (l *Leader) candidates(members []Member, known map[string]Node) (names []string) {
	for _, m := range members {
		n, ok := known[m.Name]
		if ok && !n.Drained && (len(l.Roles) == 0 || slices.ContainsFunc(m.Roles, func(r string) bool { return slices.Contains(l.Roles, r) })) {
			names = append(names, m.Name)
		}
	}
	return names
}

// elect records which node leads, if the plan has steps for a leader.
func (p *Progress) elect(ctx context.Context, by Elect) (err error) {
	if len(p.Plan.Leads) == 0 {
		return nil
	}
	if by == nil {
		return fault.New(fault.Refused, StagesFile, "this server elects no leader")
	}
	p.Leader, p.Token, err = by(ctx, p.Deployment.Project, p.Plan.Leads)
	return err
}

// leader returns the leader of the rollout, "" if it has none.
func (r *Rollout) leader() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.p.Leader
}

// leaderMissing refuses to continue if the leader is skipped.
func (p *Plan) leaderMissing(leader string, left []string) error {
	if leader == "" || !slices.Contains(left, leader) {
		return nil
	}
	return fault.New(fault.Refused, "", "the leader %s is not ready, and steps run there only", leader).
		WithHint("corpus-git node drain %s  lets another one lead; nodes that may: %s", leader, strings.Join(p.Leads, ", "))
}

// Into adds to cfg what a step on the hub is run for, as data.rollout.
func (b Batch) Into(cfg *py.Dict) {
	v, _ := cfg.GetStr("data")
	data, ok := v.(*py.Dict)
	if !ok {
		data = py.NewDict()
		cfg.SetStr("data", data)
	}
	var names []any
	for _, m := range b.Nodes {
		names = append(names, m.Name)
	}
	data.SetStr("rollout", py.NewDict("stage", b.Stage, "nodes", py.NewList(names...)))
}

// leaderReplaced refuses a retry on nodes that would run the leader's steps nowhere: the rollout is not live on its leader, which is drained, so another
// node leads, and may be one on which the rollout is live.
func (p *Progress) leaderReplaced(nodes []string, drained func(name string) bool) error {
	if p.Leader == "" || !slices.Contains(nodes, p.Leader) || !drained(p.Leader) {
		return nil
	}
	for _, name := range p.Plan.Leads {
		if slices.Contains(nodes, name) || drained(name) {
			continue
		}
		hint := "corpus-git deploy " + string(p.Deployment.Project)
		if p.State != Live {
			hint = "push again"
		}
		return fault.New(fault.Refused, "rollout retry", "the steps of the leader did not run: it was %s, which is drained or removed, and %s, where %s is live already, may lead now", p.Leader, name, p.Deployment.Code.Short()).
			WithHint("%s  runs them on the next leader", hint)
	}
	return nil
}
