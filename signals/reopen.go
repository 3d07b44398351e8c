package signals

import (
	"context"
	"encoding/json"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// spec is what is stored of a declaration, besides its names.
type spec struct {
	Named    bool          `json:"named,omitempty"`
	Timeout  time.Duration `json:"timeout_ns"`
	Continue bool          `json:"continue,omitempty"`
}

// maxReopened limits how many waits of one deployment are read.
const maxReopened = 10_000

// Reopen makes the signals of a deployment's waits acceptable again that an earlier process left open; what was counted stays counted. What is
// recorded from now on is passed through hide. If the data of a signal was not stored, because it contained a secret, the error is
// fault.Refused, and the waits accept no more signals.
func (s *Store) Reopen(ctx context.Context, id project.ID, hide func(string) string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := s.List(ctx, Filter{Deployment: id, Limit: maxReopened})
	if err != nil {
		return err
	}
	var found []*current
	for _, w := range list {
		c := &current{WaitStatus: w, hide: hide, changed: make(chan struct{})}
		if err := s.reread(ctx, c); err != nil {
			return err
		}
		if c.State.Ended() {
			close(c.changed)
		}
		found = append(found, c)
	}
	for _, c := range found {
		s.current[key{c.Deployment, c.Wait}] = c
	}
	return nil
}

// reread reads what List does not return of a wait: its declaration, and the data of its signals.
func (s *Store) reread(ctx context.Context, c *current) error {
	var names, text string
	if err := s.db.QueryRowContext(ctx, `SELECT names, spec FROM waits WHERE deployment = ? AND id = ?`, c.Deployment, c.Wait).Scan(&names, &text); err != nil {
		return err
	}
	if text == "" {
		return fault.New(fault.Refused, "", "the wait %s was begun by an earlier version", c.Wait)
	}
	var kept spec
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return err
	}
	c.wait = Wait{ID: c.Wait, Step: c.Step, Named: kept.Named, Timeout: kept.Timeout, Continue: kept.Continue}
	if err := json.Unmarshal([]byte(names), &c.wait.Names); err != nil {
		return err
	}
	for i := range c.Received {
		x := &c.Received[i]
		var data string
		var digest []byte
		var whole bool
		err := s.db.QueryRowContext(ctx, `SELECT data, digest, whole FROM wait_signals WHERE deployment = ? AND wait = ? AND name = ?`, c.Deployment, c.Wait, x.Name).Scan(&data, &digest, &whole)
		if err != nil {
			return err
		}
		if !whole {
			return fault.New(fault.Refused, "", "the data of the signal %s of %s contained a secret, and is not stored", x.ID, c.Wait)
		}
		x.data, x.digest = json.RawMessage(data), string(digest)
	}
	return nil
}
