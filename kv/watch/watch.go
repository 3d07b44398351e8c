// Package watch applies the live release of a project again when a key that the project watches changes.
//
// It owns when that is due, and up to which revision each project has been applied. It never applies anything, and reads no value: a run reads the keys as they are when it runs.
//
// Invariants: a project has at most one run at a time, and at most one queued after it, however many keys change. A change is settled by a run that began after it, and not before that
// run has ended; a run that was interrupted for a deployment is started again.
//
// A crash leaves projects whose last run is not recorded: they are applied again.
package watch

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/sleep"
	"corpus-git/kv"
	"corpus-git/project"
)

// Plan is what a project watches, and how it is applied again.
type Plan struct {
	project.Watches
	// Project is the project, and Nodes are those that it runs on, and is deployed to again; none if it runs on this machine. Facts of other nodes and keys of other projects are not watched.
	Project project.Name
	Nodes   []string
}

// watches reports whether a key is one that the project watches.
func (p Plan) watches(key string) bool {
	if node, _, ok := strings.Cut(strings.TrimPrefix(key, kv.Nodes), "/"); ok && strings.HasPrefix(key, kv.Nodes) && !slices.Contains(p.Nodes, node) {
		return false
	}
	if of := kv.Owner(key); of != "" && of != p.Project {
		return false
	}
	return slices.ContainsFunc(p.Patterns, func(pattern string) bool { return kv.Match(pattern, key) })
}

// Config is what a Watcher works with. All fields are required.
type Config struct {
	DB   *sql.DB
	Keys *kv.Store
	// Projects returns all projects.
	Projects func(ctx context.Context) ([]project.Name, error)
	// Plan returns the plan of the live release; one without patterns watches nothing.
	Plan func(ctx context.Context, name project.Name) (Plan, error)
	// Start begins a run, Wait returns its result. fault.Busy, of both, reports that something else took precedence; a refused run with it, that what the run needs is not available,
	// such as a node.
	Start func(ctx context.Context, d project.Deployment) (project.ID, error)
	Wait  func(ctx context.Context, id project.ID) (project.Result, error)
	Log   zerolog.Logger
}

const (
	// longest is how many times the debounce a change waits at most, if others follow it.
	longest = 10
	// retry is the delay before an interrupted run is tried again, and before a configuration that could not be read is read again.
	retry, retryPlan = time.Second, time.Minute
	idle             = time.Hour
	// afterRefused is the delay after a run that was refused because something that it needs was not available; it doubles up to longestDelay.
	afterRefused, longestDelay = 30 * time.Second, 15 * time.Minute
)

// errNotReady means that a run was refused, and may succeed later.
type errNotReady struct{ reason string }

func (e errNotReady) Error() string { return e.reason }

// Watcher starts the runs that are due. All methods are safe for concurrent use.
type Watcher struct {
	cfg Config

	mu   sync.Mutex
	all  map[project.Name]*entry
	read int64 // the revision up to which changes were examined
	// begun: there are keys, and so the projects are known.
	begun bool
	wake  chan struct{}
	life  context.Context //nolint:containedctx // the life of the goroutines, from Start to Stop
	stop  context.CancelFunc
	works sync.WaitGroup
}

// entry is a project that watches.
type entry struct {
	plan Plan
	// seen is the revision that the project has been applied with, or is being applied with now.
	seen int64
	// newest is the revision of the last change of a key that it watches.
	newest int64
	// first and last are when it changed after seen, zero if it did not.
	first, last time.Time
	running     bool
	// again is when a run that was refused is tried again, zero if none was; needs is the revision that it would have applied, and delay how long it was put off.
	again time.Time
	needs int64
	delay time.Duration
}

// refused puts off a run that was refused, and returns for how long.
func (e *entry) refused(at int64, now time.Time) time.Duration {
	e.delay = min(max(2*e.delay, afterRefused), longestDelay)
	e.again, e.needs = now.Add(e.delay), at
	return e.delay
}

// settled forgets a run that was refused.
func (e *entry) settled() { e.again, e.needs, e.delay = time.Time{}, 0, 0 }

// changed records what has changed.
func (e *entry) changed(list []kv.Entry, now time.Time) {
	newest := e.newest
	for _, k := range list {
		if k.Revision > newest && e.plan.watches(k.Key) {
			newest = k.Revision
		}
	}
	if newest > e.newest && newest > e.seen {
		if e.last = now; e.first.IsZero() {
			e.first = now
		}
	}
	e.newest = newest
}

