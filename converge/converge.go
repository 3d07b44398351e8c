package converge

import (
	"context"
	"database/sql"
	"hash/fnv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/sleep"
	"corpus-git/project"
)

// Plan says when and how a project converges, and its environment for notifications.
type Plan struct {
	Policy      project.ConvergePolicy
	Environment string
}

// Config configures a Scheduler. All fields are required.
type Config struct {
	DB *sql.DB
	// Projects returns all projects.
	Projects func(ctx context.Context) ([]project.Name, error)
	// Plan returns the plan of the live release of a project; its policy is not On if there is none.
	Plan func(ctx context.Context, name project.Name) (Plan, error)
	// Start begins a run. fault.Busy reports that a deployment is running.
	Start func(ctx context.Context, d project.Deployment) (project.ID, error)
	// Notify adds to the outbox; the same ID is added once.
	Notify func(ctx context.Context, tx db.Execer, n project.Notification) error
	// Boot is that of BootOf.
	Boot string
	// AtOnce returns the number of projects that converge at the same time.
	AtOnce func() int
	// Now is the clock for times that are shown. Intervals do not depend on it.
	Now func() time.Time
	Log zerolog.Logger
}

const (
	// between is the pause between two projects while all of them are examined.
	between = 20 * time.Millisecond
	// retryBoot is the delay after which a run after a boot is due again if it yielded to a deployment; retryPlan that after which an
	// unreadable configuration is read again.
	retryBoot, retryPlan = time.Minute, 5 * time.Minute
)

// Scheduler runs what is due. All methods are safe for concurrent use.
type Scheduler struct {
	cfg Config

	mu      sync.Mutex
	rows    map[project.Name]row
	all     map[project.Name]*entry
	running map[project.Name]bool
	wake    chan struct{}
	stop    context.CancelFunc
	life    context.Context //nolint:containedctx // ends the goroutines at Stop
	works   sync.WaitGroup
}

// entry is a project that is scheduled.
type entry struct {
	plan     Plan
	due      time.Time
	occasion string
}

// Open reads the records. Nothing runs before Start.
func Open(ctx context.Context, cfg Config) (*Scheduler, error) {
	if err := migrate(ctx, cfg.DB); err != nil {
		return nil, err
	}
	rows, err := loadRows(ctx, cfg.DB)
	if err != nil {
		return nil, err
	}
	return &Scheduler{cfg: cfg, rows: rows, all: map[project.Name]*entry{}, running: map[project.Name]bool{}, wake: make(chan struct{}, 1)}, nil
}

// Start starts examining all projects, and running what is due. Call it once.
func (s *Scheduler) Start() {
	s.mu.Lock()
	s.life, s.stop = context.WithCancel(context.Background())
	life := s.life
	s.mu.Unlock()
	s.works.Go(func() { s.loop(life) })
	s.Reload()
}

// Reload examines all projects again, in the background, after the server's configuration has changed.
func (s *Scheduler) Reload() {
	s.background(func(ctx context.Context) {
		names, err := s.cfg.Projects(ctx)
		if err != nil {
			s.cfg.Log.Error().Err(err).Msg("converge: list the projects")
			return
		}
		for _, name := range names {
			s.plan(ctx, name)
			_ = sleep.For(ctx, between)
		}
	})
}

// background runs f between Start and Stop.
func (s *Scheduler) background(f func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil || s.life.Err() != nil {
		return
	}
	life := s.life
	s.works.Go(func() { f(life) })
}

// Stop ends the schedule, and returns once nothing of it is running. Runs that were passed to the pipeline continue there.
func (s *Scheduler) Stop() {
	s.mu.Lock()
	if s.stop == nil {
		s.mu.Unlock()
		return
	}
	s.stop()
	s.mu.Unlock()
	s.works.Wait()
}

// Live reports that the live release of a project has changed. It has just been applied.
func (s *Scheduler) Live(name project.Name) {
	s.mu.Lock()
	r := s.rows[name]
	old := r.boot
	r.boot = s.cfg.Boot
	s.rows[name] = r
	s.mu.Unlock()
	if old != s.cfg.Boot {
		if err := s.save(context.Background(), name, r); err != nil {
			s.cfg.Log.Error().Err(err).Str("project", name.String()).Msg("converge: note what was applied")
		}
	}
	s.background(func(ctx context.Context) { s.plan(ctx, name) })
}

// Forget ends the schedule of a project and removes its records.
func (s *Scheduler) Forget(ctx context.Context, name project.Name) error {
	s.mu.Lock()
	delete(s.all, name)
	delete(s.rows, name)
	s.mu.Unlock()
	_, err := s.cfg.DB.ExecContext(ctx, `DELETE FROM converge WHERE project = ?`, name)
	return err
}

// State returns the state of a project, nil if it does not converge and never has.
func (s *Scheduler) State(name project.Name) *project.ConvergeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[name]
	out := r.state
	if e := s.all[name]; e != nil {
		out.ConvergePolicy = e.plan.Policy
	} else if out.State == "" {
		return nil
	}
	return &out
}

