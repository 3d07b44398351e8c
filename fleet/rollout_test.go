package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

func rollout(t *testing.T, p *fleet.Plan, k map[string]fleet.Node, m *machines) (*fleet.Rollout, *[]string) {
	if m.live == nil {
		m.live = map[string]bool{}
	}
	var told []string
	var mu sync.Mutex
	return &fleet.Rollout{
		Plan: p, Known: k, Nodes: m, Hub: &hub{m: m}, Order: fleet.Order{Deployment: project.Deployment{ID: "x", Project: "app"}}, Path: filepath.Join(t.TempDir(), "r", "x.json"), FS: vfs.OS{}, Now: time.Now,
		Emit: func(e event.Event) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, strings.Join(append([]string{e.Step, e.Text}, e.Lines...), " "))
		},
	}, &told
}

func deploy(t *testing.T, r *fleet.Rollout) error {
	require.NoError(t, r.Fetch(t.Context()))
	return r.Run(t.Context())
}

func progress(t *testing.T, r *fleet.Rollout) *fleet.Progress {
	p, ok, err := fleet.ReadProgress(r.Path)
	require.NoError(t, err)
	require.True(t, ok)
	return p
}

const webs = "nodes:\n  db1: {roles: [db]}\n  web[1-6]: {roles: [web]}"

func TestRolloutGoesStageByStage(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], parallel: 2}")
	m := &machines{}
	r, _ := rollout(t, p, k, m)
	require.NoError(t, deploy(t, r))
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
	require.NoError(t, fleet.Conclude(r.FS, r.Path, fleet.Live, time.Now()))
	require.NoError(t, fleet.Conclude(r.FS, r.Path, fleet.RolledBack, time.Now()), "it has ended")
	require.Equal(t, fleet.Live, progress(t, r).State)
	u, err := r.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, u.String())
	require.NotContains(t, strings.Join(m.asked, " "), "back", "what stands is not undone")
}

func TestRolloutNeedsEveryNode(t *testing.T) {
	p, k := plan(t, webs, "")
	old := fault.New(fault.Refused, "", "too old").WithHint("corpus-git node upgrade NAME")
	m := &machines{fetch: map[string]error{"web3": errors.New("no route"), "web5": errors.New("disk full"), "web1": old, "web2": old}}
	r, told := rollout(t, p, k, m)
	err := r.Fetch(t.Context())
	require.ErrorContains(t, err, "4 of 7 nodes are not ready")
	require.Contains(t, (*told)[0], "web1: too old   hint: corpus-git node upgrade NAME web2: too old web3: no route web5: disk full", "each hint once")

	m = &machines{fetch: map[string]error{"web3": errors.New("no route"), "web5": errors.New("disk full")}}
	r, told = rollout(t, p, k, m)
	err = r.Fetch(t.Context())
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "2 of 7 nodes are not ready")
	require.Contains(t, (*told)[0], "web3: no route web5: disk full")
	_, err = r.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Contains(t, m.asked, "back web1", "it need not wait any more")
	require.NotContains(t, m.asked, "back web3")

	// Unreachable nodes alone: the same may succeed later.
	away := fault.New(fault.Busy, "", "no route")
	for err, want := range map[error]fault.Kind{nil: fault.Busy, old: fault.Refused} {
		fetch := map[string]error{"web3": away, "web5": away}
		if err != nil {
			fetch["web1"] = err
		}
		r, _ = rollout(t, p, k, &machines{fetch: fetch})
		require.Equal(t, want, fault.KindOf(r.Fetch(t.Context())))
	}

	m = &machines{fetch: map[string]error{"web1": old, "web3": errors.New("no route")}}
	r, told = rollout(t, p, k, m)
	r.AllowMissing = true
	require.NoError(t, r.Fetch(t.Context()))
	require.Contains(t, (*told)[0], "left out: web1, web3")
	require.Contains(t, (*told)[1], "5 ready after")
	left := map[string]string{}
	for _, n := range progress(t, r).Nodes {
		if n.State == fleet.Missing {
			left[n.Name] = n.Reason
		}
	}
	require.Equal(t, map[string]string{"web1": "web1: too old", "web3": "web3: no route"}, left)

	m = &machines{fetch: map[string]error{"web3": errors.New("no route")}}
	r, told = rollout(t, p, k, m)
	r.AllowMissing = true
	require.NoError(t, deploy(t, r))
	require.Contains(t, (*told)[0], "left out: web3")
	require.Len(t, m.live, 6)
	done := progress(t, r)
	require.Equal(t, []string{"web3"}, done.NotLive())
	// A retry includes what was drained and no longer is.
	done.State, done.Plan.Skipped = fleet.Live, []string{"web8", "web9"}
	d, err := done.Retry(func(name string) bool { return name == "web9" })
	require.NoError(t, err)
	require.Equal(t, []string{"web3", "web8"}, d.Nodes)
	done.Nodes, done.Plan.Skipped = nil, []string{"web9"}
	_, err = done.Retry(func(string) bool { return true })
	require.ErrorContains(t, err, "is live on every node that is not drained")
}

