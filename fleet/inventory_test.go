package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/project"
)

// A node's projects are those whose newest rollout names it; its roles and state are from the newest rollout that included it.
func TestUses(t *testing.T) {
	at := func(id string, name project.Name, left []string, nodes ...fleet.NodeProgress) *fleet.Progress {
		p := &fleet.Progress{Deployment: project.Deployment{ID: project.ID(id), Project: name}, Plan: &fleet.Plan{Left: left}, Nodes: nodes}
		var stage fleet.PlanStage
		for _, n := range nodes {
			stage.Nodes = append(stage.Nodes, n.Member)
		}
		p.Plan.Stages = []fleet.PlanStage{stage}
		return p
	}
	node := func(name, role, state string) fleet.NodeProgress {
		return fleet.NodeProgress{Member: fleet.Member{Name: name, Roles: []string{role}}, State: state}
	}
	history := []*fleet.Progress{
		at("3", "app", []string{"db1"}, node("web1", "web", "failed")),
		at("2", "app", nil, node("web1", "old", fleet.NodeLive), node("db1", "db", fleet.NodeLive), node("web9", "web", fleet.NodeLive)),
		at("1", "other", nil, node("web1", "cache", fleet.NodeLive)),
	}
	store, dir := indexOf(t, history)
	for of, node := range map[project.Name]string{"wiki": "db1", "app": "web1"} {
		require.NoError(t, store.Add(t.Context(), fleet.Node{Name: node, Target: node}))
		_, err := store.Assign(t.Context(), of, node)
		require.NoError(t, err)
	}
	got, err := store.Uses(t.Context(), dir, "")
	require.NoError(t, err)
	require.Equal(t, map[string][]fleet.Use{
		"web1": {{Project: "app", Roles: []string{"web"}, State: "failed", Deployment: "3"}, {Project: "other", Roles: []string{"cache"}, State: fleet.NodeLive, Deployment: "1"}},
		"db1":  {{Project: "app", Roles: []string{"db"}, State: fleet.NodeLive, Deployment: "2"}, {Project: "wiki"}},
	}, got)
	one, err := store.Uses(t.Context(), dir, "db1")
	require.NoError(t, err)
	require.Equal(t, map[string][]fleet.Use{"db1": got["db1"]}, one)
}
