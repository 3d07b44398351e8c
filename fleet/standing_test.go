package fleet_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/db"
	"corpus-git/internal/draw"
	"corpus-git/project"
)

// writeRollout writes the file of a rollout, as Progress.write does.
func writeRollout(t *testing.T, dir string, p *fleet.Progress) {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	path := filepath.Join(dir, string(p.Deployment.ID)+".json")
	require.NoError(t, os.WriteFile(path+".tmp", text, 0o600))
	require.NoError(t, os.Rename(path+".tmp", path))
}

// openStore returns a store with an empty database, and a folder of rollouts.
func openStore(t *testing.T) (s *fleet.Store, dir string) {
	t.Helper()
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	s, err = fleet.Open(t.Context(), d)
	require.NoError(t, err)
	return s, t.TempDir()
}

// indexOf returns a store that finds the files of a history, the newest first; those without an ID or a time get some.
func indexOf(t *testing.T, history []*fleet.Progress) (s *fleet.Store, dir string) {
	t.Helper()
	s, dir = openStore(t)
	for i, p := range history {
		c := *p
		if c.Started = time.Unix(int64(1000-i), 0); c.Deployment.ID == "" {
			c.Deployment.ID = project.ID(fmt.Sprint("id", i))
		}
		if c.State == "" {
			c.State = fleet.Live
		}
		writeRollout(t, dir, &c)
	}
	return s, dir
}

// usesOf and behindOf are what the index must say, from all files.
func usesOf(history []*fleet.Progress) map[string][]fleet.Use {
	out := map[string][]fleet.Use{}
	for _, name := range []project.Name{"app", "other"} {
		list := slices.DeleteFunc(slices.Clone(history), func(p *fleet.Progress) bool { return p.Deployment.Project != name })
		if len(list) == 0 {
			continue
		}
		behind := behindOf(list)
		for _, node := range slices.Concat(fleet.Names(list[0].Plan.Nodes()), list[0].Plan.Left, list[0].Plan.Skipped) {
			u := fleet.Use{Project: name}
			for _, p := range list {
				if i := slices.IndexFunc(p.Nodes, func(n fleet.NodeProgress) bool { return n.Name == node }); i >= 0 {
					u.Roles, u.State, u.Deployment = p.Nodes[i].Roles, p.Nodes[i].State, p.Deployment.ID
					break
				}
			}
			if i := slices.IndexFunc(behind, func(b fleet.Behind) bool { return b.Node == node }); i >= 0 {
				u.Behind, u.Release = true, behind[i].Release
			}
			out[node] = append(out[node], u)
		}
	}
	return out
}

func behindOf(history []*fleet.Progress) (out []fleet.Behind) {
	if len(history) == 0 || !history[0].Complete() {
		return nil
	}
	var live project.Deployment
	if i := slices.IndexFunc(history, func(p *fleet.Progress) bool { return p.State == fleet.Live }); i >= 0 {
		live = history[i].Deployment
	}
	names := slices.Concat(fleet.Names(history[0].Plan.Nodes()), history[0].Plan.Left, history[0].Plan.Skipped)
	slices.Sort(names)
	for _, name := range names {
		code, pillar, known := releaseOf(name, history)
		if !known || code != live.Code || code != "" && pillar != live.Pillar {
			out = append(out, fleet.Behind{Node: name, Release: code})
		}
	}
	return out
}

func releaseOf(node string, history []*fleet.Progress) (code, pillar project.Commit, known bool) {
	for _, p := range history {
		i := slices.IndexFunc(p.Nodes, func(n fleet.NodeProgress) bool { return n.Name == node })
		if i < 0 {
			continue
		}
		switch n := p.Nodes[i]; {
		case n.State == fleet.NodeLive:
			return p.Deployment.Code, p.Deployment.Pillar, true
		case n.State == fleet.Applying, n.State == fleet.NodeFailed && n.Touched:
			return "", "", false
		}
	}
	return "", "", len(history) < 20
}

