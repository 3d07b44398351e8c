package signals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/quantity"
	"corpus-git/project"
)

// Outcome is the result of a wait that did not fail.
type Outcome struct {
	// Line is a line for the log; Failed reports that the wait did not complete, and that this is not an error.
	Line   string
	Failed bool
	// Data are the data of the signals, by their IDs; nil is none.
	Data map[string]json.RawMessage
}

// ErrSuspended is the cause with which a context interrupts Wait and leaves the wait open: another process waits on (see Reopen).
var ErrSuspended = errors.New("the server stops while a deployment waits for signals")

// Wait waits for the signals of one wait of a deployment, after a step, until all were received, one says FAILURE, the timeout ends or ctx
// does. note is called with the progress: at the beginning, and after each signal. The error is fault.Failed, or the cause of ctx; the wait has
// ended then, unless that is ErrSuspended. The timeout of a wait that an earlier process began goes on.
func (s *Store) Wait(ctx context.Context, id project.ID, wait string, step string, note func(WaitStatus)) (Outcome, error) {
	c, limit, err := s.begin(ctx, key{id, wait}, step)
	if err != nil {
		return Outcome{}, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	late := false
	for told := -1; ; {
		now, changed, out, err := s.poll(ctx, c, late)
		if out != nil || err != nil {
			if out != nil && told >= 0 && told < len(now.Received) {
				note(now)
			}
			if err != nil {
				return Outcome{}, err
			}
			return *out, nil
		}
		if told < len(now.Received) {
			told = len(now.Received)
			note(now)
		}
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(cause, ErrSuspended) {
				return Outcome{}, cause
			}
			s.mu.Lock()
			err := s.end(ctx, c, Cancelled, "the deployment was ended")
			s.mu.Unlock()
			if err != nil {
				return Outcome{}, err
			}
			return Outcome{}, cause
		case <-timer.C:
			late = true
		case <-changed:
		}
	}
}

// begin records that the deployment waits.
func (s *Store) begin(ctx context.Context, k key, step string) (*current, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.current[k]
	if c == nil {
		return nil, 0, fault.New(fault.Refused, "wait", "deployment %s does not wait for %s", k.deployment.Short(), k.wait)
	}
	if c.State == Waiting {
		// The time of an earlier process is the wall clock's, which may have been set since: the rest is at most the timeout, and runs by the monotonic clock from now on.
		rest := min(max(0, c.Until.Sub(s.now())), c.wait.Timeout)
		c.Until = s.now().Add(rest)
		return c, rest, nil
	}
	if c.State != Open {
		return c, c.wait.Timeout, nil // what it ended with is told again
	}
	c.State, c.Step, c.Until = Waiting, step, s.now().Add(c.wait.Timeout)
	_, err := s.db.ExecContext(ctx, `UPDATE waits SET state = 'waiting', step = ?, until = ? WHERE deployment = ? AND id = ?`, c.Step, c.Until.UnixNano(), c.Deployment, c.Wait)
	return c, c.wait.Timeout, err
}

// poll returns the state of the wait, and ends it if it is time: out or err say how.
func (s *Store) poll(ctx context.Context, c *current, late bool) (now WaitStatus, changed <-chan struct{}, out *Outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch failed := slices.IndexFunc(c.Received, func(x Signal) bool { return x.Status == Failure }); {
	case c.State.Ended():
	case failed >= 0:
		why := c.Received[failed].Reason
		if why == "" {
			why = "without a reason"
		}
		err = s.end(ctx, c, Failed, fmt.Sprintf("%s signalled FAILURE: %s", c.Received[failed].ID, why))
	case len(c.Missing) == 0:
		err = s.end(ctx, c, Complete, "")
	case late:
		err = s.end(ctx, c, Failed, fmt.Sprintf("not signalled within %s: %s", quantity.FormatDuration(c.wait.Timeout), c.Progress()))
	}
	now = c.WaitStatus
	now.Received, now.Missing = slices.Clone(c.Received), slices.Clone(c.Missing)
	if err != nil || !c.State.Ended() {
		return now, c.changed, nil, err
	}
	if c.State == Complete {
		return now, nil, &Outcome{Line: fmt.Sprintf("%s: all signals have come", c.Wait), Data: c.data()}, nil
	}
	if c.State == Failed && c.wait.Continue {
		return now, nil, &Outcome{Line: fmt.Sprintf("%s: %s; it goes on (on_failure: continue)", c.Wait, c.Reason), Failed: true, Data: c.data()}, nil
	}
	return now, nil, nil, fault.New(fault.Failed, "", "waiting for %s: %s", c.Wait, c.Reason)
}

// data returns what came with the signals.
func (c *current) data() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, x := range c.Received {
		out[x.ID] = x.data
	}
	return out
}