func TestWhatFailsComesBackEverywhere(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], rolling: 2}")
	m := &machines{breaks: map[string]bool{"web3": true}}
	r, told := rollout(t, p, k, m)
	err := deploy(t, r)
	var f *fleet.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, []string{"web3"}, f.Nodes)
	require.Equal(t, "failed in 010", f.Reason)
	require.NotContains(t, m.asked, "apply web5", "nothing new is begun")
	require.Contains(t, strings.Join(*told, "\n"), "step failed why")

	// Another process takes it up: its progress is on the disk.
	m.back = map[string]error{"web1": errors.New("no route")}
	again, _ := rollout(t, nil, k, m)
	again.Path = r.Path
	m.asked = nil
	u, err := again.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, []string{"web1"}, u.Left)
	require.Equal(t, "back db1", m.asked[len(m.asked)-1], "the first stage comes last")
	require.NotContains(t, m.asked, "back web3", "it has rolled itself back")
	require.Equal(t, fleet.Incomplete, progress(t, r).State)

	// A second time only what is left.
	m.back, m.asked = nil, nil
	u, err = again.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, u.Left)
	require.Equal(t, []string{"back web1"}, m.asked)
	for name, live := range m.live {
		require.False(t, live, name)
	}
}

func TestOnFailure(t *testing.T) {
	for policy, want := range map[string][]string{fleet.All: nil, fleet.OnlyStage: {"db1"}, fleet.Halt: {"db1", "web1", "web2", "web4"}} {
		t.Run(policy, func(t *testing.T) {
			p, k := plan(t, webs, "on_failure: "+policy+"\nstages:\n- {name: d, roles: [db]}\n- {name: w, roles: [web], rolling: 4, before: [out], after: [in]}")
			m := &machines{breaks: map[string]bool{"web3": true}}
			r, _ := rollout(t, p, k, m)
			require.Error(t, deploy(t, r))
			m.asked = nil
			u, err := r.Undo(t.Context(), false)
			require.NoError(t, err)
			require.Empty(t, u.Left)
			slices.Sort(u.Keeps)
			require.Equal(t, want, u.Keeps)
			require.Contains(t, m.asked, "in web1,web2,web3,web4", "what was taken out is put back")
			require.Contains(t, m.asked, "back web5", "it waits for nothing any more")
			for name, live := range m.live {
				require.Equal(t, slices.Contains(want, name), live, name)
			}
		})
	}
}

// Nobody knows what a node does that was lost: it is rolled back as if it had been reached.
func TestALostNodeIsRolledBack(t *testing.T) {
	p, k := plan(t, webs, "")
	m := &machines{fails: map[string]error{"web2": errors.New("connection lost")}}
	r, _ := rollout(t, p, k, m)
	require.Error(t, deploy(t, r))
	m.asked = nil
	u, err := r.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, u.Left)
	require.Contains(t, m.asked, "back web2")
}

func TestCanaryAndMaxFailures(t *testing.T) {
	applied := func(m *machines) int {
		return len(slices.DeleteFunc(slices.Clone(m.asked), func(s string) bool { return !strings.HasPrefix(s, "apply ") }))
	}
	p, k := plan(t, webs, "stages:\n- {name: all, canary: 2, max_failures: 3}")
	m := &machines{breaks: map[string]bool{"web1": true}}
	r, _ := rollout(t, p, k, m)
	require.Error(t, deploy(t, r), "a canary must not fail")
	require.Equal(t, 2, applied(m))

	later, k2 := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, canary: 1, max_failures: 3}")
	m = &machines{breaks: map[string]bool{"web1": true}}
	r, _ = rollout(t, later, k2, m)
	require.Error(t, deploy(t, r), "nor one of a later stage")
	require.Equal(t, 2, applied(m))

	m = &machines{breaks: map[string]bool{"web4": true}, fails: map[string]error{"web5": errors.New("lost")}}
	r, told := rollout(t, p, k, m)
	require.NoError(t, deploy(t, r))
	require.Contains(t, strings.Join(*told, "\n"), "web4, web5 failed, and max_failures allows 3")
	m = &machines{breaks: map[string]bool{"web2": true, "web3": true, "web4": true, "web5": true}}
	r, _ = rollout(t, p, k, m)
	require.Error(t, deploy(t, r))
}

