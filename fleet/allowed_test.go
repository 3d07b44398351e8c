package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// max_failures allows some nodes to fail, and never so many that the release would be nowhere, nor the one on which steps run for all.
func TestWhatMaxFailuresDoesNotAllow(t *testing.T) {
	const three = "nodes:\n  db1: {roles: [db]}\n  web[1-2]: {roles: [web]}"
	for name, c := range map[string]struct {
		stages, leader string
		breaks         []string
		want           string
	}{
		"every node of a stage": {stages: "stages:\n- {name: d, roles: [db], max_failures: 1}\n- {name: w, roles: [web]}", breaks: []string{"db1"}, want: "node db1: failed in 010"},
		"both of two":           {stages: "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], max_failures: 5}", breaks: []string{"web1", "web2"}, want: "node web1 and web2: "},
		"the leader":            {stages: "leader: {steps: [010]}\nstages:\n- {name: all, max_failures: 1}", leader: "web2", breaks: []string{"web2"}, want: "node web2: "},
		"a canary of as many":   {stages: "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], canary: 2, rolling: 1, max_failures: 1}", breaks: []string{"web2"}, want: "node web2: "},
		"one of two":            {stages: "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], max_failures: 1}", breaks: []string{"web2"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, k := plan(t, three, c.stages)
			m := &machines{breaks: map[string]bool{}}
			for _, b := range c.breaks {
				m.breaks[b] = true
			}
			r, _ := rollout(t, p, k, m)
			r.Elect = func(context.Context, project.Name, []string) (string, int64, error) { return c.leader, 7, nil }
			err := deploy(t, r)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			var f *fleet.Failure
			require.ErrorAs(t, err, &f)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A node that is not ready is no canary: the next one is, and the batches after it have the size that they were to have.
func TestTheCanaryIsOneThatIsReady(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], canary: 1, rolling: 2, before: [out], after: [in]}")
	m := &machines{fetch: map[string]error{"web1": errors.New("no route")}, breaks: map[string]bool{"web2": true}}
	r, _ := rollout(t, p, k, m)
	r.AllowMissing = true
	require.ErrorContains(t, deploy(t, r), "node web2: ")
	require.Contains(t, m.asked, "out web2")
	require.NotContains(t, m.asked, "apply web3")
	require.Equal(t, 3, progress(t, r).Stages[1].Of, "web2, web3 and web4, web5 and web6")
	_, err := r.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Contains(t, m.asked, "in web2")

	m = &machines{fetch: m.fetch}
	r, _ = rollout(t, p, k, m)
	r.AllowMissing = true
	require.NoError(t, deploy(t, r))
	require.Contains(t, m.asked, "in web3,web4")
	require.Contains(t, m.asked, "in web5,web6")

	// A rollout that was begun by an earlier release goes on in the batches that it has counted.
	done := progress(t, r)
	done.State, done.Stages[1].Of, done.Stages[1].Done = fleet.Running, 4, 2
	for i, n := range done.Nodes {
		done.Nodes[i].Late = false
		if n.Name == "web4" || n.Name == "web5" || n.Name == "web6" {
			done.Nodes[i].State = fleet.Ready
		}
	}
	text, err := json.Marshal(done)
	require.NoError(t, err)
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS{}, r.Path, text, 0o600))
	m = &machines{}
	next, _ := rollout(t, p, k, m)
	next.Path = r.Path
	require.NoError(t, next.Run(t.Context()))
	require.Contains(t, m.asked, "in web4,web5")
	require.Contains(t, m.asked, "in web6")
}

// The next stages see what a node wrote when it was last deployed, if it is left out, or fails and keeps the old release.
func TestExportsOfNodesThatKeepTheOldRelease(t *testing.T) {
	p, k := plan(t, "nodes:\n  db[1-3]: {roles: [db]}\n  web1: {roles: [web]}", "stages:\n- {name: d, roles: [db], max_failures: 1}\n- {name: w, roles: [web]}")
	dir := t.TempDir()
	m := &machines{exports: "1"}
	r, _ := rollout(t, p, k, m)
	r.Path, r.Order.Deployment.ID = dir+"/a.json", "a"
	require.NoError(t, deploy(t, r))
	require.NoError(t, fleet.Conclude(r.FS, r.Path, fleet.Live, time.Now()))
	m = &machines{exports: "2", fetch: map[string]error{"db2": errors.New("no route")}, breaks: map[string]bool{"db3": true}}
	r, _ = rollout(t, p, k, m)
	r.Path, r.Order.Deployment.ID, r.AllowMissing = dir+"/b.json", "b", true
	require.NoError(t, deploy(t, r))
	require.JSONEq(t, `{"db": {"db1": {"device": 2}, "db2": {"device": 1}, "db3": {"device": 1}}}`, m.saw["web1"])
}