// applied records that the project is applied with a revision: no change up to it is due any more.
func (e *entry) applied(revision int64) {
	if e.seen = max(e.seen, revision); e.newest <= e.seen {
		e.first, e.last = time.Time{}, time.Time{}
	}
}

// due returns when the project is to be applied, zero if nothing has changed.
func (e *entry) due() time.Time {
	if e.first.IsZero() {
		return e.again
	}
	at, latest := e.last.Add(e.plan.Debounce), e.first.Add(longest*e.plan.Debounce)
	if latest.Before(at) {
		return latest
	}
	return at
}

// Open prepares the table. Nothing runs before Start.
func Open(ctx context.Context, cfg Config) (*Watcher, error) {
	return &Watcher{cfg: cfg, all: map[project.Name]*entry{}, wake: make(chan struct{}, 1)}, db.Migrate(ctx, cfg.DB, "kv/watch", []string{
		`CREATE TABLE kv_watch (project TEXT PRIMARY KEY, seen INTEGER NOT NULL) WITHOUT ROWID`,
	})
}

// Start starts watching. Call it once.
func (w *Watcher) Start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.life, w.stop = context.WithCancel(context.Background())
	life := w.life
	w.works.Go(func() { w.loop(life) })
}

// Stop stops watching, and returns when nothing of it is running. Runs that were started in the pipeline continue there.
func (w *Watcher) Stop() {
	w.mu.Lock()
	if w.stop == nil {
		w.mu.Unlock()
		return
	}
	w.stop()
	w.mu.Unlock()
	w.works.Wait()
}

// Live reports that the live release of a project was replaced or removed by a deployment that began at a time: it was applied with the keys of that time.
func (w *Watcher) Live(name project.Name, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life == nil || w.life.Err() != nil || !w.begun {
		return // without a key there is nothing to watch
	}
	life := w.life
	w.works.Go(func() { w.plan(life, name, began) })
}

// Forget removes what is recorded of a project.
func (w *Watcher) Forget(ctx context.Context, name project.Name) error {
	w.mu.Lock()
	delete(w.all, name)
	w.mu.Unlock()
	_, err := w.cfg.DB.ExecContext(ctx, `DELETE FROM kv_watch WHERE project = ?`, name)
	return err
}

// plan reads what a project watches, and whether any of it has changed since it was applied.
func (w *Watcher) plan(ctx context.Context, name project.Name, began time.Time) {
	p, err := w.cfg.Plan(ctx, name)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && fault.KindOf(err) != fault.Refused:
		w.cfg.Log.Warn().Err(err).Str("project", name.String()).Msg("watch: read the configuration of what is live")
		if sleep.For(ctx, retryPlan) == nil {
			w.plan(ctx, name, began)
		}
		return
	case err != nil || len(p.Patterns) == 0:
		w.mu.Lock()
		delete(w.all, name)
		w.mu.Unlock()
		return
	}
	seen, list, err := w.since(ctx, name, began)
	if err != nil {
		w.cfg.Log.Error().Err(err).Str("project", name.String()).Msg("watch: read what has changed")
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.all[name]
	if e == nil {
		e = &entry{}
		w.all[name] = e
	}
	e.plan = p
	e.applied(seen)
	if seen >= e.needs {
		e.settled()
	}
	e.changed(list, time.Now())
	w.wakeUp()
}

// since returns the revision that a project has been applied with, and what has changed after it.
func (w *Watcher) since(ctx context.Context, name project.Name, began time.Time) (seen int64, list []kv.Entry, err error) {
	err = w.cfg.DB.QueryRowContext(ctx, `SELECT seen FROM kv_watch WHERE project = ?`, name).Scan(&seen)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, nil, err
	}
	if !began.IsZero() {
		at, err := w.cfg.Keys.RevisionAt(ctx, began)
		if err != nil {
			return 0, nil, err
		}
		if seen = max(seen, at); seen > 0 {
			if err := w.save(ctx, name, seen); err != nil {
				return 0, nil, err
			}
		}
	}
	list, _, err = w.cfg.Keys.Since(ctx, seen)
	return seen, list, err
}

func (w *Watcher) save(ctx context.Context, name project.Name, seen int64) error {
	_, err := w.cfg.DB.ExecContext(ctx, `INSERT INTO kv_watch (project, seen) VALUES (?, ?) ON CONFLICT (project) DO UPDATE SET seen = max(seen, excluded.seen)`, name, seen)
	return err
}

