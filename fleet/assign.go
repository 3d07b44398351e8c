package fleet

import (
	"context"
	"database/sql"
	"errors"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Assign makes a node that on which a project runs as long as its pillar has no nodes.yaml; node "" ends that. changed reports whether the assignment changed. It is
// durable on return. An unknown node is fault.Refused.
func (s *Store) Assign(ctx context.Context, of project.Name, node string) (changed bool, err error) {
	if node != "" {
		if _, err := s.Get(ctx, node); err != nil {
			return false, err
		}
	}
	was, err := s.Assigned(ctx, of)
	if err != nil || was == node {
		return false, err
	}
	if node == "" {
		_, err = s.db.ExecContext(ctx, `DELETE FROM assigned WHERE project = ?`, string(of))
		return err == nil, err
	}
	_, err = s.db.ExecContext(ctx, `INSERT INTO assigned (project, node) VALUES (?, ?) ON CONFLICT (project) DO UPDATE SET node = excluded.node`, string(of), node)
	return err == nil, err
}

// Assigned returns the node that a project is assigned to, "" if none.
func (s *Store) Assigned(ctx context.Context, of project.Name) (node string, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT node FROM assigned WHERE project = ?`, string(of)).Scan(&node)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return node, err
}

// residents returns the projects that are assigned to a node.
func (s *Store) residents(ctx context.Context, node string) (out []string, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT project FROM assigned WHERE node = ? ORDER BY project`, node)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

// vacant refuses to remove a node that projects are assigned to: they would be deployed nowhere.
func (s *Store) vacant(ctx context.Context, node string) error {
	list, err := s.residents(ctx, node)
	if err == nil && len(list) > 0 {
		err = fault.New(fault.Refused, "", "%s is assigned to the node %s", list[0], node).WithHint("corpus-git node unassign %s", list[0])
	}
	return err
}
