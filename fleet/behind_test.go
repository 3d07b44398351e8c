package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/project"
)

// Which nodes have another release than the live one follows from the rollouts: what each node came to in the newest that left it with one.
func TestBehindLive(t *testing.T) {
	web := []fleet.Member{{Name: "web1"}, {Name: "web2"}, {Name: "web10"}}
	rollout := func(code project.Commit, state string, nodes ...fleet.NodeProgress) *fleet.Progress {
		for i := range nodes {
			nodes[i].Member = web[i]
		}
		return &fleet.Progress{
			Deployment: project.Deployment{Project: "app", Code: code, Pillar: "p"}, State: state, Nodes: nodes, Plan: &fleet.Plan{Stages: []fleet.PlanStage{{Nodes: web}}},
		}
	}
	live, back, failed := fleet.NodeProgress{State: fleet.NodeLive}, fleet.NodeProgress{State: fleet.NodeBack}, fleet.NodeProgress{State: fleet.NodeFailed}
	missing, touched := fleet.NodeProgress{State: fleet.Missing}, fleet.NodeProgress{State: fleet.NodeFailed, Touched: true}
	one := rollout("one", fleet.Live, live, live, live)
	otherPillar := rollout("one", fleet.Live, live, missing, live)
	otherPillar.Deployment.Pillar = "q"
	drained := rollout("two", fleet.Live, live, live)
	drained.Plan = &fleet.Plan{Stages: []fleet.PlanStage{{Nodes: web[:2]}}, Skipped: []string{"web10"}}
	for name, c := range map[string]struct {
		history []*fleet.Progress
		want    []fleet.Behind
	}{
		"none":                              {},
		"all have it":                       {history: []*fleet.Progress{one}},
		"one was left out":                  {history: []*fleet.Progress{rollout("two", fleet.Live, live, missing, live), one}, want: []fleet.Behind{{"web2", "one"}}},
		"one is drained":                    {history: []*fleet.Progress{drained, one}, want: []fleet.Behind{{"web10", "one"}}},
		"it has nothing":                    {history: []*fleet.Progress{rollout("one", fleet.Live, live, missing, live)}, want: []fleet.Behind{{"web2", ""}}},
		"all were rolled back":              {history: []*fleet.Progress{rollout("two", fleet.RolledBack, back, failed, back), one}},
		"one was not rolled back":           {history: []*fleet.Progress{rollout("two", fleet.Incomplete, live, failed, back), one}, want: []fleet.Behind{{"web1", "two"}}},
		"what one has is unknown":           {history: []*fleet.Progress{rollout("two", fleet.Incomplete, back, touched, back), one}, want: []fleet.Behind{{"web2", ""}}},
		"rolled back to another release":    {history: []*fleet.Progress{rollout("three", fleet.RolledBack, back, back, failed), rollout("two", fleet.Live, live, missing, live), one}, want: []fleet.Behind{{"web2", "one"}}},
		"kept by on_failure":                {history: []*fleet.Progress{rollout("two", fleet.Halted, live, failed, back), one}, want: []fleet.Behind{{"web1", "two"}}},
		"another pillar":                    {history: []*fleet.Progress{otherPillar, one}, want: []fleet.Behind{{"web2", "one"}}},
		"nothing is live, and one has some": {history: []*fleet.Progress{rollout("one", fleet.Incomplete, live, failed, back)}, want: []fleet.Behind{{"web1", "one"}}},
		"one is running":                    {history: []*fleet.Progress{rollout("two", fleet.Running, live, missing, back), one}},
	} {
		store, dir := indexOf(t, c.history)
		got, err := store.Behind(t.Context(), dir, "")
		require.NoError(t, err)
		require.Equal(t, c.want, got["app"], name)
	}
}