// What steps before a batch have begun to take out of a load balancer is put back, however they end. The verdict says what could not be put back.
func TestStepsAfterAFailureBefore(t *testing.T) {
	const stages = "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], rolling: 2, before: [out, out2], after: [in]}"
	p, k := plan(t, webs, stages)
	m := &machines{}
	r, _ := rollout(t, p, k, m)
	r.Hub = &hub{m: m, fails: map[string]error{"out2": errors.New("no balancer")}}
	require.ErrorContains(t, deploy(t, r), "stage w: the step out2 on the hub: no balancer")
	u, err := r.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, "", u.String())
	require.Equal(t, []string{"out web1,web2", "out2 web1,web2", "in web1,web2"}, onHub(m))

	m = &machines{breaks: map[string]bool{"web1": true}}
	r, _ = rollout(t, p, k, m)
	r.Hub = &hub{m: m, fails: map[string]error{"in": errors.New("no balancer")}}
	require.Error(t, deploy(t, r))
	u, err = r.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, "stage w: the step in on the hub: no balancer (for web1, web2)", u.String())
	require.Equal(t, fleet.Incomplete, progress(t, r).State)

	// The hub is killed in the step: its next start goes on, and does not take the rollout for one that never began.
	p, k = plan(t, webs, "stages:\n- {name: w, before: [out], after: [in]}")
	m = &machines{}
	r, _ = rollout(t, p, k, m)
	ctx, kill := context.WithCancelCause(t.Context())
	r.Hub = &hub{m: m, in: func(task string) { kill(errDied) }}
	require.NoError(t, r.Fetch(ctx))
	require.ErrorIs(t, r.Run(ctx), errDied)
	require.True(t, progress(t, r).Begun())
}

func onHub(m *machines) []string {
	return slices.DeleteFunc(slices.Clone(m.asked), func(a string) bool { return !strings.HasPrefix(a, "out") && !strings.HasPrefix(a, "in ") })
}

// A node that never settles has the new release: where max_failures allows it to fail, it is brought back to the old one, as its failure says.
func TestANodeThatMayFailAndDoesNotSettle(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, settle: 2, max_failures: 1}")
	m := &machines{changes: map[string]int{"web2": 9}}
	r, _ := rollout(t, p, k, m)
	require.NoError(t, deploy(t, r))
	require.Contains(t, m.asked, "back web2")
	require.False(t, m.live["web2"])
	require.False(t, progress(t, r).Nodes[2].Touched)
}

// Nodes that are drained or removed while a rollout is paused are left out of the rest of it.
func TestNodesThatAreDrainedMeanwhile(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, rolling: 1, before: [out], after: [in]}")
	m := &machines{}
	r, told := rollout(t, p, k, m)
	r.Again = func(_ context.Context, names []string) (map[string]fleet.Node, error) {
		require.Len(t, names, 1, "those of the batch, not all")
		now := map[string]fleet.Node{}
		for name, n := range k {
			n.Drained = name == "web2"
			now[name] = n
		}
		delete(now, "web3")
		return now, nil
	}
	require.NoError(t, deploy(t, r))
	require.Contains(t, strings.Join(*told, "\n"), "left out: web2 web2 was drained during the rollout")
	require.Contains(t, strings.Join(*told, "\n"), "left out: web3 web3 was removed during the rollout")
	require.Contains(t, m.asked, "back web2", "it need not wait")
	require.NotContains(t, m.asked, "apply web2")
	require.NotContains(t, m.asked, "apply web3")
	require.NotContains(t, m.asked, "out web2")
	require.True(t, m.live["web6"])
	require.Equal(t, []string{"web2", "web3"}, progress(t, r).NotLive())

	// Nobody is left.
	r, _ = rollout(t, p, k, &machines{})
	r.Again = func(context.Context, []string) (map[string]fleet.Node, error) { return nil, nil }
	require.ErrorContains(t, deploy(t, r), "it is live on no node")
}

