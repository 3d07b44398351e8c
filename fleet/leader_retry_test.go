package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// A retry is refused if the leader failed and can't lead any more, and the next one may be a node that the retry does not reach: its steps would run nowhere.
func TestRetryWithoutItsLeader(t *testing.T) {
	for name, c := range map[string]struct {
		leader  string
		drained string
		live    string
		err     string
		hint    string
	}{
		"it is drained, another may lead":    {leader: "web1", drained: "web1", live: "web2", err: "web2, where", hint: "corpus-git deploy app"},
		"it is not drained":                  {leader: "web1", live: "web2"},
		"it was live":                        {leader: "web2", drained: "web2", live: "web2"},
		"those that may lead get the commit": {leader: "web1", drained: "web1"},
		"no steps of a leader":               {drained: "web1", live: "web2"},
	} {
		t.Run(name, func(t *testing.T) {
			p := fleet.Progress{State: fleet.Live, Leader: c.leader, Plan: &fleet.Plan{Leads: []string{"web1", "web2"}}, Deployment: project.Deployment{Project: "app", Code: "1234567"}}
			for _, n := range []string{"web1", "web2", "web3"} {
				state := fleet.NodeFailed
				if n == c.live {
					state = fleet.NodeLive
				}
				p.Nodes = append(p.Nodes, fleet.NodeProgress{Member: fleet.Member{Name: n}, State: state})
			}
			_, err := p.Retry(func(name string) bool { return name == c.drained })
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.err)
			require.Contains(t, fault.HintOf(err), c.hint)
			p.State = fleet.Halted
			_, err = p.Retry(func(name string) bool { return name == c.drained })
			require.Contains(t, fault.HintOf(err), "push again")
		})
	}
}