func TestSettle(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: w, settle: 3}")
	m := &machines{changes: map[string]int{"web2": 2}}
	r, told := rollout(t, p, k, m)
	require.NoError(t, deploy(t, r))
	require.Contains(t, strings.Join(*told, "\n"), "web2 live, settled in run 3")
	require.Contains(t, strings.Join(*told, "\n"), "web1 live, settled in run 1")
	require.Len(t, string(fleet.Order{Deployment: project.Deployment{ID: "x"}}.ID(2)), 36)

	m = &machines{changes: map[string]int{"web2": 3}}
	r, _ = rollout(t, p, k, m)
	require.ErrorContains(t, deploy(t, r), "node web2: it does not settle: run 3 of 3 changed 2 states")
	_, err := r.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Contains(t, m.asked, "back web2", "it is live there")
}

func TestPause(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: w, parallel: 1}")
	m := &machines{}
	r, _ := rollout(t, p, k, m)
	_, err := r.Pause(true)
	require.Equal(t, fault.Refused, fault.KindOf(err), "it has not begun")
	begun := make(chan struct{})
	m.inApply = func(name string) {
		if name == "web1" {
			changed, err := r.Pause(true)
			require.True(t, changed)
			require.NoError(t, err)
			close(begun)
		}
	}
	require.NoError(t, r.Fetch(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context()) }()
	<-begun
	require.True(t, progress(t, r).Paused)
	select {
	case err := <-done:
		t.Fatal(err)
	case <-time.After(20 * time.Millisecond):
	}
	changed, err := r.Pause(false)
	require.True(t, changed)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Len(t, m.live, 7)

	// A pause is ended by the end of the rollout, too.
	m = &machines{}
	r, _ = rollout(t, p, k, m)
	require.NoError(t, r.Fetch(t.Context()))
	_, err = r.Pause(true)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { done <- r.Run(ctx) }()
	cancel(errors.New("cancelled"))
	require.EqualError(t, <-done, "cancelled")
	require.Empty(t, m.live)
}

// died is a file system that stops working at one of its writes, as the process does that is killed there.
type died struct {
	vfs.FS
	mu   sync.Mutex
	left int
}

var errDied = errors.New("killed")

func (d *died) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left < 0 {
		return errDied
	}
	return d.FS.Rename(from, to)
}

// The hub is killed at each of its notes, and again at each note of the one that takes up: the rollout goes on where it was, and each node runs each deployment once.
func TestKilledAtEachNote(t *testing.T) {
	const stages = "stages:\n- {name: d, roles: [db], settle: 3, after: [in]}\n- {name: w, roles: [web], rolling: 2, before: [out], after: [in], max_failures: 1, wait_for: [{tcp: \"db1:1\"}]}"
	for _, broken := range []string{"", "web4"} {
		for first := range 60 {
			p, k := plan(t, webs, stages)
			m := &machines{changes: map[string]int{"db1": 1}, breaks: map[string]bool{broken: true}}
			r, _ := rollout(t, p, k, m)
			d := &died{FS: vfs.OS{}, left: first}
			r.FS = d
			err := r.Fetch(t.Context())
			if err == nil {
				err = r.Run(t.Context())
			}
			for n := 0; err != nil; n++ {
				require.Less(t, n, 60, "it makes no progress")
				next, _ := rollout(t, p, k, m)
				next.Path, next.FS = r.Path, &died{FS: vfs.OS{}, left: n + 1}
				if err = next.Fetch(t.Context()); err == nil {
					err = next.Run(t.Context())
				}
			}
			at := fmt.Sprintf("killed at note %d, broken %q", first, broken)
			applied := map[string]int{}
			last := ""
			for _, a := range m.asked {
				if name, ok := strings.CutPrefix(a, "apply "); ok {
					applied[name]++
					require.False(t, name == "db1" && last != "" && last != "db1", at)
					last = name
				}
			}
			want := map[string]int{"db1": 2, "web1": 1, "web2": 1, "web3": 1, "web4": 1, "web5": 1, "web6": 1}
			require.Equal(t, want, applied, at)
			for name := range want {
				require.Equal(t, name != broken, m.live[name], at+" "+name)
			}
			if d.left >= 0 {
				break // it came to its end without being killed
			}
			require.Less(t, first, 59)
		}
	}
}