// plan reads when a project converges, and when the next run is due.
func (s *Scheduler) plan(ctx context.Context, name project.Name) {
	p, err := s.cfg.Plan(ctx, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.all[name]
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && (fault.KindOf(err) != fault.Refused || s.rows[name].state.State != ""): // one that has converged is known; it is due as it was
		s.cfg.Log.Warn().Err(err).Str("project", name.String()).Msg("converge: read the configuration of what is live")
		s.works.Go(func() {
			if sleep.For(ctx, retryPlan) == nil {
				s.plan(ctx, name)
			}
		})
		return
	case err != nil || !p.Policy.On():
		delete(s.all, name)
		return
	case old != nil && old.plan.Policy == p.Policy && old.occasion != project.ConvergeBoot:
		old.plan = p // due as it was
		return
	}
	e := &entry{plan: p}
	e.due, e.occasion = s.first(name, p.Policy)
	s.all[name] = e
	s.wakeUp()
}

// first returns when a project is due: spread over the splay if many would be due at once. That is at most an interval away, even if the
// clock was changed. Called with mu held.
func (s *Scheduler) first(name project.Name, p project.ConvergePolicy) (time.Time, string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name.String()))
	delay := time.Duration(0)
	if p.Splay > 0 {
		delay = time.Duration(h.Sum64() % uint64(p.Splay))
	}
	now, r := time.Now(), s.rows[name]
	switch {
	case p.Boot && !sameBoot(r.boot, s.cfg.Boot):
		return now.Add(delay), project.ConvergeBoot
	case p.Every == 0:
		return time.Time{}, ""
	case r.state.Last.IsZero():
		return now.Add(p.Every + delay), project.ConvergeSchedule
	}
	if wait := r.state.Last.Add(p.Every).Sub(s.cfg.Now()); wait > 0 {
		return now.Add(min(wait, p.Every)), project.ConvergeSchedule
	}
	return now.Add(delay), project.ConvergeSchedule
}

func (s *Scheduler) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// loop starts what is due.
func (s *Scheduler) loop(ctx context.Context) {
	for ctx.Err() == nil {
		name, run, wait := s.take()
		if name != "" {
			s.begin(ctx, name, run)
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.wake:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// idle is how long to sleep if nothing is due.
const idle = time.Hour

// take returns the project that is due first, or the time until one is.
func (s *Scheduler) take() (project.Name, project.ConvergeRun, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.running) >= s.cfg.AtOnce() {
		return "", project.ConvergeRun{}, idle // the end of a run wakes it
	}
	var name project.Name
	var first *entry
	for n, e := range s.all {
		if !s.running[n] && !e.due.IsZero() && (first == nil || e.due.Before(first.due) || e.due.Equal(first.due) && n < name) {
			name, first = n, e
		}
	}
	if first == nil {
		return "", project.ConvergeRun{}, idle
	}
	if wait := time.Until(first.due); wait > 0 {
		return "", project.ConvergeRun{}, min(wait, idle)
	}
	s.running[name] = true
	return name, project.ConvergeRun{Mode: first.plan.Policy.Mode, Occasion: first.occasion}, 0
}

// begin starts a run; Ended reports when it is over.
func (s *Scheduler) begin(ctx context.Context, name project.Name, run project.ConvergeRun) {
	_, err := s.cfg.Start(ctx, project.Deployment{Project: name, Trigger: project.TriggerConverge, Converge: run, Pusher: project.Pusher{Key: "converge", From: "local"}})
	if err == nil {
		return
	}
	if fault.KindOf(err) == fault.Busy {
		s.mu.Lock()
		r := s.rows[name]
		r.state.Skipped++
		s.rows[name] = r
		s.mu.Unlock()
		err = s.save(ctx, name, r)
	}
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Error().Err(err).Str("project", name.String()).Msg("converge")
	}
	s.over(name, false)
}

// over schedules a project again after a run; ran is false for one that yielded.
func (s *Scheduler) over(name project.Name, ran bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[name]
	delete(s.running, name)
	defer s.wakeUp()
	if e == nil {
		return
	}
	now := time.Now()
	if e.occasion == project.ConvergeBoot && !ran {
		e.due = now.Add(retryBoot)
		return
	}
	every := e.plan.Policy.Every
	if e.occasion = project.ConvergeSchedule; every == 0 {
		e.due = time.Time{}
		return
	}
	// Counted from when it was due, so that the duration of a run does not shift it. Missed runs are skipped.
	if e.due = e.due.Add(every); e.due.Before(now) {
		e.due = now.Add(every - now.Sub(e.due)%every)
	}
}

// Ended is pipeline.Config.Converged: it records the result of a run, notifies a change, and reports whether the run's record is kept.
func (s *Scheduler) Ended(ctx context.Context, rec project.Record) (keep bool) {
	s.mu.Lock()
	r := s.rows[rec.Project]
	var ran, news bool
	r.state, ran, news, keep = next(r.state, rec)
	if ran {
		r.boot = s.cfg.Boot
	}
	s.rows[rec.Project] = r
	environment := ""
	e := s.all[rec.Project]
	if e != nil {
		environment = e.plan.Environment
	}
	scheduled := s.running[rec.Project] && rec.Converge.Occasion != "" && rec.Converge.Occasion != project.ConvergeWatch
	s.mu.Unlock()
	var told []project.Notification
	if news {
		d, state := rec.Deployment, r.state
		told = append(told, project.Notification{ID: notificationID(rec.Project, state), Event: state.Event(), At: state.Since, Project: rec.Project, Environment: environment, Deployment: &d, Result: rec.Result, Converge: &state})
	}
	if err := s.save(ctx, rec.Project, r, told...); err != nil {
		s.cfg.Log.Error().Err(err).Str("project", rec.Project.String()).Msg("converge: write what was found")
	}
	if scheduled {
		s.over(rec.Project, ran)
	}
	return keep
}
