package signals

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
)

// State is the state of a wait.
type State string

// The states.
const (
	// Open: signals are accepted, and nothing is waiting for them yet.
	Open State = "open"
	// Waiting: the deployment is paused.
	Waiting   State = "waiting"
	Complete  State = "complete"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Ended reports whether the wait accepts no more signals.
func (s State) Ended() bool { return s != Open && s != Waiting }

// Signal is a signal that was counted.
type Signal struct {
	// Name is the name in the address, or of the place that it took; ID is the sender's ID, or Name if it sent none.
	Name   string    `json:"name"`
	ID     string    `json:"id"`
	Status Status    `json:"status"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`

	digest string
	data   json.RawMessage
}

// WaitStatus is the status of a wait, for people.
type WaitStatus struct {
	Deployment project.ID   `json:"deployment"`
	Project    project.Name `json:"project"`
	Wait       string       `json:"wait"`
	Step       string       `json:"step,omitempty"`
	State      State        `json:"state"`
	Reason     string       `json:"reason,omitempty"`
	// Count is the number of signals that complete it; Missing are the names of those not received yet.
	Count    int       `json:"count"`
	Received []Signal  `json:"received"`
	Missing  []string  `json:"missing"`
	Since    time.Time `json:"since"`
	// Until is when it fails; zero if nothing is waiting yet.
	Until time.Time `json:"until,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
}

// Document is printed by waits --json.
type Document struct {
	Version int          `json:"version"`
	Waits   []WaitStatus `json:"waits"`
}

// Progress describes the progress: "1 of 3 signals, missing: 2, 3".
func (s WaitStatus) Progress() string { return progress(len(s.Received), s.Count, s.Missing) }

func progress(received, count int, missing []string) string {
	text := fmt.Sprintf("%d of %s", received, humanize.Plural(count, "signal"))
	if len(missing) > 0 {
		text += ", missing: " + few(missing)
	}
	return text
}

// few returns the first of some names, and the number of the others.
func few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// key names a wait.
type key struct {
	deployment project.ID
	wait       string
}

// current is a wait of a running deployment.
type current struct {
	WaitStatus
	wait Wait
	hide func(string) string
	// changed is closed when a signal is received, or the wait ends.
	changed chan struct{}
}

// Store holds the waits of all deployments. Its methods may be called by several goroutines.
type Store struct {
	db  *sql.DB
	now func() time.Time
	mac []byte

	// left are the deployments with waits that an earlier process left open.
	left map[project.ID]bool

	mu      sync.Mutex
	current map[key]*current
}

// statements create the tables. The tables of the pipeline must exist: what is deleted there is deleted here.
func statements() []string {
	return []string{
		`CREATE TABLE signal_key (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL)`,
		`CREATE TABLE waits (deployment TEXT NOT NULL, id TEXT NOT NULL, project TEXT NOT NULL, code TEXT NOT NULL, step TEXT NOT NULL, names TEXT NOT NULL,
			state TEXT NOT NULL CHECK (state IN ('open', 'waiting', 'complete', 'failed', 'cancelled')), reason TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL,
			ended INTEGER NOT NULL, PRIMARY KEY (deployment, id)) WITHOUT ROWID`,
		`CREATE INDEX waits_project ON waits(project, since)`,
		`CREATE INDEX waits_release ON waits(project, id, code, since) WHERE state = 'complete'`,
		`CREATE INDEX waits_open ON waits(state) WHERE state IN ('open', 'waiting')`,
		`CREATE TABLE wait_signals (deployment TEXT NOT NULL, wait TEXT NOT NULL, name TEXT NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, sender TEXT NOT NULL,
			data TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (deployment, wait, name), UNIQUE (deployment, wait, id)) WITHOUT ROWID`,
		`CREATE TRIGGER waits_final BEFORE UPDATE ON waits WHEN OLD.state NOT IN ('open', 'waiting') BEGIN SELECT RAISE(ABORT, 'this wait has ended'); END`,
		`CREATE TRIGGER wait_signals_fixed BEFORE UPDATE ON wait_signals BEGIN SELECT RAISE(ABORT, 'a signal never changes'); END`,
		`CREATE TRIGGER waits_forget AFTER DELETE ON deployments BEGIN
			DELETE FROM waits WHERE deployment = OLD.id; DELETE FROM wait_signals WHERE deployment = OLD.id; END`,
		`ALTER TABLE waits ADD COLUMN spec TEXT NOT NULL DEFAULT ''`,
		`ALTER TABLE wait_signals ADD COLUMN digest BLOB NOT NULL DEFAULT x''`,
		`ALTER TABLE wait_signals ADD COLUMN whole INTEGER NOT NULL DEFAULT 1`,
	}
}

// OpenStore creates the tables and the key. The tables of deployments must exist. Waits that an earlier process left open accept signals after
// Reopen, and end with Ended.
func OpenStore(ctx context.Context, d *sql.DB, now func() time.Time) (*Store, error) {
	if err := db.Migrate(ctx, d, "signals", statements()); err != nil {
		return nil, err
	}
	s := &Store{db: d, now: now, left: map[project.ID]bool{}, current: map[key]*current{}}
	made := make([]byte, 32)
	_, _ = rand.Read(made) // crypto/rand: it never fails
	if _, err := d.ExecContext(ctx, `INSERT INTO signal_key(one, key) VALUES(1, ?) ON CONFLICT(one) DO NOTHING`, made); err != nil {
		return nil, err
	}
	if err := d.QueryRowContext(ctx, `SELECT key FROM signal_key`).Scan(&s.mac); err != nil {
		return nil, err
	}
	return s, s.findLeft(ctx)
}

// findLeft reads which deployments an earlier process left with open waits.
func (s *Store) findLeft(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, `SELECT DISTINCT deployment FROM waits WHERE state IN ('open', 'waiting')`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id project.ID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		s.left[id] = true
	}
	return rows.Err()
}

// Left returns the deployments with waits that an earlier process left open.
func (s *Store) Left() []project.ID { return slices.Sorted(maps.Keys(s.left)) }

// Begin makes the signals of a deployment's waits acceptable. What is recorded about them is passed through hide. It is durable on return.
func (s *Store) Begin(ctx context.Context, d project.Deployment, hide func(string) string, waits ...Wait) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range waits {
		k := key{d.ID, w.ID}
		if s.current[k] != nil {
			continue
		}
		names, err := json.Marshal(w.Names)
		if err != nil {
			return err
		}
		spec, err := json.Marshal(spec{Named: w.Named, Timeout: w.Timeout, Continue: w.Continue})
		if err != nil {
			return err
		}
		c := &current{wait: w, hide: hide, changed: make(chan struct{}), WaitStatus: WaitStatus{
			Deployment: d.ID, Project: d.Project, Wait: w.ID, Step: w.Step, State: Open, Count: len(w.Names), Received: []Signal{}, Missing: slices.Clone(w.Names), Since: s.now(),
		}}
		_, err = s.db.ExecContext(ctx, `INSERT INTO waits(deployment, id, project, code, step, names, state, reason, since, until, ended, spec) VALUES(?,?,?,?,?,?,'open','',?,0,0,?)`,
			d.ID, w.ID, d.Project, d.Code, w.Step, string(names), c.Since.UnixNano(), string(spec))
		if err != nil {
			return err
		}
		s.current[k] = c
	}
	return nil
}

// Ended is called when a deployment has ended: its waits accept no more signals, those of an earlier process included. It is durable on return.
func (s *Store) Ended(ctx context.Context, id project.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	const reason = "the deployment ended"
	var first error
	for k, c := range s.current {
		if k.deployment != id {
			continue
		}
		if err := s.end(ctx, c, Cancelled, reason); err != nil && first == nil {
			first = err
		}
		delete(s.current, k)
	}
	if !s.left[id] {
		return first
	}
	_, err := s.db.ExecContext(ctx, `UPDATE waits SET state = 'cancelled', reason = ?, ended = ? WHERE deployment = ? AND state IN ('open', 'waiting')`, reason, s.now().UnixNano(), id)
	return errors.Join(first, err)
}

// end ends a wait that has not ended. The mutex is held.
func (s *Store) end(ctx context.Context, c *current, state State, reason string) error {
	if c.State.Ended() {
		return nil
	}
	c.State, c.Reason, c.WaitStatus.Ended = state, c.hide(reason), s.now()
	close(c.changed)
	_, err := s.db.ExecContext(context.WithoutCancel(ctx), `UPDATE waits SET state = ?, reason = ?, ended = ? WHERE deployment = ? AND id = ?`, c.State, c.Reason, c.WaitStatus.Ended.UnixNano(), c.Deployment, c.Wait)
	return err
}

// Filter selects waits; an empty field selects all.
type Filter struct {
	Project    project.Name
	Deployment project.ID
	Wait       string
	Limit      int
}

// List returns the newest first.
func (s *Store) List(ctx context.Context, f Filter) ([]WaitStatus, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT deployment, id, project, step, names, state, reason, since, until, ended FROM waits
		WHERE (?1 = '' OR project = ?1) AND (?2 = '' OR deployment = ?2) AND (?3 = '' OR id = ?3) ORDER BY since DESC, id LIMIT ?4`, f.Project, f.Deployment, f.Wait, f.Limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []WaitStatus{}
	for rows.Next() {
		w := WaitStatus{Received: []Signal{}}
		var names string
		var since, until, ended int64
		if err := rows.Scan(&w.Deployment, &w.Wait, &w.Project, &w.Step, &names, &w.State, &w.Reason, &since, &until, &ended); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(names), &w.Missing); err != nil {
			return nil, err
		}
		w.Count, w.Since, w.Until, w.Ended = len(w.Missing), time.Unix(0, since), at(until), at(ended)
		out = append(out, w)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i := range out {
		if err := s.received(ctx, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// received reads the received signals.
func (s *Store) received(ctx context.Context, w *WaitStatus) error {
	rows, err := s.db.QueryContext(ctx, `SELECT name, id, status, reason, sender, at FROM wait_signals WHERE deployment = ? AND wait = ? ORDER BY at, name`, w.Deployment, w.Wait)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var g Signal
		var when int64
		if err := rows.Scan(&g.Name, &g.ID, &g.Status, &g.Reason, &g.By, &when); err != nil {
			return err
		}
		g.At = time.Unix(0, when)
		w.Received = append(w.Received, g)
		w.Missing = slices.DeleteFunc(w.Missing, func(n string) bool { return n == g.Name })
	}
	return rows.Err()
}

// Data returns the data of a wait's signals, by their IDs, from the last time the commit of a deployment was deployed and the wait was
// completed; nothing if it never was.
func (s *Store) Data(ctx context.Context, d project.Deployment, wait string) (map[string]json.RawMessage, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, data FROM wait_signals WHERE wait = ?1 AND deployment = (SELECT deployment FROM waits
		WHERE project = ?2 AND id = ?1 AND code = ?3 AND state = 'complete' ORDER BY since DESC LIMIT 1)`, wait, d.Project, d.Code)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]json.RawMessage{}
	for rows.Next() {
		var id, data string
		if err := rows.Scan(&id, &data); err != nil {
			return nil, err
		}
		out[id] = json.RawMessage(data)
	}
	return out, rows.Err()
}

func at(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// newest returns the wait of that name in a project, of its newest deployment or of the given one.
func (s *Store) newest(ctx context.Context, f Filter) (WaitStatus, error) {
	f.Limit = 1
	list, err := s.List(ctx, f)
	switch {
	case err != nil:
		return WaitStatus{}, err
	case len(list) == 0:
		return WaitStatus{}, fault.New(fault.Usage, "signal", "%s has not waited for %s", f.Project, f.Wait).WithHint("corpus-git waits %s  lists what it waits for", f.Project)
	}
	return list[0], nil
}
