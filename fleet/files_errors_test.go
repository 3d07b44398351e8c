package fleet_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
)

// A key that nodes.yaml has not is named with its line, in words for people.
func TestUnknownKeysOfNodes(t *testing.T) {
	_, _, err := fleet.ReadNodes(fstest.MapFS{fleet.NodesFile: {Data: []byte("db1: {roles: [db]}\nnodes: {}\nweb1: {}\n")}})
	require.ErrorContains(t, err, "line 1: unknown key db1; line 3: unknown key web1")
	require.NotContains(t, err.Error(), "fleet.")
}

// A mistake of meaning is named with the line where it is.
func TestMistakesNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"nodes:\n  web[1-2]: {}\n  web2: {}\n":          "nodes.yaml:3: the node web2 is named twice: in line 2, too",
		"nodes:\n  a:\n    roles: [x, d b]\n":           `nodes.yaml:3: "d b" is not a valid role name`,
		"\nnodes:\n  A: {}\n":                           `nodes.yaml:3: "A" is not a valid node name`,
		"nodes:\n  web[2-1]: {}\n":                      `nodes.yaml:2: "web[2-1]" is not a range of nodes`,
		"nodes: {}\n":                                   "nodes.yaml:1: it names no node",
		"nodes: [db1]\n":                                "nodes.yaml: line 1: a list, where a mapping is expected",
		"nodes:\n  db1: {roles: db}\n":                  "nodes.yaml: line 2: `db` is a text, where a list is expected",
		"nodes:\n  a: {roles: [x]}\n  a: {roles: []}\n": `nodes.yaml: line 3: mapping key "a" already defined at line 2`,
	} {
		_, _, err := fleet.ReadNodes(fstest.MapFS{fleet.NodesFile: {Data: []byte(text)}})
		require.EqualError(t, err, want, text)
	}
	for text, want := range map[string]string{
		"on_failure: none\n":                                                         `:1: on_failure is "none": it can be all, stage or halt`,
		"leader: {roles: []}":                                                        ":1: leader names no steps",
		"stages:\n- {name: a}\n- {name: a}\n":                                        `:3: each stage needs a name of its own: "a"`,
		"stages:\n- roles: [a]\n":                                                    `:2: each stage needs a name of its own: ""`,
		"stages:\n- name: a\n  rolling: 0\n":                                         `:3: stage a: rolling is "0": a number of nodes from 1, or a percentage`,
		"stages:\n- name: a\n  parallel: 200%\n":                                     `:3: stage a: parallel is "200%": a number of nodes from 1, or a percentage`,
		"stages:\n- name: a\n  canary: -1\n":                                         ":3: stage a: canary is -1: a number of nodes",
		"stages:\n- name: a\n  max_failures: -2\n":                                   ":3: stage a: max_failures is -2: a number of nodes",
		"stages:\n- name: a\n  roles:\n  - a\n  - ''\n":                              `:5: stage a: "" is not a valid role name`,
		"stages:\n- name: a\n  wait_for:\n  - {tcp: 'a:1'}\n  - {tcp: a}\n":          `:5: stage a: tcp is "a": HOST:PORT`,
		"stages:\n- name: a\n  before: [x]\n  after:\n  - ../y\n":                    `:5: stage a: after: "../y" is not a valid task name`,
		"stages:\n- {name: a}\n- name: b\n  settle: 101\n":                           ":4: stage b: settle is 101: how often a node is deployed at most, from 1 to 100",
		"stages:\n- name: a\n  roles: db\n":                                          ": line 3: `db` is a text, where a list is expected",
		"stages:\n- {name: a}\n- &b\n  name: b\n  wait_for: [{is: x, tcp: 'a:1'}]\n": ":5: stage b: is belongs to key",
	} {
		_, err := fleet.ReadStages(fstest.MapFS{fleet.StagesFile: {Data: []byte(text)}})
		require.EqualError(t, err, ".salt/stages.yaml"+want, text)
	}
	_, err := fleet.ReadJob("stages:\n- name: a\n  rolling: x\n")
	require.ErrorContains(t, err, "job:3: stage a: rolling")
}

// A plan that cannot be made names the line of the node; one with a stage that has no node says why.
func TestPlansNameTheLine(t *testing.T) {
	members, _, err := fleet.ReadNodes(fstest.MapFS{fleet.NodesFile: {Data: []byte("nodes:\n  db1: {roles: [db]}\n  web1: {roles: [web]}\n  x: {}\n")}})
	require.NoError(t, err)
	known := map[string]fleet.Node{"db1": {Name: "db1"}, "web1": {Name: "web1"}}
	stages := func(text string) fleet.Stages {
		s, err := fleet.ReadStages(fstest.MapFS{fleet.StagesFile: {Data: []byte(text)}})
		require.NoError(t, err)
		return s
	}
	_, err = fleet.NewPlan(members, stages(""), known, nil)
	require.EqualError(t, err, "nodes.yaml:4: this server knows no node x")
	known["x"] = fleet.Node{Name: "x"}
	_, err = fleet.NewPlan(members, stages("stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web]}\n"), known, nil)
	require.EqualError(t, err, ".salt/stages.yaml: no stage takes the node x (nodes.yaml:4), which has no roles")
	p, err := fleet.NewPlan(members, stages("stages:\n- {name: a, roles: [dbx, lb]}\n- {name: d, roles: [db]}\n- {name: e, roles: [db]}\n- {name: w}\n"), known, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a (no node has the role dbx or lb)", "e (its nodes are in earlier stages, drained, or not requested)"}, p.Empty)
}
