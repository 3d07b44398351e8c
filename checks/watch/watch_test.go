package watch_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/checks"
	"corpus-git/checks/watch"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// machine is what a Watcher watches: projects whose check returns what good holds.
type machine struct {
	mu    sync.Mutex
	live  map[project.Name][]project.Check
	good  bool
	runs  map[project.Name][]time.Time
	told  []string
	at    int // how many runs there are now
	most  int
	clock time.Duration // the error of the wall clock
	// during, if it is not nil, is passed to runs, and busy prevents them.
	during context.Context
	busy   bool
	hang   bool
}

func newMachine(checks ...project.Check) *machine {
	return &machine{live: map[project.Name][]project.Check{"app": checks}, good: true, runs: map[project.Name][]time.Time{}}
}

func every(d time.Duration) project.Check {
	return project.Check{Name: "home", Kind: project.CheckTCP, Attempts: 1, Interval: d, StartAfter: time.Hour, AlsoAfter: time.Hour}
}

func (m *machine) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// ran are the times at which checks of a project ran.
func (m *machine) ran(name project.Name) []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.runs[name])
}

// all are those of all projects.
func (m *machine) all() map[project.Name][]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.runs)
}

// highest is how many ran at once.
func (m *machine) highest() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

// heard are the notifications so far.
func (m *machine) heard() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told)
}

func (m *machine) Live(_ context.Context, name project.Name) (watch.Release, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, ok := m.live[name]
	if !ok {
		return watch.Release{}, fault.New(fault.Refused, "", "no project %s", name)
	}
	return watch.Release{
		Code: "c0de", Checks: list,
		Run: func(ctx context.Context, list []project.Check) ([]checks.Result, error) {
			m.mu.Lock()
			m.runs[name] = append(m.runs[name], time.Now())
			m.at++
			m.most = max(m.most, m.at)
			hang, good := m.hang, m.good
			m.mu.Unlock()
			if hang {
				<-ctx.Done()
			}
			time.Sleep(time.Second)
			m.set(func() { m.at-- })
			var out []checks.Result
			for _, c := range list {
				r := checks.Result{Check: c, Good: good, Attempts: 1, Took: c.StartAfter + c.AlsoAfter}
				if !good {
					r.Reason, r.Answer = "connection refused", []string{"no"}
				}
				out = append(out, r)
			}
			return out, context.Cause(ctx)
		},
		Notify: func(_ context.Context, p project.CheckPeriod) error {
			m.set(func() { m.told = append(m.told, string(name)+" "+p.Event()+" "+p.Reason) })
			return nil
		},
	}, nil
}

func (m *machine) quiet(project.Name) (context.Context, func(), bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	during := m.during
	if during == nil {
		during = context.Background()
	}
	return during, func() {}, !m.busy
}

func (m *machine) open(t *testing.T, d *sql.DB) *watch.Watcher {
	t.Helper()
	w, err := watch.Open(t.Context(), watch.Config{
		DB: d, Live: m.Live, Quiet: m.quiet, Log: zerolog.Nop(),
		Projects: func(context.Context) (names []project.Name, _ error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for n := range m.live {
				names = append(names, n)
			}
			return names, nil
		},
		Now: func() time.Time {
			m.mu.Lock()
			defer m.mu.Unlock()
			return time.Now().Add(m.clock)
		},
	})
	require.NoError(t, err)
	return w
}

func database(t *testing.T) *sql.DB {
	t.Helper()
	d, err := db.Open(context.Background(), filepath.Join(t.TempDir(), "db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestChangesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m := database(t), newMachine(every(time.Minute))
		w := m.open(t, d)
		require.NoError(t, w.Start(t.Context())) // the examination of all projects finds it
		time.Sleep(5*time.Minute + time.Second)
		require.Empty(t, m.heard(), "that it works is no news")
		s := w.States("app")
		require.Len(t, s, 1)
		require.True(t, s[0].Now.Good)
		require.InDelta(t, 5, s[0].Now.Runs, 1)
		require.Zero(t, s[0].Now.Took, "nothing was started just now: start_after and also_after are not waited for")

		m.set(func() { m.good = false })
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"app check-failed connection refused"}, m.heard())
		require.True(t, w.States("app")[0].Failing())

		// A restart in between notifies nothing again, and continues counting.
		runs := w.States("app")[0].Now.Runs
		w.Stop()
		w = m.open(t, d)
		require.NoError(t, w.Start(t.Context()))
		time.Sleep(3 * time.Minute)
		require.Len(t, m.heard(), 1)
		require.Greater(t, w.States("app")[0].Now.Runs, runs)

		m.set(func() { m.good = true })
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"app check-failed connection refused", "app check-succeeded "}, m.heard())
		h, err := w.History(t.Context(), "app", 10)
		require.NoError(t, err)
		require.Len(t, h, 3)
		require.True(t, h[0].Good)
		require.False(t, h[1].Good)
		require.Equal(t, []string{"no"}, h[1].Answer)
		require.Equal(t, project.Commit("c0de"), h[1].Code)
		require.True(t, h[2].Good)
		w.Stop()
	})
}

func TestAnUntoldChangeIsToldAtTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m := database(t), newMachine(every(time.Minute))
		m.good = false
		w := m.open(t, d)
		require.NoError(t, w.Start(t.Context()))
		time.Sleep(2 * time.Minute)
		w.Stop()
		require.Len(t, m.heard(), 1)
		_, err := d.ExecContext(t.Context(), `UPDATE check_periods SET notified = 0`) // as left by a crash right after the change
		require.NoError(t, err)
		w = m.open(t, d)
		require.NoError(t, w.Start(t.Context()))
		time.Sleep(2 * time.Minute)
		w.Stop()
		require.Len(t, m.heard(), 2)
	})
}

func TestManyProjectsDoNotBeginTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m := database(t), newMachine()
		w := m.open(t, d)
		for i := range 200 {
			name := project.Name(fmt.Sprintf("p%d", i))
			m.live[name] = []project.Check{every(time.Hour)}
			w.Live(name, m.live[name])
		}
		begun := time.Now()
		require.NoError(t, w.Start(t.Context()))
		time.Sleep(2 * time.Minute)
		w.Stop()
		runs := m.all()
		require.Len(t, runs, 200)
		require.LessOrEqual(t, m.highest(), 8)
		half := 0
		for _, r := range runs {
			require.Len(t, r, 1)
			if r[0].Sub(begun) < 30*time.Second {
				half++
			}
		}
		require.InDelta(t, 100, half, 40, "they are spread over the first minute")
	})
}

func TestAClockThatIsSetChangesNothing(t *testing.T) {
	for _, by := range []time.Duration{-1000 * time.Hour, 1000 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, m := database(t), newMachine(every(10*time.Minute))
				w := m.open(t, d)
				require.NoError(t, w.Start(t.Context()))
				time.Sleep(35 * time.Minute)
				n := len(m.ran("app"))
				m.set(func() { m.clock = by })
				time.Sleep(30 * time.Minute)
				require.Len(t, m.ran("app"), n+3)
				w.Stop()

				// Nor does it after a restart: it is due within an interval.
				w = m.open(t, d)
				require.NoError(t, w.Start(t.Context()))
				m.set(func() { m.clock = 0 })
				time.Sleep(11 * time.Minute)
				require.GreaterOrEqual(t, len(m.ran("app")), n+4)
				require.LessOrEqual(t, len(m.ran("app")), n+5)
				w.Stop()
			})
		})
	}
}

func TestARestartKeepsLongIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m := database(t), newMachine(every(24*time.Hour))
		for range 48 { // a server that never runs for a whole day
			w := m.open(t, d)
			require.NoError(t, w.Start(t.Context()))
			time.Sleep(time.Hour)
			w.Stop()
		}
		require.Len(t, m.ran("app"), 2)
	})
}

func TestADeploymentGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m := database(t), newMachine(every(time.Minute))
		w := m.open(t, d)
		require.NoError(t, w.Start(t.Context()))
		time.Sleep(90 * time.Second)
		n := len(m.ran("app"))
		during, deploy := context.WithCancelCause(t.Context())
		m.set(func() { m.during, m.hang, m.good = during, true, false })
		time.Sleep(time.Minute)
		require.Len(t, m.ran("app"), n+1)
		deploy(fault.New(fault.Busy, "", "a deployment begins"))
		m.set(func() { m.busy, m.hang, m.during, m.good = true, false, nil, true })
		time.Sleep(10 * time.Minute)
		require.Len(t, m.ran("app"), n+1, "none runs while a deployment does")
		require.Empty(t, m.heard(), "what a deployment cut off is no answer")
		m.set(func() { m.busy = false })
		time.Sleep(5 * time.Second)
		require.Len(t, m.ran("app"), n+2)
		w.Stop()
	})
}

func TestAnotherReleaseAndAProjectThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m := database(t), newMachine(every(time.Minute))
		w := m.open(t, d)
		require.NoError(t, w.Start(t.Context()))
		time.Sleep(3 * time.Minute)
		n := len(m.ran("app"))
		m.set(func() { m.live["app"] = nil })
		w.Live("app", nil)
		time.Sleep(3 * time.Minute)
		require.Len(t, m.ran("app"), n)
		require.Empty(t, w.States("app"))
		m.set(func() { m.live["app"] = []project.Check{every(time.Minute)} })
		w.Live("app", m.live["app"])
		time.Sleep(3 * time.Minute)
		require.Greater(t, len(m.ran("app")), n)
		h, err := w.History(t.Context(), "app", 10)
		require.NoError(t, err)
		require.Len(t, h, 1)

		require.NoError(t, w.Forget(t.Context(), "app"))
		n = len(m.ran("app"))
		time.Sleep(3 * time.Minute)
		require.Len(t, m.ran("app"), n)
		h, err = w.History(t.Context(), "app", 10)
		require.NoError(t, err)
		require.Empty(t, h)
		w.Stop()
	})
}

func TestTheHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m := database(t), newMachine(every(time.Second))
		w := m.open(t, d)
		require.NoError(t, w.Start(t.Context()))
		for range 150 {
			m.set(func() { m.good = !m.good })
			time.Sleep(4 * time.Second)
		}
		w.Stop()
		h, err := w.History(t.Context(), "app", 1000)
		require.NoError(t, err)
		require.Len(t, h, 100)
	})
}
