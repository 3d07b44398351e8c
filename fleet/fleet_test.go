package fleet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/db"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

func pillar(text string) fstest.MapFS {
	return fstest.MapFS{fleet.NodesFile: &fstest.MapFile{Data: []byte(text)}}
}

func code(text string) fstest.MapFS {
	return fstest.MapFS{fleet.StagesFile: &fstest.MapFile{Data: []byte(text)}}
}

func names(list []fleet.Member) (out []string) {
	for _, m := range list {
		out = append(out, m.Name)
	}
	return out
}

func TestReadNodes(t *testing.T) {
	list, ok, err := fleet.ReadNodes(pillar("nodes:\n  web[9-11]: {roles: [web]}\n  db1: {roles: [db, primary]}\n  c[01-02].x:\n"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []string{"c01.x", "c02.x", "db1", "web9", "web10", "web11"}, names(list))
	require.Equal(t, []string{"db", "primary"}, list[2].Roles)
	_, ok, err = fleet.ReadNodes(fstest.MapFS{})
	require.NoError(t, err)
	require.False(t, ok)
	for text, want := range map[string]string{
		"nodes: {}":                                 "names no node",
		"nodes:\n  Web1: {}":                        `"Web1" is no name of a node`,
		"nodes:\n  web[3-1]: {}":                    "no range",
		"nodes:\n  web[1-99999999999999999999]: {}": "no range",
		"nodes:\n  web[1-2]: {}\n  web2: {}":        "web2 is named twice",
		"nodes:\n  web1: {role: [web]}":             "line 2: field role not found",
		"nodes:\n  web1: {roles: [\"a, b]\"]}":      "no name of a role",
		"nodes: [":                                  "line 1",
	} {
		_, _, err := fleet.ReadNodes(pillar(text))
		require.ErrorContains(t, err, want, text)
		require.Equal(t, fault.Usage, fault.KindOf(err), text)
	}
}

func TestReadStages(t *testing.T) {
	s, err := fleet.ReadStages(nil)
	require.NoError(t, err)
	require.Len(t, s.Stages, 1)
	require.Equal(t, fleet.Rollback, s.OnFailure)
	for text, want := range map[string]string{
		"on_failure: perhaps":                           "on_failure",
		"stages:\n- {roles: [a]}":                       "needs a name",
		"stages:\n- {name: a}\n- {name: a}":             "needs a name",
		"stages:\n- {name: a, parallel: 0}":             "parallel",
		"stages:\n- {name: a, parallel: 101%}":          "parallel",
		"stages:\n- {name: a, canary: -1}":              "canary",
		"stages:\n- {name: a, canery: 1}":               "line 2: field canery not found",
		"stages:\n- {name: a, parallel: fast and more}": "parallel",
	} {
		_, err := fleet.ReadStages(code(text))
		require.ErrorContains(t, err, want, text)
	}
}

func members(t *testing.T, text string) []fleet.Member {
	list, ok, err := fleet.ReadNodes(pillar(text))
	require.NoError(t, err)
	require.True(t, ok)
	return list
}

func known(list []fleet.Member) map[string]fleet.Node {
	out := map[string]fleet.Node{}
	for _, m := range list {
		out[m.Name] = fleet.Node{Name: m.Name, Target: "root@" + m.Name}
	}
	return out
}

func plan(t *testing.T, nodes, stages string) (*fleet.Plan, map[string]fleet.Node) {
	list := members(t, nodes)
	s, err := fleet.ReadStages(code(stages))
	require.NoError(t, err)
	k := known(list)
	p, err := fleet.NewPlan(list, s, k)
	require.NoError(t, err)
	return p, k
}

func TestPlan(t *testing.T) {
	p, k := plan(t, "nodes:\n  db1: {roles: [db, web]}\n  web[1-10]: {roles: [web]}\n  x: {}",
		"stages:\n- {name: d, roles: [db]}\n- {name: none, roles: [nobody]}\n- {name: w, roles: [web], canary: 1, parallel: 25%}\n- {name: rest}")
	require.Len(t, p.Stages, 3, "a stage without nodes is none")
	require.Equal(t, []string{"db1"}, names(p.Stages[0].Nodes), "in one stage only")
	var sizes []int
	for _, b := range p.Stages[1].Batches() {
		sizes = append(sizes, len(b))
	}
	require.Equal(t, []int{1, 2, 2, 2, 2, 1}, sizes)
	require.Equal(t, []string{"x"}, names(p.Stages[2].Nodes))

	n := k["db1"]
	n.Drained = true
	k["db1"] = n
	list := members(t, "nodes:\n  db1: {}\n  x: {}")
	p, err := fleet.NewPlan(list, fleet.Stages{Stages: []fleet.Stage{{Name: "a"}}}, k)
	require.NoError(t, err)
	require.Equal(t, []string{"db1"}, p.Skipped)
	_, err = fleet.NewPlan(list[:1], fleet.Stages{Stages: []fleet.Stage{{Name: "a"}}}, k)
	require.ErrorContains(t, err, "every node is drained")
	_, err = fleet.NewPlan(list, fleet.Stages{Stages: []fleet.Stage{{Name: "a", Roles: []string{"db"}}}}, k)
	require.ErrorContains(t, err, "no stage takes the node x")
	_, err = fleet.NewPlan(list, fleet.Stages{}, nil)
	require.ErrorContains(t, err, "knows no node db1, x")
}

// machines are nodes that fail as told, and remember what was asked of them.
type machines struct {
	mu     sync.Mutex
	asked  []string
	busy   int
	most   int
	live   map[string]bool
	fails  map[string]error // at apply: unreachable
	breaks map[string]bool  // the node's own deployment fails
	back   map[string]error
	fetch  map[string]error
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

func (m *machines) Apply(_ context.Context, n fleet.Node, _ fleet.Order, show func(event.Event)) (project.Result, error) {
	m.mu.Lock()
	m.asked = append(m.asked, "apply "+n.Name)
	m.busy++
	m.most = max(m.most, m.busy)
	m.mu.Unlock()
	time.Sleep(time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
	if err := m.fails[n.Name]; err != nil {
		return project.Result{}, err
	}
	if m.breaks[n.Name] {
		show(event.Event{Kind: event.Failure, Text: "step failed", Lines: []string{"why"}})
		return project.Result{State: project.RolledBack, Reason: "failed in 010"}, nil
	}
	m.live[n.Name] = true
	return project.Result{State: project.Live}, nil
}

func (m *machines) Back(_ context.Context, n fleet.Node, _ fleet.Order) (string, error) {
	m.ask("back " + n.Name)
	if err := m.back[n.Name]; err != nil {
		return "", err
	}
	m.live[n.Name] = false
	return "is old again", nil
}

func (m *machines) Close() error { return nil }

func rollout(t *testing.T, p *fleet.Plan, k map[string]fleet.Node, m *machines) (*fleet.Rollout, *[]string) {
	if m.live == nil {
		m.live = map[string]bool{}
	}
	var told []string
	var mu sync.Mutex
	return &fleet.Rollout{
		Plan: p, Known: k, Nodes: m, Order: fleet.Order{Deployment: project.Deployment{ID: "x"}}, Path: filepath.Join(t.TempDir(), "r", "x.json"), FS: vfs.OS{}, Now: time.Now,
		Tell: func(e event.Event) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, strings.Join(append([]string{e.Step, e.Text}, e.Lines...), " "))
		},
	}, &told
}

const webs = "nodes:\n  db1: {roles: [db]}\n  web[1-6]: {roles: [web]}"

func TestRolloutGoesStageByStage(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], parallel: 2}")
	m := &machines{}
	r, _ := rollout(t, p, k, m)
	require.NoError(t, r.Fetch(t.Context()))
	require.NoError(t, r.Run(t.Context()))
	require.Len(t, m.live, 7)
	require.LessOrEqual(t, m.most, 2)
	i := slices.Index(m.asked, "apply db1")
	for j, a := range m.asked {
		switch {
		case strings.HasPrefix(a, "fetch"):
			require.Less(t, j, i, "every node is ready before the first is begun")
		case a != "apply db1":
			require.Greater(t, j, i, "the database before the others")
		}
	}
	require.NoError(t, fleet.Forget(r.FS, r.Path))
	require.NoError(t, fleet.Forget(r.FS, r.Path))
	left, err := r.Undo(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)
	require.NotContains(t, strings.Join(m.asked, " "), "back", "what stands is not undone")
}

