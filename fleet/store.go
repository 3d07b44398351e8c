package fleet

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
)

// Node is a machine that the operator knows.
type Node struct {
	Name string `json:"name"`
	// Target and Options are those of ssh(1).
	Target  string   `json:"ssh"`
	Options []string `json:"ssh_options,omitempty"`
	// Root is the root there, "" for the program's default.
	Root string `json:"root,omitempty"`
	// Drained nodes are left out of rollouts.
	Drained bool      `json:"drained,omitempty"`
	Added   time.Time `json:"added"`
	AddedBy string    `json:"added_by,omitempty"`
}

// Store is the table of nodes.
type Store struct{ db *sql.DB }

// Open prepares the table.
func Open(ctx context.Context, d *sql.DB) (*Store, error) {
	return &Store{d}, db.Migrate(ctx, d, "fleet", []string{
		`CREATE TABLE nodes (name TEXT PRIMARY KEY, target TEXT NOT NULL, options TEXT NOT NULL, root TEXT NOT NULL, drained INTEGER NOT NULL,
			added INTEGER NOT NULL, added_by TEXT NOT NULL) WITHOUT ROWID`,
	})
}

// Add notes a node durably. One of that name is fault.Refused.
func (s *Store) Add(ctx context.Context, n Node) error {
	if !validName.MatchString(n.Name) {
		return fault.New(fault.Usage, "node add", "%q is no name of a node", n.Name).WithHint("lower-case letters, digits, dots and dashes")
	}
	if n.Target == "" || n.Target[0] == '-' {
		return fault.New(fault.Usage, "node add", "%q is no host of ssh", n.Target)
	}
	options, err := json.Marshal(n.Options)
	if err != nil {
		return err
	}
	res, err := s.db.ExecContext(ctx, `INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		n.Name, n.Target, string(options), n.Root, n.Drained, n.Added.UnixNano(), n.AddedBy)
	if err != nil {
		return err
	}
	if made, err := res.RowsAffected(); err != nil || made > 0 {
		return err
	}
	return fault.New(fault.Refused, "node add", "there is a node %s already", n.Name).WithHint("corpus-git node show %s", n.Name)
}

// List gives the nodes in the order of their names.
func (s *Store) List(ctx context.Context) ([]Node, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT name, target, options, root, drained, added, added_by FROM nodes ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Node
	for rows.Next() {
		var n Node
		var options string
		var added int64
		if err := rows.Scan(&n.Name, &n.Target, &options, &n.Root, &n.Drained, &added, &n.AddedBy); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(options), &n.Options); err != nil {
			return nil, err
		}
		n.Added = time.Unix(0, added).UTC()
		out = append(out, n)
	}
	return out, rows.Err()
}

// Known gives the nodes by their names.
func (s *Store) Known(ctx context.Context) (map[string]Node, error) {
	list, err := s.List(ctx)
	out := make(map[string]Node, len(list))
	for _, n := range list {
		out[n.Name] = n
	}
	return out, err
}

// Get finds a node; an unknown one is fault.Refused.
func (s *Store) Get(ctx context.Context, name string) (Node, error) {
	known, err := s.Known(ctx)
	if err != nil {
		return Node{}, err
	}
	n, ok := known[name]
	if ok {
		return n, nil
	}
	e := fault.New(fault.Refused, "", "there is no node %s", name)
	if len(known) == 0 {
		return n, e.WithHint("corpus-git node add %s --ssh USER@HOST", name)
	}
	if near := nearest.To(name, sorted(known)); near != "" {
		return n, e.WithHint("did you mean  %s ?", near)
	}
	return n, e.WithHint("corpus-git node list  shows those that there are")
}

// Drain leaves a node out of rollouts, or takes it in again; changed tells whether it was not so before. Durable on return.
func (s *Store) Drain(ctx context.Context, name string, drained bool) (changed bool, err error) {
	n, err := s.Get(ctx, name)
	if err != nil || n.Drained == drained {
		return false, err
	}
	_, err = s.db.ExecContext(ctx, `UPDATE nodes SET drained = ? WHERE name = ?`, drained, name)
	return true, err
}

// Remove forgets a node. What is deployed there stays. Durable on return.
func (s *Store) Remove(ctx context.Context, name string) error {
	_, err := s.Get(ctx, name)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `DELETE FROM nodes WHERE name = ?`, name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}
