package fleet_test

import (
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
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
		"nodes:\n  Web1: {}":                        `"Web1" is not a valid node name`,
		"nodes:\n  web[3-1]: {}":                    "not a range",
		"nodes:\n  web[1-99999999999999999999]: {}": "not a range",
		"nodes:\n  web[1-2]: {}\n  web2: {}":        "web2 is named twice",
		"nodes:\n  web1: {role: [web]}":             "line 2: unknown key role",
		"nodes:\n  web1: {roles: [\"a, b]\"]}":      "not a valid role name",
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
	require.Equal(t, fleet.All, s.OnFailure)
	for text, want := range map[string]string{
		"on_failure: perhaps":                                                  "on_failure",
		"stages:\n- {roles: [a]}":                                              "needs a name",
		"stages:\n- {name: a}\n- {name: a}":                                    "needs a name",
		"stages:\n- {name: a, parallel: 0}":                                    "parallel",
		"stages:\n- {name: a, parallel: 101%}":                                 "parallel",
		"stages:\n- {name: a, canary: -1}":                                     "canary",
		"stages:\n- {name: a, canery: 1}":                                      "line 2: unknown key canery",
		"stages:\n- {name: a, parallel: fast and more}":                        "parallel",
		"stages:\n- {name: a, rolling: 0%}":                                    "rolling",
		"stages:\n- {name: a, settle: 101}":                                    "settle",
		"stages:\n- {name: a, before: [../x]}":                                 "not a valid task name",
		"stages:\n- {name: a, wait_for: [{tcp: \"x:1\", http: \"http://x\"}]}": "one of tcp",
		"stages:\n- {name: a, wait_for: [{for: 5s}]}":                          "one of tcp",
		"stages:\n- {name: a, wait_for: [{tcp: localhost}]}":                   "HOST:PORT",
		"stages:\n- {name: a, wait_for: [{http: localhost}]}":                  "http://",
		"stages:\n- {name: a, wait_for: [{tcp: \"db1:\"}]}":                    "HOST:PORT",
		"stages:\n- {name: a, wait_for: [{key: colour}]}":                      "keys begin with",
		"stages:\n- {name: a, wait_for: [{checks: red}]}":                      "it can be green",
		"stages:\n- {name: a, wait_for: [{command: x, for: ever}]}":            "a duration",
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
	p, err := fleet.NewPlan(list, s, k, nil)
	require.NoError(t, err)
	return p, k
}

func TestPlan(t *testing.T) {
	p, k := plan(t, "nodes:\n  db1: {roles: [db, web]}\n  web[1-10]: {roles: [web]}\n  x: {}",
		"stages:\n- {name: d, roles: [db]}\n- {name: none, roles: [nobody]}\n- {name: w, roles: [web], canary: 1, rolling: 25%}\n- {name: rest}")
	require.Len(t, p.Stages, 3, "a stage without nodes is none")
	require.Equal(t, []string{"db1"}, names(p.Stages[0].Nodes), "in one stage only")
	var sizes []int
	for _, b := range fleet.Batches(p.Stages[1], p.Stages[1].Nodes) {
		sizes = append(sizes, len(b))
	}
	require.Equal(t, []int{1, 2, 2, 2, 2, 1}, sizes)
	require.Equal(t, []string{"x"}, names(p.Stages[2].Nodes))

	n := k["db1"]
	n.Drained = true
	k["db1"] = n
	list := members(t, "nodes:\n  db1: {}\n  x: {}")
	p, err := fleet.NewPlan(list, fleet.Stages{Stages: []fleet.Stage{{Name: "a"}}}, k, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"db1"}, p.Skipped)
	_, err = fleet.NewPlan(list[:1], fleet.Stages{Stages: []fleet.Stage{{Name: "a"}}}, k, nil)
	require.ErrorContains(t, err, "every node is drained")
	_, err = fleet.NewPlan(list, fleet.Stages{Stages: []fleet.Stage{{Name: "a", Roles: []string{"db"}}}}, k, nil)
	require.ErrorContains(t, err, "no stage takes the node x")
	_, err = fleet.NewPlan(list, fleet.Stages{}, nil, nil)
	require.ErrorContains(t, err, "knows no node db1, x")
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
	known, err := s.KnownOf(ctx, []string{"web1", "web'2"})
	require.NoError(t, err)
	require.Equal(t, map[string]fleet.Node{"web1": n}, known)
	changed, err := s.Drain(ctx, "web1", true)
	require.NoError(t, err)
	require.True(t, changed)
	changed, err = s.Drain(ctx, "web1", true)
	require.NoError(t, err)
	require.False(t, changed)
	_, err = s.Get(ctx, "web")
	require.Contains(t, fault.HintOf(err), "web1")
	// The attack: a node says of its host keys what others append to their known_hosts (node known-hosts).
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGkEBUEPjKKKZ8CcmQpBHTeZUzZFdsPnbHFNGPrcLDuX"
	require.NoError(t, s.RecordReport(ctx, "web1", fleet.NodeReport{HostKeys: []string{key + " root@web1", "*,hub " + key + "\n" + key, "cert-authority " + key, "x", ""}}))
	got, err = s.Get(ctx, "web1")
	require.NoError(t, err)
	require.Equal(t, []string{key, key}, got.HostKeys, "the keys, and nothing beside them")
	require.NoError(t, s.Remove(ctx, "web1"))
	require.Equal(t, fault.Refused, fault.KindOf(s.Remove(ctx, "web1")))
}

// FuzzFiles reads anything that a project may push.
func FuzzFiles(f *testing.F) {
	f.Add("nodes:\n  web[1-3]: {roles: [web]}\n", "stages:\n- {name: w, roles: [web], canary: 1, parallel: 25%}\n")
	f.Add("nodes: {a: &a {roles: [x]}, b: *a}", "on_failure: stage")
	f.Fuzz(func(t *testing.T, nodes, stages string) {
		list, ok, err := fleet.ReadNodes(pillar(nodes))
		if err != nil || !ok {
			return
		}
		s, err := fleet.ReadStages(code(stages))
		if err != nil {
			return
		}
		p, err := fleet.NewPlan(list, s, known(list), nil)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, st := range p.Stages {
			for _, b := range fleet.Batches(st, st.Nodes) {
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
