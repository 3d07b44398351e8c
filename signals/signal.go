package signals

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Status is the status of a signal.
type Status string

// The statuses, as in Heat.
const (
	Success Status = "SUCCESS"
	Failure Status = "FAILURE"
)

// Limits of one signal.
const (
	MaxBody   = 64 << 10
	maxData   = 16 << 10
	maxReason = 1000
)

// Given is what a sender sends. Empty fields are not set.
type Given struct {
	// Name is the name in the address, ID is chosen by the sender.
	Name   string
	ID     string
	Status Status
	Reason string
	Data   json.RawMessage
	// By is the sender, for people.
	By string
}

// Answer is the response to the sender.
type Answer struct {
	Version int `json:"version"`
	// Counted is false for a repeated signal.
	Counted  bool     `json:"counted"`
	Wait     string   `json:"wait"`
	State    State    `json:"state"`
	Received int      `json:"received"`
	Count    int      `json:"count"`
	Missing  []string `json:"missing"`
}

// Progress describes the progress of the wait: "1 of 3 signals, missing: 2, 3".
func (a Answer) Progress() string { return progress(a.Received, a.Count, a.Missing) }

// Parse parses the body of a request: nothing, or a JSON object with status, reason, data and id. The names of AWS's cfn-signal (Status,
// Reason, Data, UniqueId) are accepted, too. Errors are fault.Usage.
//
// Source: OpenStack Heat, "OS::Heat::WaitConditionHandle"; AWS CloudFormation, "Wait condition handle".
func Parse(body []byte) (g Given, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return g, nil
	}
	bad := func(format string, args ...any) error {
		return fault.New(fault.Usage, "", format, args...).WithHint(`send nothing, or  {"status": "SUCCESS", "reason": "…", "data": …, "id": "…"}`)
	}
	var keys map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &keys) != nil || keys == nil {
		return g, bad("the signal is no JSON object")
	}
	for k, v := range keys {
		var text *string
		switch k {
		case "status", "Status":
			text = (*string)(&g.Status)
		case "reason", "Reason":
			text = &g.Reason
		case "id", "UniqueId":
			text = &g.ID
		case "data", "Data":
			g.Data = v
			continue
		default:
			return g, bad("the signal has the key %.40q", k)
		}
		if json.Unmarshal(v, text) != nil {
			return g, bad("%s must be a text", k)
		}
	}
	return g, nil
}

// check fills in defaults, and refuses invalid signals.
func (g *Given) check(c *current) error {
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Usage, "signal", format, args...)
	}
	if g.Status == "" {
		g.Status = Success
	}
	g.Status = Status(strings.ToUpper(string(g.Status)))
	switch {
	case g.Status != Success && g.Status != Failure:
		return bad("status must be SUCCESS or FAILURE")
	case len(g.Data) > maxData:
		return bad("data has more than %d bytes", maxData)
	case len(g.Data) > 0 && !json.Valid(g.Data):
		return bad("data is no JSON")
	case g.ID != "" && !validName(g.ID):
		return bad("id must have letters, digits, . _ : @ and -, and at most %d bytes", maxName)
	case len(g.Reason) > maxReason:
		return bad("reason has more than %d bytes", maxReason)
	}
	g.Reason = strings.TrimSpace(event.ScrubText(g.Reason))
	if c.wait.Named {
		if g.Name == "" {
			g.Name = g.ID
		}
		if g.Name == "" {
			return bad("%s waits for named signals: say which", c.Wait).WithHint("it waits for: %s", few(c.wait.Names))
		}
		if !slices.Contains(c.wait.Names, g.Name) {
			return bad("%s does not wait for %s", c.Wait, g.Name).WithHint("it waits for: %s", few(c.wait.Names))
		}
		if g.ID != "" && g.ID != g.Name {
			return bad("this is the address of %s, not of %s", g.Name, g.ID)
		}
	}
	return nil
}

// digest identifies repeated signals. It is stored, and made with the key, because data may be secret.
func (s *Store) digest(g Given) string {
	h := hmac.New(sha256.New, s.mac)
	for _, part := range []string{g.ID, string(g.Status), g.Reason, string(g.Data)} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return string(h.Sum(nil))
}

