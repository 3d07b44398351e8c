package fleet

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
)

// Node is a machine that the operator added.
type Node struct {
	Name string `json:"name"`
	// Agent reports that the node connects to the hub; otherwise Target and Options are those for ssh(1).
	Agent   bool     `json:"agent,omitempty"`
	Target  string   `json:"ssh,omitempty"`
	Options []string `json:"ssh_options,omitempty"`
	// Root is the root directory there, ""> for the program's default.
	Root string `json:"root,omitempty"`
	// Drained nodes are skipped by rollouts.
	Drained bool `json:"drained,omitempty"`
	// Slots is how many projects are deployed there at the same time, 0 for no limit.
	Slots   int       `json:"slots,omitempty"`
	Added   time.Time `json:"added"`
	AddedBy string    `json:"added_by,omitempty"`
	// Release and Facts are what the node reported when it was last reached, at Seen.
	Release string            `json:"release,omitempty"`
	Facts   map[string]string `json:"facts,omitempty"`
	Seen    time.Time         `json:"seen,omitzero"`
	// HostKeys are the public keys of its own ssh server, which it reported over an authenticated connection.
	HostKeys []string `json:"host_keys,omitempty"`
	// HubKeys are the fingerprints of the keys by which its agent knows the hub; none for a node that is reached by ssh, and for an agent of an older release.
	HubKeys []string `json:"hub_keys,omitempty"`
}

// dialsIn replaces the destination of ssh, which can't begin with a colon.
const dialsIn = ":agent"

// Store is the table of nodes, that of jobs, the index of what rollouts have left on nodes, and that of the leases by which a machine knows which hub may give orders there.
type Store struct {
	db     *sql.DB
	batch  *db.Batch
	rolled indexed
}

// Open prepares the table.
func Open(ctx context.Context, d *sql.DB) (*Store, error) {
	return &Store{db: d, batch: db.NewBatch(d)}, db.Migrate(ctx, d, "fleet", []string{
		`CREATE TABLE nodes (name TEXT PRIMARY KEY, target TEXT NOT NULL, options TEXT NOT NULL, root TEXT NOT NULL, drained INTEGER NOT NULL,
			added INTEGER NOT NULL, added_by TEXT NOT NULL) WITHOUT ROWID`,
		`ALTER TABLE nodes ADD COLUMN said TEXT NOT NULL DEFAULT '{}'`,
		`CREATE TABLE leases (project TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID`,
		`CREATE TABLE jobs (project TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, text TEXT NOT NULL, added INTEGER NOT NULL, added_by TEXT NOT NULL,
			PRIMARY KEY (project, name, revision)) WITHOUT ROWID`,
		`CREATE TABLE assigned (project TEXT PRIMARY KEY, node TEXT NOT NULL) WITHOUT ROWID`,
		`ALTER TABLE nodes ADD COLUMN slots INTEGER NOT NULL DEFAULT 0`,
		standings,
	})
}

