package converge_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/converge"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// machine is a server with projects that all have one policy. A run takes a minute.
type machine struct {
	mu     sync.Mutex
	names  []project.Name
	policy project.ConvergePolicy
	boot   string
	clock  time.Duration // by which the wall clock is wrong
	busy   bool
	result project.Result
	s      *converge.Scheduler

	begun []time.Duration // since the test's begin, of all runs
	why   []string
	told  []string
	now   int
	most  int
	zero  time.Time
	kept  int
}

func (m *machine) open(t *testing.T, d *sql.DB) {
	t.Helper()
	var err error
	m.s, err = converge.Open(t.Context(), converge.Config{
		DB: d, Boot: m.boot, AtOnce: func() int { return 2 }, Now: func() time.Time { m.mu.Lock(); defer m.mu.Unlock(); return time.Now().Add(m.clock) }, Log: zerolog.Nop(),
		Projects: func(context.Context) ([]project.Name, error) { return m.names, nil },
		Plan: func(context.Context, project.Name) (converge.Plan, error) {
			return converge.Plan{Policy: m.policy}, nil
		},
		Notify: func(_ context.Context, _ db.Execer, n project.Notification) error {
			m.told = append(m.told, n.Event)
			return nil
		},
		Start: func(_ context.Context, dep project.Deployment) (project.ID, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.busy {
				return "", fault.New(fault.Busy, "converge", "busy")
			}
			m.begun, m.why = append(m.begun, time.Since(m.zero)), append(m.why, dep.Converge.Occasion)
			m.now++
			m.most = max(m.most, m.now)
			dep.ID = project.NewID()
			res := m.result
			go func() {
				time.Sleep(time.Minute)
				m.mu.Lock()
				m.now--
				res.Ended = time.Now().Add(m.clock)
				m.mu.Unlock()
				if m.s.Ended(context.Background(), project.Record{Deployment: dep, State: res.State, Result: &res}) {
					m.mu.Lock()
					m.kept++
					m.mu.Unlock()
				}
			}()
			return dep.ID, nil
		},
	})
	require.NoError(t, err)
	m.s.Start()
}

func database(t *testing.T) *sql.DB {
	t.Helper()
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "db"))
	require.NoError(t, err)
	return d
}

func many(n int) (names []project.Name) {
	for i := range n {
		names = append(names, project.Name(fmt.Sprintf("p%d", i)))
	}
	return names
}

func newMachine(n int, p project.ConvergePolicy) *machine {
	return &machine{names: many(n), policy: p, boot: "one", zero: time.Now(), result: project.Result{State: project.Done}}
}

// pass lets time pass, and then all that it began come to rest: what the others wrote can be read.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// After a start of the machine each project runs once, spread and never more than two at once; a restart of the server runs none.
func TestBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := database(t)
		defer d.Close()
		m := newMachine(100, project.ConvergePolicy{Boot: true, Splay: 10 * time.Hour, Mode: project.ConvergeEnforce})
		m.open(t, d)
		pass(11 * time.Hour)
		require.Len(t, m.begun, 100)
		require.LessOrEqual(t, m.most, 2)
		require.Greater(t, m.begun[99]-m.begun[0], 8*time.Hour, "spread")
		m.s.Stop()
		m.open(t, d)
		pass(11 * time.Hour)
		require.Len(t, m.begun, 100, "it was no start of the machine")
		m.s.Stop()
		m.boot = "two"
		m.open(t, d)
		pass(11 * time.Hour)
		require.Len(t, m.begun, 200)
		require.Equal(t, project.ConvergeBoot, m.why[199])
		m.s.Stop()
	})
}

// Intervals are those of the monotonic clock, however the wall clock is set, and a run that gave way is counted and not made up for.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := database(t)
		defer d.Close()
		m := newMachine(1, project.ConvergePolicy{Every: time.Hour, Mode: project.ConvergeEnforce})
		m.open(t, d)
		pass(30 * time.Minute)
		for _, jump := range []time.Duration{0, 1000 * time.Hour, -1000 * time.Hour} {
			m.mu.Lock()
			m.clock = jump
			n := len(m.begun)
			m.mu.Unlock()
			pass(5 * time.Hour)
			require.Len(t, m.begun, n+5, "the clock is %s off", jump)
		}
		m.s.Stop()
		m.mu.Lock()
		m.clock = -1000 * time.Hour
		n := len(m.begun)
		m.mu.Unlock()
		m.open(t, d)
		pass(70 * time.Minute)
		require.Len(t, m.begun, n+1, "at most an interval after a start")
		m.mu.Lock()
		m.busy = true
		m.mu.Unlock()
		pass(3 * time.Hour)
		require.EqualValues(t, 3, m.s.State("p0").Skipped)
		m.mu.Lock()
		m.busy, n = false, len(m.begun)
		m.mu.Unlock()
		pass(2 * time.Hour)
		require.Len(t, m.begun, n+2)
		m.s.Stop()
	})
}

// A change of state is told once, and only a run that says something new is kept.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := database(t)
		defer d.Close()
		m := newMachine(1, project.ConvergePolicy{Every: time.Hour, Mode: project.ConvergeReport})
		m.open(t, d)
		pass(30 * time.Minute)
		for i, x := range []struct {
			result project.Result
			told   []string
			kept   int
		}{
			{project.Result{State: project.Done}, nil, 0},
			{project.Result{State: project.Done, Changed: 2, Drift: []string{"a", "b"}}, []string{"drifted"}, 1},
			{project.Result{State: project.Done, Changed: 1, Drift: []string{"b"}}, []string{"drifted"}, 2},
			{project.Result{State: project.Failed, Reason: "no"}, []string{"drifted", "converge-failed"}, 3},
			{project.Result{State: project.Done}, []string{"drifted", "converge-failed", "converged"}, 4},
			// There is no live release, or the tree of a failed one is in place.
			{project.Result{State: project.Refused, Kind: fault.Refused.String(), Reason: "no code"}, []string{"drifted", "converge-failed", "converged"}, 4},
			{project.Result{State: project.Refused, Kind: fault.Refused.String(), Code: "c", Procedure: "converge", Reason: "undeployed"}, []string{"drifted", "converge-failed", "converged"}, 4},
			// What is live cannot be applied any more.
			{project.Result{State: project.Refused, Kind: fault.Refused.String(), Code: "c", Reason: "no salt-call"}, []string{"drifted", "converge-failed", "converged", "converge-failed"}, 5},
		} {
			m.mu.Lock()
			m.result = x.result
			m.mu.Unlock()
			pass(3 * time.Hour) // the same, again and again
			require.Equal(t, x.told, m.told, i)
			require.Equal(t, x.kept, m.kept, i)
		}
		m.s.Stop()
		require.NoError(t, m.s.Forget(t.Context(), "p0"))
		require.Nil(t, m.s.State("p0"))
	})
}