func TestRolloutNeedsEveryNode(t *testing.T) {
	p, k := plan(t, webs, "")
	m := &machines{fetch: map[string]error{"web3": errors.New("no route"), "web5": errors.New("disk full")}}
	r, told := rollout(t, p, k, m)
	err := r.Fetch(t.Context())
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "2 of 7 nodes are not ready")
	require.Contains(t, (*told)[0], "web3: no route web5: disk full")
	_, err = os.Stat(r.Path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestWhatFailsComesBackEverywhere(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], parallel: 2}")
	m := &machines{breaks: map[string]bool{"web3": true}}
	r, told := rollout(t, p, k, m)
	err := r.Run(t.Context())
	var f *fleet.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, []string{"web3"}, f.Nodes)
	require.Equal(t, "failed in 010", f.Reason)
	require.NotContains(t, m.asked, "apply web5", "nothing new is begun")
	require.Contains(t, strings.Join(*told, "\n"), "step failed why")

	// Another process takes it up: its notes are on the disk.
	m.back = map[string]error{"web1": errors.New("no route")}
	again, _ := rollout(t, nil, k, m)
	again.Path = r.Path
	m.asked = nil
	left, err := again.Undo(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"web1"}, left)
	require.Equal(t, "back db1", m.asked[len(m.asked)-1], "the first comes last")
	require.NotContains(t, m.asked, "back web3", "it has rolled itself back")

	// A second time only what is left.
	m.back, m.asked = nil, nil
	left, err = again.Undo(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, []string{"back web1"}, m.asked)
	for name, live := range m.live {
		require.False(t, live, name)
	}
	_, err = os.Stat(r.Path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Nobody knows what a node does that was lost: it is rolled back as if it had been reached.
func TestALostNodeIsRolledBack(t *testing.T) {
	p, k := plan(t, webs, "")
	m := &machines{fails: map[string]error{"web2": errors.New("connection lost")}}
	r, _ := rollout(t, p, k, m)
	require.Error(t, r.Run(t.Context()))
	m.asked = nil
	left, err := r.Undo(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)
	require.Contains(t, m.asked, "back web2")
}

func TestCanaryAndMaxFailures(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: all, canary: 2, max_failures: 3}")
	m := &machines{breaks: map[string]bool{"web1": true}}
	r, _ := rollout(t, p, k, m)
	require.Error(t, r.Run(t.Context()), "a canary must not fail")
	require.Len(t, m.asked, 2)

	later, k2 := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, canary: 1, max_failures: 3}")
	m = &machines{breaks: map[string]bool{"web1": true}}
	r, _ = rollout(t, later, k2, m)
	require.Error(t, r.Run(t.Context()), "nor one of a later stage")
	require.Len(t, m.asked, 2)

	m = &machines{breaks: map[string]bool{"web4": true, "web5": true}}
	r, told := rollout(t, p, k, m)
	require.NoError(t, r.Run(t.Context()))
	require.Contains(t, strings.Join(*told, "\n"), "web4, web5 failed, as many as max_failures allows")
	m = &machines{breaks: map[string]bool{"web2": true, "web3": true, "web4": true, "web5": true}}
	r, _ = rollout(t, p, k, m)
	require.Error(t, r.Run(t.Context()))
}