// randomRollout returns a rollout to some of nine nodes.
func randomRollout(r *rand.Rand, i int) *fleet.Progress {
	p := &fleet.Progress{
		Deployment: project.Deployment{ID: project.ID(fmt.Sprintf("%08d", i)), Project: []project.Name{"app", "other"}[r.IntN(2)], Code: project.Commit(fmt.Sprint("code", i-r.IntN(2))), Pillar: project.Commit(fmt.Sprint("pillar", r.IntN(2)))},
		State:      []string{fleet.Live, fleet.Live, fleet.RolledBack, fleet.Halted, fleet.Incomplete}[r.IntN(5)], Started: time.Unix(int64(1000+i), 0), Plan: &fleet.Plan{},
	}
	var stage fleet.PlanStage
	for n := range 9 {
		name := fmt.Sprint("web", n)
		switch k := r.IntN(9); {
		case k == 0:
			p.Plan.Left = append(p.Plan.Left, name)
		case k == 1:
			p.Plan.Skipped = append(p.Plan.Skipped, name)
		case k > 3:
			m := fleet.Member{Name: name, Roles: []string{fmt.Sprint("role", r.IntN(3))}}
			stage.Nodes = append(stage.Nodes, m)
			state := []string{fleet.NodeLive, fleet.NodeLive, fleet.NodeBack, fleet.NodeFailed, fleet.Missing, fleet.Applying, fleet.Waiting}[r.IntN(7)]
			p.Nodes = append(p.Nodes, fleet.NodeProgress{Member: m, State: state, Touched: r.IntN(2) == 0})
		}
	}
	p.Plan.Stages = []fleet.PlanStage{stage}
	return p
}

// After each of many rollouts the index says what all of their files say, also while one runs, and when it is opened again. Of the project of an older server, whose files exist before the index, too.
func TestTheIndexSaysWhatTheFilesSay(t *testing.T) {
	r := rand.New(rand.NewPCG(draw.Seed(t), 1))
	for round := range 6 {
		s, dir := openStore(t)
		var history []*fleet.Progress
		for i := range 18 {
			p := randomRollout(r, i)
			if history = slices.Insert(history, 0, p); r.IntN(3) == 0 { // it is looked at while it runs
				running := *p
				running.State = fleet.Running
				writeRollout(t, dir, &running)
				got, err := s.Uses(t.Context(), dir, "")
				require.NoError(t, err)
				now := slices.Clone(history)
				now[0] = &running
				require.Equal(t, usesOf(now), got, "round %d, rollout %d runs", round, i)
			}
			writeRollout(t, dir, p)
			if r.IntN(2) == 0 && i < 17 {
				continue // several end before somebody looks
			}
			got, err := s.Uses(t.Context(), dir, "")
			require.NoError(t, err)
			require.Equal(t, usesOf(history), got, "round %d, rollout %d", round, i)
			one, err := s.Uses(t.Context(), dir, "web3")
			require.NoError(t, err)
			require.Equal(t, got["web3"], one["web3"])
			for _, name := range []project.Name{"app", "other"} {
				list := slices.DeleteFunc(slices.Clone(history), func(p *fleet.Progress) bool { return p.Deployment.Project != name })
				for _, of := range []project.Name{"", name} {
					behind, err := s.Behind(t.Context(), dir, of)
					require.NoError(t, err)
					require.Equal(t, behindOf(list), behind[name])
				}
				read, err := s.History(t.Context(), dir, name)
				require.NoError(t, err)
				require.Len(t, read, len(list))
			}
		}
	}
}

// A server of an earlier release has files and no index. If its history is as long as is kept, what it does not say of a node is not known. What the index has read, it keeps when the files are removed.
func TestTheIndexOfAnEarlierServer(t *testing.T) {
	r := rand.New(rand.NewPCG(draw.Seed(t), 2))
	s, dir := openStore(t)
	var history []*fleet.Progress
	for i := range 25 {
		p := randomRollout(r, i)
		p.Deployment.Project = "app"
		for k := range p.Nodes {
			if p.Nodes[k].Name == "web1" && p.Nodes[k].State == fleet.NodeLive {
				p.Nodes[k].State = fleet.Missing
			}
		}
		history = slices.Insert(history, 0, p)
		writeRollout(t, dir, p)
	}
	want := usesOf(history)
	got, err := s.Uses(t.Context(), dir, "")
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, p := range history[1:] {
		require.NoError(t, os.Remove(filepath.Join(dir, string(p.Deployment.ID)+".json")))
	}
	got, err = s.Uses(t.Context(), dir, "")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// The files of ended rollouts are read once: they may be unreadable from then on.
func TestEndedRolloutsAreReadOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	s, dir := openStore(t)
	var history []*fleet.Progress
	for i := range 15 {
		history = slices.Insert(history, 0, randomRollout(r, i))
		writeRollout(t, dir, history[0])
	}
	_, err := s.Uses(t.Context(), dir, "")
	require.NoError(t, err)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range names { // a pipe would be opened for ever
		require.NoError(t, os.Remove(filepath.Join(dir, e.Name())))
		require.True(t, strings.HasSuffix(e.Name(), ".json"))
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, e.Name()), 0o600))
	}
	history = slices.Insert(history, 0, randomRollout(r, 15))
	writeRollout(t, dir, history[0])
	got, err := s.Uses(t.Context(), dir, "")
	require.NoError(t, err)
	require.Equal(t, usesOf(history), got)
	_, err = s.Behind(t.Context(), dir, "")
	require.NoError(t, err)
}
