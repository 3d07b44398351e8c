package configs

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Config describes a step: the tool that applies it, its text, its inputs and outputs. It never changes; its ID is the hash of all other fields.
type Config struct {
	ID string `json:"id"`
	// Group is the tool that applies it: salt, script, ansible, puppet, or the group of an operator's program.
	Group string `json:"group"`
	// File is its name in the recipe, Source is its text. For a file that is not text, is larger than MaxSource, or holds a secret, it is "sha256:"
	// and the hash.
	File   string `json:"file"`
	Source string `json:"source"`
	// Inputs and Outputs are the declarations for it, as in the recipe's files.
	Inputs  string `json:"inputs,omitempty"`
	Outputs string `json:"outputs,omitempty"`
	// Options are further settings that change what it does, as JSON.
	Options string `json:"options,omitempty"`
}

// MaxSource limits the size of the text of a config, in bytes.
const MaxSource = 1 << 20

// hash returns the ID of a config's content: the hash of each part, prefixed with its length.
func (c Config) hash() string {
	h := sha256.New()
	for _, part := range []string{c.Group, c.File, c.Source, c.Inputs, c.Outputs, c.Options} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Action is what a deployment of a config does.
type Action string

// The actions.
const (
	Deploy   Action = "DEPLOY"
	Redeploy Action = "REDEPLOY"
	Undeploy Action = "UNDEPLOY"
	Rollback Action = "ROLLBACK"
	Converge Action = "CONVERGE"
	Task     Action = "TASK"
)

// State is the state of a deployment of a config.
type State string

// The states.
const (
	InProgress State = "IN_PROGRESS"
	Complete   State = "COMPLETE"
	Failed     State = "FAILED"
)

// Deployment is the deployment of one config to one server.
type Deployment struct {
	// Seq orders them.
	Seq int64 `json:"-"`
	// Deployment is the run of the pipeline that it is part of, Step the name of the step in it.
	Deployment project.ID   `json:"deployment"`
	Project    project.Name `json:"project"`
	Step       string       `json:"step"`
	Config     string       `json:"config"`
	Group      string       `json:"group"`
	Server     string       `json:"server"`
	Action     Action       `json:"action"`
	State      State        `json:"state"`
	Reason     string       `json:"reason,omitempty"`
	// Inputs are the values of the declared inputs, Outputs are the values that were written, without secrets.
	Inputs  json.RawMessage `json:"inputs,omitempty"`
	Outputs json.RawMessage `json:"outputs,omitempty"`
	Began   time.Time       `json:"began,omitzero"`
	Ended   time.Time       `json:"ended,omitzero"`
}

// Store is the two tables. Its methods are safe for concurrent use.
type Store struct {
	db     *sql.DB
	now    func() time.Time
	writer *writer
}

// statements create the tables. The tables of the room pipeline must exist: what is deleted there is deleted here.
func statements() []string {
	return []string{
		`CREATE TABLE configs (id TEXT PRIMARY KEY, grp TEXT NOT NULL, file TEXT NOT NULL, source TEXT NOT NULL, inputs TEXT NOT NULL, outputs TEXT NOT NULL,
			options TEXT NOT NULL) WITHOUT ROWID`,
		`CREATE TABLE config_deployments (seq INTEGER PRIMARY KEY, deployment TEXT NOT NULL, project TEXT NOT NULL, step TEXT NOT NULL, config TEXT NOT NULL REFERENCES configs(id),
			server TEXT NOT NULL, action TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('IN_PROGRESS', 'COMPLETE', 'FAILED')), reason TEXT NOT NULL, inputs TEXT NOT NULL,
			outputs TEXT NOT NULL, began INTEGER NOT NULL, ended INTEGER NOT NULL)`,
		`CREATE INDEX config_deployments_server ON config_deployments(server, seq)`,
		`CREATE INDEX config_deployments_project ON config_deployments(project, seq)`,
		`CREATE INDEX config_deployments_of ON config_deployments(deployment, seq)`,
		`CREATE INDEX config_deployments_config ON config_deployments(config)`,
		`CREATE INDEX config_deployments_open ON config_deployments(state) WHERE state = 'IN_PROGRESS'`,
		`CREATE TRIGGER configs_change BEFORE UPDATE ON configs BEGIN SELECT RAISE(ABORT, 'a config never changes'); END`,
		`CREATE TRIGGER configs_remove BEFORE DELETE ON configs WHEN EXISTS (SELECT 1 FROM config_deployments WHERE config = OLD.id)
			BEGIN SELECT RAISE(ABORT, 'a deployment refers to this config'); END`,
		`CREATE TRIGGER config_deployments_bind BEFORE UPDATE OF deployment, project, step, config, server, action, inputs, began ON config_deployments
			BEGIN SELECT RAISE(ABORT, 'what a deployment binds never changes'); END`,
		`CREATE TRIGGER config_deployments_final BEFORE UPDATE ON config_deployments WHEN OLD.state <> 'IN_PROGRESS'
			BEGIN SELECT RAISE(ABORT, 'this deployment has ended'); END`,
		`CREATE TRIGGER config_deployments_unused AFTER DELETE ON config_deployments WHEN NOT EXISTS (SELECT 1 FROM config_deployments WHERE config = OLD.config)
			BEGIN DELETE FROM configs WHERE id = OLD.config; END`,
		`CREATE TRIGGER config_deployments_forget AFTER DELETE ON deployments BEGIN DELETE FROM config_deployments WHERE deployment = OLD.id; END`,
		// INSERT OR REPLACE is no update and, for triggers, no deletion.
		`CREATE TRIGGER configs_replace BEFORE INSERT ON configs WHEN EXISTS (SELECT 1 FROM configs WHERE id = NEW.id AND (grp, file, source, inputs, outputs, options) IS NOT
			(NEW.grp, NEW.file, NEW.source, NEW.inputs, NEW.outputs, NEW.options)) BEGIN SELECT RAISE(ABORT, 'a config never changes'); END`,
		`CREATE TRIGGER config_deployments_replace BEFORE INSERT ON config_deployments WHEN EXISTS (SELECT 1 FROM config_deployments WHERE seq = NEW.seq)
			BEGIN SELECT RAISE(ABORT, 'what a deployment binds never changes'); END`,
	}
}

// Open creates the tables. The tables of deployments must exist.
func Open(ctx context.Context, d *sql.DB, now func() time.Time) (*Store, error) {
	return &Store{db: d, now: now, writer: newWriter(d)}, db.Migrate(ctx, d, "configs", statements())
}

// Abandon marks those that a dead server left in progress as failed, except those of some deployments, which continue, and returns their number.
func (s *Store) Abandon(ctx context.Context, except ...project.ID) (n int64, err error) {
	kept, err := json.Marshal(append([]project.ID{}, except...))
	if err != nil {
		return 0, err
	}
	return s.abandon(ctx, `deployment NOT IN (SELECT value FROM json_each(?))`, string(kept))
}

// AbandonOf marks those that a deployment left in progress as failed: it has ended, in another process than the one in which it began.
func (s *Store) AbandonOf(ctx context.Context, id project.ID) error {
	_, err := s.abandon(ctx, `deployment = ?`, id)
	return err
}

func (s *Store) abandon(ctx context.Context, which string, arg any) (int64, error) {
	res, err := s.db.ExecContext(ctx, `UPDATE config_deployments SET state = 'FAILED', reason = 'the server ended before the step did', ended = ? WHERE state = 'IN_PROGRESS' AND `+which, s.now().UnixNano(), arg)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Filter selects deployments of configs; an empty field selects all.
type Filter struct {
	Server     string
	Project    project.Name
	Deployment project.ID
	Config     string
	Limit      int
}

// query returns the SQL statement of a filter.
func (f Filter) query() (text string, args []any) {
	var where []string
	add := func(column, value string) {
		if value != "" {
			where, args = append(where, column+" = ?"), append(args, value)
		}
	}
	add("d.deployment", string(f.Deployment))
	add("d.config", f.Config)
	add("d.project", string(f.Project))
	add("d.server", f.Server)
	text = `SELECT d.seq, d.deployment, d.project, d.step, d.config, c.grp, d.server, d.action, d.state, d.reason, d.inputs, d.outputs, d.began, d.ended
		FROM config_deployments d JOIN configs c ON c.id = d.config`
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	return text + " ORDER BY d.seq DESC LIMIT ?", append(args, f.Limit)
}

// List returns the newest first; one query.
func (s *Store) List(ctx context.Context, f Filter) ([]Deployment, error) {
	text, args := f.query()
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []Deployment{}
	for rows.Next() {
		var d Deployment
		var inputs, outputs string
		var began, ended int64
		if err := rows.Scan(&d.Seq, &d.Deployment, &d.Project, &d.Step, &d.Config, &d.Group, &d.Server, &d.Action, &d.State, &d.Reason, &inputs, &outputs, &began, &ended); err != nil {
			return nil, err
		}
		d.Inputs, d.Outputs, d.Began = raw(inputs), raw(outputs), time.Unix(0, began)
		if ended != 0 {
			d.Ended = time.Unix(0, ended)
		}
		out = append(out, d)
	}
	return out, rows.Err()
}

func raw(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// Get returns one config by its ID or a prefix of it; no match and several matches are fault.Usage.
func (s *Store) Get(ctx context.Context, id string) (c Config, err error) {
	if len(id) < 6 || strings.Trim(id, "0123456789abcdef") != "" {
		return c, fault.New(fault.Usage, "", "%.80q is not a config: give at least 6 digits of its hash", id)
	}
	rows, err := s.db.QueryContext(ctx, `SELECT id, grp, file, source, inputs, outputs, options FROM configs WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 2`, id)
	if err != nil {
		return c, err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		if n++; n > 1 {
			return Config{}, fault.New(fault.Usage, "", "%s is ambiguous: it matches more than one config", id).WithHint("give more digits")
		}
		if err := rows.Scan(&c.ID, &c.Group, &c.File, &c.Source, &c.Inputs, &c.Outputs, &c.Options); err != nil {
			return c, err
		}
	}
	if err := rows.Err(); err != nil {
		return c, err
	}
	if n == 0 {
		return c, fault.New(fault.Usage, "", "no config %s", id)
	}
	return c, nil
}
