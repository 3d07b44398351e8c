package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"corpus-git/fleet"
	"corpus-git/internal/event"
	"corpus-git/project"
)

// machines are nodes that fail as told, and remember what was asked of them.
type machines struct {
	mu      sync.Mutex
	asked   []string
	busy    int
	most    int
	live    map[string]bool
	ran     map[project.ID]map[string]fleet.Outcome // what each deployment on a node came to: it runs once
	fails   map[string]error                        // at apply: unreachable
	breaks  map[string]bool                         // the node's own deployment fails
	changes map[string]int                          // so many runs change something
	back    map[string]error
	fetch   map[string]error
	looked  map[string]fleet.Looked
	red     map[string]int // so many times the checks fail
	inApply func(name string)
	exports string            // the value of the output device of each node, a number
	saw     map[string]string // the exports that each node was given
	// unreachable are nodes whose checks cannot be asked so many times.
	unreachable map[string]int
	// hangs is a node that accepts requests for its checks and does not respond.
	hangs string
}

func (m *machines) ask(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, what)
}

func (m *machines) Fetch(_ context.Context, n fleet.Node, _ fleet.Order) error {
	m.ask("fetch " + n.Name)
	return m.fetch[n.Name]
}

func (m *machines) Apply(_ context.Context, n fleet.Node, o fleet.Order, show func(event.Event)) (fleet.Outcome, error) {
	m.mu.Lock()
	id := o.ID(o.Run)
	if out, done := m.ran[id][n.Name]; done {
		m.mu.Unlock()
		return out, nil
	}
	m.asked = append(m.asked, "apply "+n.Name)
	m.busy++
	m.most = max(m.most, m.busy)
	m.mu.Unlock()
	if m.inApply != nil {
		m.inApply(n.Name)
	}
	time.Sleep(time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
	if err := m.fails[n.Name]; err != nil {
		return fleet.Outcome{}, err
	}
	out := fleet.Outcome{Result: project.Result{State: project.Live}}
	if m.changes[n.Name] > 0 {
		m.changes[n.Name]--
		out.Changed = 2
	}
	if m.breaks[n.Name] {
		show(event.Event{Kind: event.Failure, Text: "step failed", Lines: []string{"why"}})
		out.Result = project.Result{State: project.RolledBack, Reason: "failed in 010"}
	}
	if m.ran == nil {
		m.ran = map[project.ID]map[string]fleet.Outcome{}
	}
	if m.ran[id] == nil {
		m.ran[id] = map[string]fleet.Outcome{}
	}
	if m.exports != "" {
		out.Outputs = []project.Output{{Name: "device", Value: []byte(m.exports)}}
		if m.saw == nil {
			m.saw = map[string]string{}
		}
		m.saw[n.Name] = string(o.Exports)
	}
	m.ran[id][n.Name] = out
	m.live[n.Name] = out.State == project.Live
	return out, nil
}

func (m *machines) Back(_ context.Context, n fleet.Node, _ fleet.Order) (string, error) {
	m.ask("back " + n.Name)
	if err := m.back[n.Name]; err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[n.Name] = false
	return "is old again", nil
}

func (m *machines) Check(ctx context.Context, n fleet.Node, _ fleet.Order) (string, error) {
	if n.Name == m.hangs {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unreachable[n.Name] > 0 {
		m.unreachable[n.Name]--
		return "", errors.New("no route")
	}
	if m.red[n.Name] > 0 {
		m.red[n.Name]--
		return "check up failed", nil
	}
	return "", nil
}

func (m *machines) Undeploy(_ context.Context, n fleet.Node, _ fleet.Order) error {
	m.ask("undeploy " + n.Name)
	return m.back[n.Name]
}

func (m *machines) Look(ctx context.Context, n fleet.Node, o fleet.Order, brings fleet.Brings) (fleet.Looked, error) {
	m.ask("look " + n.Name)
	if _, err := brings(ctx, o.Deployment.LiveCode); err != nil {
		return fleet.Looked{}, err
	}
	return m.looked[n.Name], m.fetch[n.Name]
}

func (m *machines) Close() error { return nil }

// hub remembers what ran on the machine that orders.
type hub struct {
	m     *machines
	fails map[string]error
	lacks int
	in    func(task string)
}

func (h *hub) Ask(_ context.Context, w fleet.Wait, _ time.Duration) (string, error) {
	h.m.ask("wait " + w.String())
	if h.lacks > 0 {
		h.lacks--
		return "connection refused\nwhat it said", nil
	}
	return "", nil
}

func (h *hub) Step(_ context.Context, task string, b fleet.Batch) error {
	if h.in != nil {
		h.in(task)
	}
	h.m.ask(task + " " + strings.Join(names(b.Nodes), ","))
	return h.fails[task]
}