func (w *Watcher) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// loop reads changes, deletes keys that expire, and starts runs that are due.
func (w *Watcher) loop(ctx context.Context) {
	for ctx.Err() == nil {
		changed := w.cfg.Keys.Changed()
		next := w.startDue(ctx)
		expires, err := w.cfg.Keys.Expire(ctx)
		if err != nil && ctx.Err() == nil {
			w.cfg.Log.Error().Err(err).Msg("watch: delete keys whose lease has ended")
			expires = time.Now().Add(retryPlan)
		}
		if !expires.IsZero() && expires.Before(next) {
			next = expires
		}
		t := time.NewTimer(max(time.Until(next), time.Millisecond))
		select {
		case <-changed:
		case <-w.wake:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// startDue reads the changes, starts what is due, and returns when the next is due.
func (w *Watcher) startDue(ctx context.Context) (next time.Time) {
	next = time.Now().Add(idle)
	list, newest, err := w.cfg.Keys.Since(ctx, w.read)
	if err != nil {
		if ctx.Err() == nil {
			w.cfg.Log.Error().Err(err).Msg("watch: read what has changed")
		}
		return time.Now().Add(retry)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if newest > 0 && !w.begun {
		w.begun = true
		w.works.Go(func() { w.reload(ctx) })
	}
	now := time.Now()
	w.read = newest
	for name, e := range w.all {
		e.changed(list, now)
		due := e.due()
		switch {
		case due.IsZero() || e.running:
		case due.After(now):
			if due.Before(next) {
				next = due
			}
		default:
			e.running, e.first, e.last, e.again = true, time.Time{}, time.Time{}, time.Time{}
			w.works.Go(func() { w.run(ctx, name, e) })
		}
	}
	return next
}

// reload reads what all projects watch.
func (w *Watcher) reload(ctx context.Context) {
	names, err := w.cfg.Projects(ctx)
	if err != nil {
		w.cfg.Log.Error().Err(err).Msg("watch: list the projects")
		return
	}
	for _, name := range names {
		w.plan(ctx, name, time.Time{})
	}
}

// run applies a project with what has changed until then.
func (w *Watcher) run(ctx context.Context, name project.Name, e *entry) {
	defer func() {
		w.mu.Lock()
		e.running = false
		w.mu.Unlock()
		w.wakeUp()
	}()
	w.mu.Lock()
	plan := e.plan
	w.mu.Unlock()
	for {
		at, err := w.cfg.Keys.Revision(ctx)
		if err == nil {
			w.mu.Lock()
			e.applied(at) // in memory only: after a crash it is applied again
			w.mu.Unlock()
			err = w.once(ctx, name, plan)
		}
		if ctx.Err() != nil {
			return
		}
		if later := (errNotReady{}); errors.As(err, &later) { // not saved: after a restart it is applied again, too
			w.mu.Lock()
			delay := e.refused(at, time.Now())
			w.mu.Unlock()
			w.cfg.Log.Warn().Str("project", name.String()).Stringer("again_after", delay).Msg("watch: apply the live release again: " + later.reason)
			return
		}
		if fault.KindOf(err) == fault.Busy {
			if sleep.For(ctx, retry) != nil {
				return
			}
			continue
		}
		if err != nil { // its record reports it; another run would fail the same way
			w.cfg.Log.Error().Err(err).Str("project", name.String()).Msg("watch: apply the live release again")
		}
		w.mu.Lock()
		e.settled()
		w.mu.Unlock()
		if err := w.save(ctx, name, at); err != nil && ctx.Err() == nil {
			w.cfg.Log.Error().Err(err).Str("project", name.String()).Msg("watch: note what was applied")
		}
		return
	}
}

func (w *Watcher) once(ctx context.Context, name project.Name, plan Plan) error {
	d := project.Deployment{Project: name, Pusher: project.Pusher{Key: "watch", From: "local"}}
	if len(plan.Nodes) > 0 {
		d.Trigger = project.TriggerRedeploy
	} else {
		d.Trigger, d.Converge = project.TriggerConverge, project.ConvergeRun{Mode: project.ConvergeEnforce, Occasion: project.ConvergeWatch}
	}
	id, err := w.cfg.Start(ctx, d)
	if err != nil {
		return err
	}
	res, err := w.cfg.Wait(ctx, id)
	switch {
	case err != nil:
		return err
	case res.Kind == fault.Busy.String() && res.State == project.Refused:
		return errNotReady{res.Reason}
	case res.Kind == fault.Busy.String():
		return fault.New(fault.Busy, "", "%s", res.Reason)
	case !res.Good():
		return fault.New(fault.Failed, "", "%s", res.Reason)
	}
	return nil
}
