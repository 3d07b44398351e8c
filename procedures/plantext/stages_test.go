package plantext_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/procedures/plantext"
)

// A plan names the nodes in their order, and whatever decides when they are deployed.
func TestStages(t *testing.T) {
	db, w1, w2 := fleet.Member{Name: "db1"}, fleet.Member{Name: "web1"}, fleet.Member{Name: "web2"}
	require.Equal(t, []string{
		"stage db: db1; until nothing changes, in at most 3 runs",
		"stage web: web1, web2; waits for tcp db1:5432; canary 1; batches of 1; 1 node may fail; tasks here: lb_out, lb_in",
		"stage rest: web1, web2; 1 at once",
		"drained: web3",
		"stages without nodes: lb",
	}, plantext.Rollout(&fleet.Plan{
		Stages: []fleet.PlanStage{
			{Name: "db", Nodes: []fleet.Member{db}, AtOnce: 1, Batch: 1, Settle: 3},
			{Name: "web", Nodes: []fleet.Member{w1, w2}, AtOnce: 2, Batch: 1, Canary: 1, MaxFailures: 1, WaitFor: []fleet.Wait{{TCP: "db1:5432"}}, Before: []string{"lb_out"}, After: []string{"lb_in"}},
			{Name: "rest", Nodes: []fleet.Member{w1, w2}, AtOnce: 1, Batch: 2},
		},
		Skipped: []string{"web3"}, Empty: []string{"lb"},
	}, "install", nil)[0].Lines)
}
