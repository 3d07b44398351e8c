package fleet

import (
	"cmp"
	"context"
	"slices"

	"corpus-git/project"
)

// Use is a project on a node.
type Use struct {
	Project project.Name `json:"project"`
	Roles   []string     `json:"roles,omitempty"`
	// State is the node's state in Deployment, the last rollout of the project to it; "" if there was none.
	State      string     `json:"state,omitempty"`
	Deployment project.ID `json:"deployment,omitempty"`
	// Behind reports that the node has another release than the live one, Release which, "" if that is not known.
	Behind  bool           `json:"behind,omitempty"`
	Release project.Commit `json:"release,omitempty"`
}

// Uses returns the projects of each node, by the names of the nodes: those whose newest rollout names the node, also if it was left out, and those that are assigned to it. history is that of all
// projects, the newest first.
func Uses(history []*Progress, assigned map[project.Name]string) map[string][]Use {
	out, by := map[string][]Use{}, map[project.Name][]*Progress{}
	for _, p := range history {
		by[p.Deployment.Project] = append(by[p.Deployment.Project], p)
	}
	for name, list := range by {
		newest, seen := list[0], map[string]bool{}
		for _, m := range newest.Plan.Nodes() {
			seen[m.Name] = true
		}
		for _, node := range slices.Concat(newest.Plan.Left, newest.Plan.Skipped) {
			seen[node] = true
		}
		behind := map[string]Behind{}
		for _, b := range BehindLive(list) {
			behind[b.Node] = b
		}
		for node := range seen {
			u := use(name, node, list)
			if b, ok := behind[node]; ok {
				u.Behind, u.Release = true, b.Release
			}
			out[node] = append(out[node], u)
		}
	}
	for name, node := range assigned {
		if !slices.ContainsFunc(out[node], func(u Use) bool { return u.Project == name }) {
			out[node] = append(out[node], Use{Project: name})
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Use) int { return cmp.Compare(a.Project, b.Project) })
	}
	return out
}

// use returns what the newest of a project's rollouts that included a node says of it.
func use(name project.Name, node string, history []*Progress) Use {
	for _, p := range history {
		if i := slices.IndexFunc(p.Nodes, func(n NodeProgress) bool { return n.Name == node }); i >= 0 {
			return Use{Project: name, Roles: p.Nodes[i].Roles, State: p.Nodes[i].State, Deployment: p.Deployment.ID}
		}
	}
	return Use{Project: name}
}

// Assignments returns the nodes that projects are assigned to.
func (s *Store) Assignments(ctx context.Context) (map[project.Name]string, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT project, node FROM assigned`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[project.Name]string{}
	for rows.Next() {
		var name, node string
		if err := rows.Scan(&name, &node); err != nil {
			return nil, err
		}
		out[project.Name(name)] = node
	}
	return out, rows.Err()
}
