package watch_test

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

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/kv"
	"corpus-git/kv/watch"
	"corpus-git/project"
)

// machine is a server with one project, whose runs take half a second and read the keys when they begin.
type machine struct {
	t    *testing.T
	keys *kv.Store
	w    *watch.Watcher

	mu    sync.Mutex
	busy  int // so many runs are interrupted
	away  int // so many runs are refused because a node is not ready
	nodes []string
	now   int
	most  int
	began []time.Duration
	read  []string // the value of shared/a in each run
	trig  []project.Trigger
	zero  time.Time
}

func (m *machine) open(d *sql.DB) {
	m.t.Helper()
	var err error
	m.keys, err = kv.Open(m.t.Context(), d, time.Now)
	require.NoError(m.t, err)
	m.w, err = watch.Open(m.t.Context(), watch.Config{
		DB: d, Keys: m.keys, Log: zerolog.Nop(),
		Projects: func(context.Context) ([]project.Name, error) { return []project.Name{"app", "other"}, nil },
		Plan: func(_ context.Context, name project.Name) (watch.Plan, error) {
			if name != "app" {
				return watch.Plan{}, fault.New(fault.Refused, "", "nothing is live")
			}
			return watch.Plan{Watches: project.Watches{Patterns: []string{"shared/*", "services/db/*", "nodes/*", "*/size"}, Debounce: 2 * time.Second}, Project: "app", Nodes: m.nodes}, nil
		},
		Start: func(ctx context.Context, dep project.Deployment) (project.ID, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.busy > 0 {
				m.busy--
				return "", fault.New(fault.Busy, "", "a deployment")
			}
			m.now++
			m.most = max(m.most, m.now)
			m.began, m.trig = append(m.began, time.Since(m.zero)), append(m.trig, dep.Trigger)
			e, _, err := m.keys.Get(ctx, "shared/a")
			m.read = append(m.read, e.Value)
			return project.NewID(), err
		},
		Wait: func(ctx context.Context, _ project.ID) (project.Result, error) {
			defer func() { m.mu.Lock(); m.now--; m.mu.Unlock() }()
			select {
			case <-time.After(500 * time.Millisecond):
				m.mu.Lock()
				defer m.mu.Unlock()
				if m.away > 0 {
					m.away--
					return project.Result{State: project.Refused, Kind: fault.Busy.String(), Reason: "1 of 1 nodes are not ready"}, nil
				}
				return project.Result{State: project.Live}, nil
			case <-ctx.Done():
				return project.Result{}, context.Cause(ctx)
			}
		},
	})
	require.NoError(m.t, err)
	m.w.Start()
}

func (m *machine) set(key, value string, lease time.Duration) {
	m.t.Helper()
	_, err := m.keys.Set(m.t.Context(), kv.Put{Key: key, Value: value, Lease: lease})
	require.NoError(m.t, err)
}

func (m *machine) runs() int { m.mu.Lock(); defer m.mu.Unlock(); return len(m.began) }

func begin(t *testing.T) (*machine, *sql.DB) {
	t.Helper()
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	m := &machine{t: t, zero: time.Now()}
	m.open(d)
	return m, d
}