// Signal counts a signal for a wait, of the deployment id or, for "", of the project's newest deployment with a wait of that name. A
// repeated signal is not counted again. One that arrives too late, and one that differs from an earlier one of the same sender, is
// fault.Conflict. It is durable on return.
func (s *Store) Signal(ctx context.Context, name project.Name, id project.ID, wait string, g Given) (Answer, error) {
	found, err := s.newest(ctx, Filter{Project: name, Deployment: id, Wait: wait})
	if err != nil {
		return Answer{}, err
	}
	return s.signal(ctx, found, g)
}

// signal counts a signal for a wait that was found.
func (s *Store) signal(ctx context.Context, found WaitStatus, g Given) (Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.current[key{found.Deployment, found.Wait}]
	if c == nil {
		return Answer{}, tooLate(found)
	}
	if err := g.check(c); err != nil {
		return Answer{}, err
	}
	digest := s.digest(g)
	for _, x := range c.Received {
		switch {
		case x.Name == g.Name && x.digest == digest:
			return c.answer(false), nil
		case x.Name != g.Name && g.ID != "" && x.ID == g.ID:
			return c.again(x, g)
		case x.Name == g.Name:
			return Answer{}, fault.New(fault.Conflict, "signal", "the signal %s of %s has come already, and said something else", x.Name, c.Wait)
		}
	}
	if c.State.Ended() || !c.Until.IsZero() && !s.now().Before(c.Until) {
		return Answer{}, tooLate(c.WaitStatus)
	}
	if g.Name == "" {
		if len(c.Missing) == 0 {
			return Answer{}, fault.New(fault.Conflict, "signal", "all signals of %s have come", c.Wait)
		}
		g.Name = c.Missing[0]
	}
	if g.ID == "" {
		g.ID = g.Name
	}
	// Two senders may use the same name; the second counts as a repetition.
	if i := slices.IndexFunc(c.Received, func(x Signal) bool { return x.ID == g.ID }); i >= 0 {
		return c.again(c.Received[i], g)
	}
	x := Signal{Name: g.Name, ID: g.ID, Status: g.Status, Reason: c.hide(g.Reason), By: g.By, At: s.now(), digest: digest, data: g.Data}
	if len(x.data) == 0 {
		x.data = json.RawMessage("null")
	}
	_, err := s.db.ExecContext(ctx, `INSERT INTO wait_signals(deployment, wait, name, id, status, reason, sender, data, at, digest, whole) VALUES(?,?,?,?,?,?,?,?,?,?,?)`,
		c.Deployment, c.Wait, x.Name, x.ID, x.Status, x.Reason, x.By, c.kept(x.data), x.At.UnixNano(), []byte(digest), c.kept(x.data) == string(x.data))
	if err != nil {
		return Answer{}, err
	}
	c.Received = append(c.Received, x)
	c.Missing = slices.DeleteFunc(c.Missing, func(n string) bool { return n == x.Name })
	close(c.changed)
	c.changed = make(chan struct{})
	return c.answer(true), nil
}

// again answers a signal whose ID has come by another address: a repetition, unless one of the two is a FAILURE.
func (c *current) again(x Signal, g Given) (Answer, error) {
	if x.Status != g.Status {
		return Answer{}, fault.New(fault.Conflict, "signal", "%s has signalled %s already for %s", x.ID, x.Status, c.Wait)
	}
	return c.answer(false), nil
}

// kept returns the data of a signal as stored: nothing if it contains a secret.
func (c *current) kept(data json.RawMessage) string {
	if c.hide(string(data)) != string(data) {
		return "null"
	}
	return string(data)
}

// tooLate refuses a signal for a wait that has ended.
func tooLate(w WaitStatus) error {
	what := "has ended"
	if w.State.Ended() {
		what = "is " + string(w.State)
	}
	return fault.New(fault.Conflict, "signal", "the signal comes too late: the wait %s of deployment %s %s", w.Wait, w.Deployment.Short(), what)
}

func (c *current) answer(counted bool) Answer {
	return Answer{Version: 1, Counted: counted, Wait: c.Wait, State: c.State, Received: len(c.Received), Count: c.Count, Missing: slices.Clone(c.Missing)}
}