// If the canary is drained before its stage begins, the next node is the canary: its failure keeps the others from being begun.
func TestTheCanaryIsDrainedMeanwhile(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, canary: 1, rolling: 2}")
	m := &machines{breaks: map[string]bool{"web2": true}}
	r, _ := rollout(t, p, k, m)
	r.Again = func(context.Context, []string) (map[string]fleet.Node, error) { return drained(k, "web1"), nil }
	require.ErrorContains(t, deploy(t, r), "node web2")
	require.Equal(t, []string{"apply db1", "apply web2"}, applied(m))
	stage := progress(t, r).Stages[1]
	require.Equal(t, 3, stage.Of, "the canary, and two batches of two: %+v", stage)
}

// Within a batch, too, nodes that were drained during a pause are left out.
func TestNodesThatAreDrainedInTheMiddleOfABatch(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, parallel: 1}")
	m := &machines{}
	r, told := rollout(t, p, k, m)
	var away []string
	r.Again = func(context.Context, []string) (map[string]fleet.Node, error) { return drained(k, away...), nil }
	m.inApply = func(name string) {
		if name != "web2" {
			return
		}
		_, err := r.Pause(true)
		require.NoError(t, err)
	}
	r.Rests = func(rests bool) {
		if !rests {
			return
		}
		away = []string{"web3", "web6"}
		_, err := r.Pause(false)
		require.NoError(t, err)
	}
	require.NoError(t, deploy(t, r))
	require.Equal(t, []string{"apply db1", "apply web1", "apply web2", "apply web4", "apply web5"}, applied(m))
	require.Contains(t, strings.Join(*told, "\n"), "left out: web3, web6")
	require.Equal(t, []string{"web3", "web6"}, progress(t, r).NotLive())
}

// An undeploy reaches every node, also those that are drained, and goes on after one that fails.
func TestUndeployOnAllNodes(t *testing.T) {
	p, k := plan(t, webs, "")
	m := &machines{back: map[string]error{"web2": errors.New("unreachable")}}
	known := drained(k, "web1")
	delete(known, "web6")
	r, told := rollout(t, fleet.EveryNode(p.Nodes()), known, m)
	require.EqualError(t, r.Undeploy(t.Context()), "node web2: unreachable")
	slices.Sort(m.asked)
	require.Equal(t, []string{"undeploy db1", "undeploy web1", "undeploy web2", "undeploy web3", "undeploy web4", "undeploy web5"}, m.asked)
	require.Contains(t, strings.Join(*told, "\n"), "web6 was removed from this server, and is left as it is")
	m.back = nil
	require.NoError(t, r.Undeploy(t.Context()))
}

// drained returns nodes of which some are drained.
func drained(k map[string]fleet.Node, names ...string) map[string]fleet.Node {
	now := map[string]fleet.Node{}
	for name, n := range k {
		n.Drained = slices.Contains(names, name)
		now[name] = n
	}
	return now
}

func applied(m *machines) []string {
	return slices.DeleteFunc(slices.Clone(m.asked), func(a string) bool { return !strings.HasPrefix(a, "apply") })
}

// A rollout that waits can be left to a later process: it says so when it begins to wait, and the file tells that it has begun.
func TestAWaitingRolloutIsLeftToALaterProcess(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: w, wait_for: [{command: x, every: 1ms}]}")
	m := &machines{}
	r, _ := rollout(t, p, k, m)
	r.Hub.(*hub).lacks = 1 << 20
	ctx, stop := context.WithCancelCause(t.Context())
	r.Rests = func(rests bool) {
		if rests {
			stop(errDied)
		}
	}
	require.NoError(t, r.Fetch(ctx))
	require.ErrorIs(t, r.Run(ctx), errDied)
	require.True(t, progress(t, r).Begun())
	next, _ := rollout(t, p, k, m)
	next.Path = r.Path
	require.NoError(t, next.Run(t.Context()))
	require.Len(t, m.live, 7)
}

// A wait lasts as long as it says, and its last try is at its end. A node that cannot be reached is not green yet.
func TestTheWholeWait(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, wait_for: [{checks: green, for: 40ms, every: 10s}]}")
	m := &machines{unreachable: map[string]int{"db1": 1}}
	r, _ := rollout(t, p, k, m)
	begun := time.Now()
	require.NoError(t, deploy(t, r))
	require.GreaterOrEqual(t, time.Since(begun), 40*time.Millisecond)
}
