package fleet

import (
	"context"

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
