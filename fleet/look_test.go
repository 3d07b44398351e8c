package fleet_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// What a look at the nodes comes to is what the deployment itself comes to, with the same words; nothing but looks is asked, and no file is written.
func TestLookJudgesAsFetch(t *testing.T) {
	gone := fault.New(fault.Busy, "", "no route").WithHint("look at its cable")
	old := fault.New(fault.Refused, "", "too old")
	for name, c := range map[string]struct {
		fetch   map[string]error
		missing bool
		leader  string
		leads   bool
		says    string
	}{
		"all are ready":               {},
		"one is not reached":          {fetch: map[string]error{"web2": gone}, says: "1 of 7"},
		"two, one is too old":         {fetch: map[string]error{"web2": gone, "db1": old}, says: "2 of 7"},
		"they may be left out":        {fetch: map[string]error{"web2": gone}, missing: true},
		"the leader may not":          {fetch: map[string]error{"web2": gone}, missing: true, leads: true, leader: "web2", says: "the leader web2"},
		"one that will be elected":    {fetch: map[string]error{"web1": gone}, missing: true, leads: true, says: "the leader web1"},
		"another one leads":           {fetch: map[string]error{"web1": gone}, missing: true, leads: true, leader: "web2"},
		"one that is no candidate is": {fetch: map[string]error{"web1": gone}, missing: true, leads: true, leader: "db1", says: "the leader web1"},
	} {
		t.Run(name, func(t *testing.T) {
			stages := "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web]}"
			if c.leads {
				stages = "leader: {steps: [a], roles: [web]}\n" + stages
			}
			p, k := plan(t, webs, stages)
			m := &machines{fetch: c.fetch, looked: map[string]fleet.Looked{"web3": {Live: "other"}, "web4": {Unasked: "it is old"}}}
			r, _ := rollout(t, p, k, m)
			r.AllowMissing = c.missing
			r.Order.Deployment.LiveCode, r.Order.Deployment.Code = "", "1234567890"
			r.Leads = func(context.Context, project.Name) (string, error) { return c.leader, nil }
			r.Elect = func(_ context.Context, _ project.Name, candidates []string) (string, int64, error) {
				if c.leader == "web2" {
					return "web2", 1, nil
				}
				return candidates[0], 1, nil
			}
			found, refused, err := r.Look(t.Context(), func(context.Context, project.Commit) (project.Description, error) { return project.Description{}, nil })
			require.NoError(t, err)
			for _, asked := range m.asked {
				require.True(t, strings.HasPrefix(asked, "look "), asked)
			}
			require.NoFileExists(t, r.Path)
			fetched := r.Fetch(t.Context())
			if c.says == "" {
				require.NoError(t, refused)
				require.NoError(t, fetched)
				require.Empty(t, found.Refused)
			} else {
				require.ErrorContains(t, refused, c.says)
				require.EqualError(t, fetched, refused.Error())
				require.Equal(t, fault.KindOf(fetched), fault.KindOf(refused))
				require.Equal(t, fault.HintOf(fetched), found.Hint)
			}
			all, ready := found.Count()
			require.Equal(t, 7, all)
			require.Equal(t, 7-len(c.fetch), ready)
			require.True(t, found.Stages[1].Nodes[2].Behind)
			require.False(t, found.Stages[1].Nodes[3].Behind, "it is not known")
			text := strings.Join(fleet.PlanLines(found, r.Order.Deployment), "\n")
			require.Contains(t, text, "web3  gets 1234567: other is live there, not ")
			require.Contains(t, text, "web4  gets 1234567\n    not asked for its space and what is live there: it is old")
			for name := range c.fetch {
				require.Contains(t, text, name+"  ! ")
			}
		})
	}
}