// A hub dies while it makes the nodes ready: one that it has not heard of may wait there, and is told that it need not. In a hub that lives that is so for nodes whose connection was lost, and not for
// those that refused.
func TestUndoOfNodesThatMayWait(t *testing.T) {
	p, k := plan(t, webs, "")
	m := &machines{}
	r, _ := rollout(t, p, k, m)
	d := &died{FS: vfs.OS{}, left: 1} // the begin is noted, and no node
	r.FS = d
	require.ErrorIs(t, errors.Join(r.Fetch(t.Context()), errDied), errDied)
	m.asked = nil
	next, _ := rollout(t, p, k, m)
	next.Path = r.Path
	u, err := next.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, u.String())
	require.Len(t, m.asked, len(p.Nodes()), "each is told: %v", m.asked)
	got, ok, err := fleet.ReadProgress(r.Path)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, fleet.RolledBack, got.State)

	m = &machines{fetch: map[string]error{"web1": &fleet.Unsure{Err: errors.New("lost")}, "web2": errors.New("no such function")}}
	r, _ = rollout(t, p, k, m)
	require.ErrorContains(t, r.Fetch(t.Context()), "2 of ")
	m.asked = nil
	_, err = r.Undo(t.Context(), false)
	require.NoError(t, err)
	require.Contains(t, m.asked, "back web1")
	require.Contains(t, m.asked, "back web3")
	require.NotContains(t, m.asked, "back web2")
}

// counted counts the files that are written.
type counted struct {
	vfs.FS
	mu      sync.Mutex
	renamed int
}

func (c *counted) Rename(from, to string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renamed++
	return c.FS.Rename(from, to)
}

// A rollout's file is written for many nodes at once, and what it records is true of each node when the rollout returns, whether it succeeds, fails, or is cancelled.
func TestFileIsWrittenForManyNodes(t *testing.T) {
	for name, c := range map[string]struct{ breaks, cancels string }{"all live": {}, "one fails": {breaks: "web70"}, "cancelled": {cancels: "web70"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				p, k := plan(t, "nodes:\n  web[1-200]: {roles: [web]}", "stages:\n- {name: w, roles: [web]}")
				m := &machines{breaks: map[string]bool{c.breaks: true}}
				r, _ := rollout(t, p, k, m)
				fs := &counted{FS: vfs.OS{}}
				r.FS, r.Path = fs, filepath.Join(dir, "x.json")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				m.inApply = func(name string) {
					if name == c.cancels {
						cancel()
					}
				}
				require.NoError(t, r.Fetch(ctx))
				require.Equal(t, 200, progress(t, r).Count()[fleet.Ready])
				err := r.Run(ctx)
				require.Equal(t, name == "all live", err == nil, err)
				for _, n := range progress(t, r).Nodes {
					switch n.State {
					case fleet.NodeLive:
						require.True(t, m.live[n.Name], n.Name)
					case fleet.NodeFailed, fleet.Ready:
						require.False(t, m.live[n.Name], n.Name)
					default: // of those that were cancelled it is unknown
						require.Equal(t, "cancelled "+fleet.Applying, name+" "+n.State, n.Name)
					}
				}
				require.LessOrEqual(t, fs.renamed, 20)
			})
		})
	}
}

// A hub that dies after a failure leaves nodes of which it is unknown whether they began: the next hub learns it, so that the verdict of a rollout that halts is true of every node.
func TestVerdictOfAHaltIsTrueAfterAKill(t *testing.T) {
	for first := range 60 {
		p, k := plan(t, "nodes:\n  web[1-9]: {roles: [web]}", "on_failure: halt\nstages:\n- {name: w, roles: [web], parallel: 3}")
		m := &machines{breaks: map[string]bool{"web2": true}}
		r, _ := rollout(t, p, k, m)
		d := &died{FS: vfs.OS{}, left: first}
		r.FS = d
		err := r.Fetch(t.Context())
		if err == nil {
			err = r.Run(t.Context())
		}
		var failed *fleet.Failure
		if !errors.As(err, &failed) {
			require.ErrorIs(t, err, errDied)
			next, _ := rollout(t, p, k, m)
			next.Path, r = r.Path, next
			if err = r.Fetch(t.Context()); err == nil {
				err = r.Run(t.Context())
			}
		}
		require.ErrorAs(t, err, &failed)
		for _, n := range progress(t, r).Nodes {
			require.Equal(t, n.State == fleet.NodeLive, m.live[n.Name], "killed at write %d: %s is %s", first, n.Name, n.State)
		}
		r.FS = vfs.OS{}
		u, err := r.Undo(t.Context(), false)
		require.NoError(t, err)
		for _, name := range u.Keeps {
			require.True(t, m.live[name], "killed at write %d: %s", first, name)
		}
		if d.left >= 0 {
			return
		}
	}
	t.Error("it was always killed")
}