func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, m *machine, d *sql.DB)
		runs int
		last string
	}{
		"a change": {func(_ *testing.T, m *machine, _ *sql.DB) { m.set("shared/a", "1", 0) }, 1, "1"},
		"what nobody watches": {func(_ *testing.T, m *machine, _ *sql.DB) {
			m.set("projects/app/a", "1", 0)
			m.set("services/web/n1", "{}", 0)
		}, 0, ""},
		"the same value": {func(_ *testing.T, m *machine, _ *sql.DB) {
			m.set("shared/a", "1", 0)
			time.Sleep(time.Minute)
			m.set("shared/a", "1", 0)
		}, 1, "1"},
		"a thousand in a second": {func(_ *testing.T, m *machine, _ *sql.DB) {
			for i := range 1000 {
				m.set("shared/a", fmt.Sprint(i), 0)
				time.Sleep(time.Millisecond)
			}
		}, 1, "999"},
		"a thousand in a second, while a run runs": {func(_ *testing.T, m *machine, _ *sql.DB) {
			m.set("shared/a", "x", 0)
			time.Sleep(2200 * time.Millisecond)
			for i := range 1000 {
				m.set("shared/a", fmt.Sprint(i), 0)
				time.Sleep(time.Millisecond)
			}
		}, 2, "999"},
		"changes without end": {func(_ *testing.T, m *machine, _ *sql.DB) {
			for i := range 50 {
				m.set("shared/a", fmt.Sprint(i), 0)
				time.Sleep(time.Second)
			}
		}, 3, "49"},
		"a lease that ends": {func(_ *testing.T, m *machine, _ *sql.DB) {
			m.set("services/db/n1", "{}", 30*time.Second)
			time.Sleep(20 * time.Second)
		}, 2, ""},
		"a deployment runs": {func(_ *testing.T, m *machine, _ *sql.DB) {
			m.mu.Lock()
			m.busy = 10
			m.mu.Unlock()
			m.set("shared/a", "1", 0)
		}, 1, "1"},
		"a node is away for a minute": {func(_ *testing.T, m *machine, _ *sql.DB) {
			m.mu.Lock()
			m.away = 2
			m.mu.Unlock()
			m.set("shared/a", "1", 0)
			time.Sleep(time.Minute)
			m.set("shared/a", "2", 0) // does not wait for the next attempt
			time.Sleep(10 * time.Minute)
		}, 3, "2"},
		"a node is away, and a deployment comes first": {func(_ *testing.T, m *machine, _ *sql.DB) {
			m.mu.Lock()
			m.away = 2
			m.mu.Unlock()
			m.set("shared/a", "1", 0)
			time.Sleep(40 * time.Second)
			m.w.Live("app", time.Now())
			time.Sleep(10 * time.Minute)
		}, 2, "1"},
		"a node is away over a restart": {func(_ *testing.T, m *machine, d *sql.DB) {
			m.mu.Lock()
			m.away = 1
			m.mu.Unlock()
			m.set("shared/a", "1", 0)
			time.Sleep(10 * time.Second)
			m.w.Stop()
			m.open(d)
		}, 2, "1"},
		"a deployment that began later": {func(_ *testing.T, m *machine, _ *sql.DB) {
			m.set("shared/a", "1", 0)
			time.Sleep(time.Second)
			m.w.Live("app", time.Now())
		}, 0, ""},
		"a deployment that began before": {func(_ *testing.T, m *machine, _ *sql.DB) {
			at := time.Now()
			time.Sleep(time.Second)
			m.set("shared/a", "1", 0)
			time.Sleep(100 * time.Millisecond)
			m.w.Live("app", at)
		}, 1, "1"},
		"a deployment that began before, and is told of while a run with the change runs": {func(_ *testing.T, m *machine, _ *sql.DB) {
			at := time.Now()
			time.Sleep(time.Second)
			m.set("shared/a", "1", 0)
			time.Sleep(2200 * time.Millisecond)
			m.w.Live("app", at)
		}, 1, "1"},
		"a restart before it is due": {func(_ *testing.T, m *machine, d *sql.DB) {
			m.set("shared/a", "1", 0)
			time.Sleep(time.Second)
			m.w.Stop()
			m.open(d)
		}, 1, "1"},
		"a restart in a run": {func(_ *testing.T, m *machine, d *sql.DB) {
			m.set("shared/a", "1", 0)
			time.Sleep(2200 * time.Millisecond)
			m.w.Stop()
			m.open(d)
		}, 2, "1"},
		"a change while nobody looks": {func(_ *testing.T, m *machine, d *sql.DB) {
			m.set("shared/a", "1", 0)
			time.Sleep(time.Minute)
			m.w.Stop()
			m.set("shared/a", "2", 0)
			m.open(d)
		}, 2, "2"},
		"a deletion while nobody looks": {func(t *testing.T, m *machine, d *sql.DB) {
			m.set("shared/a", "1", 0)
			time.Sleep(time.Minute)
			m.w.Stop()
			require.NoError(t, m.keys.Delete(t.Context(), "shared/a", nil))
			m.open(d)
		}, 2, ""},
		"a restart without a change": {func(_ *testing.T, m *machine, d *sql.DB) {
			m.set("shared/a", "1", 0)
			time.Sleep(time.Minute)
			m.w.Stop()
			m.open(d)
		}, 1, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, d := begin(t)
				time.Sleep(time.Second)
				c.do(t, m, d)
				time.Sleep(time.Minute)
				m.w.Stop()
				require.Equal(t, c.runs, m.runs())
				require.LessOrEqual(t, m.most, 1)
				if c.runs > 0 {
					require.Equal(t, c.last, m.read[c.runs-1])
				}
			})
		})
	}
}

// A project on nodes is deployed there again; others converge.
func TestTrigger(t *testing.T) {
	for node, want := range map[string]project.Trigger{"web1": project.TriggerRedeploy, "": project.TriggerConverge} {
		synctest.Test(t, func(t *testing.T) {
			m, _ := begin(t)
			if node != "" {
				m.nodes = []string{node}
			}
			m.set("shared/a", "1", 0)
			time.Sleep(time.Minute)
			m.w.Stop()
			require.Equal(t, []project.Trigger{want}, m.trig)
			require.Less(t, m.began[0], 2100*time.Millisecond)
		})
	}
}

// Of the facts of nodes, those of the project's own are watched.
func TestFacts(t *testing.T) {
	for node, want := range map[string]int{"web1": 1, "web2": 0} {
		synctest.Test(t, func(t *testing.T) {
			m, _ := begin(t)
			m.nodes = []string{"web1"}
			m.set("nodes/"+node+"/facts/os", "Debian", 0)
			time.Sleep(time.Minute)
			m.w.Stop()
			require.Len(t, m.trig, want, node)
		})
	}
}

// Keys of another project are not watched, whatever the pattern is: its steps cannot read them.
func TestKeysOfOthers(t *testing.T) {
	for key, want := range map[string]int{"projects/app/size": 1, "projects/other/size": 0} {
		synctest.Test(t, func(t *testing.T) {
			m, _ := begin(t)
			m.set(key, "3", 0)
			time.Sleep(time.Minute)
			m.w.Stop()
			require.Len(t, m.trig, want, key)
		})
	}
}
