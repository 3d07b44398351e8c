package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

func (m *machines) Converge(_ context.Context, n fleet.Node, _ fleet.Order, run project.ConvergeRun) (fleet.Outcome, error) {
	m.mu.Lock()
	m.asked = append(m.asked, string(run.Mode)+" "+n.Name)
	m.busy++
	m.most = max(m.most, m.busy)
	in := m.inApply
	m.mu.Unlock()
	if in != nil {
		in(n.Name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
	out := fleet.Outcome{Result: project.Result{State: project.Done}, Changed: m.changes[n.Name]}
	for i := range out.Changed {
		out.Drift = append(out.Drift, fmt.Sprintf("thing %d", i+1))
	}
	return out, m.fails[n.Name]
}

func TestConverge(t *testing.T) {
	const stages = "stages:\n- {name: db, roles: [db]}\n- {name: web, roles: [web], rolling: 2, parallel: 1}"
	busy := fault.New(fault.Busy, "", "a deployment of app is running")
	bad := fault.New(fault.Failed, "", "no\x1b[31m disk\nat all")
	for name, c := range map[string]struct {
		mode    project.ConvergeMode
		m       *machines
		changed int
		drift   string
		kind    fault.Kind
		err     string
		most    int
	}{
		"in sync":             {mode: project.ConvergeEnforce, m: &machines{}, most: 1},
		"a report of all":     {mode: project.ConvergeReport, m: &machines{changes: map[string]int{"web1": 2, "db1": 1}}, changed: 3, drift: "db1: thing 1,web1: thing 1,web1: thing 2"},
		"applied":             {mode: project.ConvergeEnforce, m: &machines{changes: map[string]int{"web6": 1}}, changed: 1, drift: "web6: thing 1", most: 1},
		"many":                {mode: project.ConvergeReport, m: &machines{changes: map[string]int{"web2": 50}}, changed: 50},
		"one fails":           {mode: project.ConvergeEnforce, m: &machines{fails: map[string]error{"db1": bad}, changes: map[string]int{"web1": 1}}, changed: 1, drift: "web1: thing 1", kind: fault.Failed, err: `node db1: no\x1b[31m disk\nat all`},
		"one is busy":         {mode: project.ConvergeReport, m: &machines{fails: map[string]error{"web3": busy}}, kind: fault.Busy, err: "something else runs on web3"},
		"one busy, two fail":  {mode: project.ConvergeReport, m: &machines{fails: map[string]error{"web3": busy, "web4": bad, "web5": errors.New("gone")}}, kind: fault.Failed, err: `node web4 and web5: no\x1b[31m disk\nat all`},
		"more than are named": {mode: project.ConvergeReport, m: &machines{changes: map[string]int{"web1": 15, "web2": 15}}, changed: 30},
	} {
		t.Run(name, func(t *testing.T) {
			p, k := plan(t, webs, stages)
			r, _ := rollout(t, p, k, c.m)
			got, err := r.Converge(t.Context(), project.ConvergeRun{Mode: c.mode})
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
				require.Equal(t, c.kind, fault.KindOf(err))
			}
			require.Equal(t, c.changed, got.Changed)
			require.LessOrEqual(t, len(got.Drift), 20)
			if c.drift != "" {
				require.Equal(t, c.drift, strings.Join(got.Drift, ","))
			}
			if c.most > 0 {
				require.Equal(t, c.most, c.m.most)
				require.Equal(t, "db1 web1 web2 web3 web4 web5 web6", strings.ReplaceAll(strings.Join(c.m.asked, " "), "enforce ", ""))
			}
			require.Len(t, c.m.asked, 7)
			_, ok, err := fleet.ReadProgress(r.Path)
			require.NoError(t, err)
			require.False(t, ok)
		})
	}
}

// One that is ended begins no further node, and says why it was ended.
func TestConvergeIsEnded(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: all, rolling: 1}")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("cancelled")
	m := &machines{}
	m.inApply = func(name string) {
		if name == "web2" {
			cancel(why)
		}
	}
	r, told := rollout(t, p, k, m)
	_, err := r.Converge(ctx, project.ConvergeRun{Mode: project.ConvergeEnforce})
	require.ErrorIs(t, err, why)
	require.Equal(t, "enforce web2", m.asked[len(m.asked)-1])
	require.False(t, slices.ContainsFunc(*told, func(s string) bool { return strings.HasPrefix(s, "web2") }), "what it does is unknown")
}