// Add records a node durably. A name that already exists is fault.Refused.
func (s *Store) Add(ctx context.Context, n Node) error {
	if !validName.MatchString(n.Name) {
		return fault.New(fault.Usage, "node add", "%q is not a valid node name", n.Name).WithHint("lower-case letters, digits, dots and dashes")
	}
	if n.Agent {
		n.Target = dialsIn
	} else if n.Target == "" || n.Target[0] == '-' || n.Target[0] == ':' {
		return fault.New(fault.Usage, "node add", "%q is not a host of ssh", n.Target)
	}
	options, err := json.Marshal(n.Options)
	if err != nil {
		return err
	}
	res, err := s.db.ExecContext(ctx, `INSERT INTO nodes (name, target, options, root, drained, added, added_by) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		n.Name, n.Target, string(options), n.Root, n.Drained, n.Added.UnixNano(), n.AddedBy)
	if err != nil {
		return err
	}
	if made, err := res.RowsAffected(); err != nil || made > 0 {
		return err
	}
	return fault.New(fault.Refused, "node add", "there is a node %s already", n.Name).WithHint("corpus-git node show %s", n.Name)
}

// nodeColumns are the columns that scanNode reads.
const nodeColumns = `name, target, options, root, drained, added, added_by, said, slots`

func scanNode(row interface{ Scan(to ...any) error }) (n Node, err error) {
	var options, said string
	var added int64
	if err := row.Scan(&n.Name, &n.Target, &options, &n.Root, &n.Drained, &added, &n.AddedBy, &said, &n.Slots); err != nil {
		return n, err
	}
	var s NodeReport
	if err := errors.Join(json.Unmarshal([]byte(options), &n.Options), json.Unmarshal([]byte(said), &s)); err != nil {
		return n, err
	}
	n.Release, n.Facts, n.Seen, n.HostKeys, n.HubKeys = s.Release, s.Facts, s.Seen, s.HostKeys, s.HubKeys
	if n.Target == dialsIn {
		n.Agent, n.Target = true, ""
	}
	n.Added = time.Unix(0, added).UTC()
	return n, nil
}

// List returns the nodes in the order of their names, web2 before web10.
func (s *Store) List(ctx context.Context) ([]Node, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+nodeColumns+` FROM nodes ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Node
	for rows.Next() {
		n, err := scanNode(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b Node) int { return natural(a.Name, b.Name) })
	return out, rows.Err()
}

// NodeReport is what a node reports about itself.
type NodeReport struct {
	Release  string            `json:"release,omitempty"`
	Facts    map[string]string `json:"facts,omitempty"`
	HostKeys []string          `json:"host_keys,omitempty"`
	HubKeys  []string          `json:"hub_keys,omitempty"`
	Seen     time.Time         `json:"seen,omitzero"`
}

// maxSaying limits a node's report, as JSON in bytes.
const maxSaying = 64 << 10

// RecordReport records a node's report when it was reached. An unknown node is ignored, as are invalid host keys.
func (s *Store) RecordReport(ctx context.Context, name string, said NodeReport) error {
	said.Seen = said.Seen.UTC()
	var keys []string
	for _, line := range said.HostKeys {
		// Only the key itself is accepted: others append it to their known_hosts.
		if k, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil && len(rest) == 0 {
			keys = append(keys, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k))))
		}
	}
	said.HostKeys = keys
	text, err := json.Marshal(said)
	if err == nil && len(text) > maxSaying {
		err = fault.New(fault.Refused, "", "what %s says of itself is longer than %d bytes", name, maxSaying)
	}
	if err != nil {
		return err
	}
	return s.batch.Exec(ctx, `UPDATE nodes SET said = ? WHERE name = ?`, string(text), name)
}

// Known returns the nodes by their names.
func (s *Store) Known(ctx context.Context) (map[string]Node, error) {
	list, err := s.List(ctx)
	out := make(map[string]Node, len(list))
	for _, n := range list {
		out[n.Name] = n
	}
	return out, err
}

// KnownOf returns those of the named nodes that there are, by their names.
func (s *Store) KnownOf(ctx context.Context, names []string) (map[string]Node, error) {
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT `+nodeColumns+` FROM nodes WHERE name IN (SELECT value FROM json_each(?))`, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make(map[string]Node, len(names))
	for rows.Next() {
		n, err := scanNode(rows)
		if err != nil {
			return nil, err
		}
		out[n.Name] = n
	}
	return out, rows.Err()
}

// Get finds a node; an unknown one is fault.Refused.
func (s *Store) Get(ctx context.Context, name string) (Node, error) {
	n, err := scanNode(s.db.QueryRowContext(ctx, `SELECT `+nodeColumns+` FROM nodes WHERE name = ?`, name))
	if !errors.Is(err, sql.ErrNoRows) {
		return n, err
	}
	known, err := s.Known(ctx)
	if err != nil {
		return Node{}, err
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

// Drain excludes a node from rollouts, or includes it again; changed reports whether the state changed. It is durable on
// return.
func (s *Store) Drain(ctx context.Context, name string, drained bool) (changed bool, err error) {
	n, err := s.Get(ctx, name)
	if err != nil || n.Drained == drained {
		return false, err
	}
	_, err = s.db.ExecContext(ctx, `UPDATE nodes SET drained = ? WHERE name = ?`, drained, name)
	return true, err
}

// SetSlots limits how many projects are deployed to a node at the same time, from the next rollouts on; 0 is no limit. changed reports whether the limit changed. It
// is durable on return.
func (s *Store) SetSlots(ctx context.Context, name string, slots int) (changed bool, err error) {
	n, err := s.Get(ctx, name)
	if err != nil || n.Slots == slots {
		return false, err
	}
	_, err = s.db.ExecContext(ctx, `UPDATE nodes SET slots = ? WHERE name = ?`, slots, name)
	return true, err
}

// Removable refuses a node that is unknown, or that a project is assigned to.
func (s *Store) Removable(ctx context.Context, name string) error {
	if _, err := s.Get(ctx, name); err != nil {
		return err
	}
	return s.vacant(ctx, name)
}

// Remove removes a node from the table. What is deployed there stays. A node that a project is assigned to is fault.Refused. It is durable on
// return.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := s.Removable(ctx, name); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, `DELETE FROM nodes WHERE name = ?`, name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}