func TestStore(t *testing.T) {
	ctx := t.Context()
	d, err := db.Open(ctx, filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	defer d.Close()
	s, err := fleet.Open(ctx, d)
	require.NoError(t, err)
	n := fleet.Node{Name: "web1", Target: "root@web1", Options: []string{"-p", "22"}, Root: "/srv", Added: time.Unix(1, 0).UTC(), AddedBy: "marie"}
	require.NoError(t, s.Add(ctx, n))
	require.Equal(t, fault.Refused, fault.KindOf(s.Add(ctx, n)))
	require.Equal(t, fault.Usage, fault.KindOf(s.Add(ctx, fleet.Node{Name: "Web", Target: "x"})))
	require.Equal(t, fault.Usage, fault.KindOf(s.Add(ctx, fleet.Node{Name: "web2", Target: "-oProxyCommand=x"})))
	got, err := s.Get(ctx, "web1")
	require.NoError(t, err)
	require.Equal(t, n, got)
	changed, err := s.Drain(ctx, "web1", true)
	require.NoError(t, err)
	require.True(t, changed)
	changed, err = s.Drain(ctx, "web1", true)
	require.NoError(t, err)
	require.False(t, changed)
	_, err = s.Get(ctx, "web")
	require.Contains(t, fault.HintOf(err), "web1")
	require.NoError(t, s.Remove(ctx, "web1"))
	require.Equal(t, fault.Refused, fault.KindOf(s.Remove(ctx, "web1")))
}

// FuzzFiles reads anything that a project may push.
func FuzzFiles(f *testing.F) {
	f.Add("nodes:\n  web[1-3]: {roles: [web]}\n", "stages:\n- {name: w, roles: [web], canary: 1, parallel: 25%}\n")
	f.Add("nodes: {a: &a {roles: [x]}, b: *a}", "on_failure: stop")
	f.Fuzz(func(t *testing.T, nodes, stages string) {
		list, ok, err := fleet.ReadNodes(pillar(nodes))
		if err != nil || !ok {
			return
		}
		s, err := fleet.ReadStages(code(stages))
		if err != nil {
			return
		}
		p, err := fleet.NewPlan(list, s, known(list))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, st := range p.Stages {
			for _, b := range st.Batches() {
				for _, m := range b {
					if seen[m.Name] {
						t.Fatalf("%s twice", m.Name)
					}
					seen[m.Name] = true
				}
			}
		}
		if len(seen) != len(list) {
			t.Fatalf("%d of %d nodes are in a batch", len(seen), len(list))
		}
	})
}
