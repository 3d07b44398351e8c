package watch

import (
	"context"
	"database/sql"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/checks"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Release is the live release of a project, as far as its periodic checks are concerned.
type Release struct {
	Code project.Commit
	// Checks are those with an interval.
	Checks []project.Check
	// Run runs some of them once each; reasons and answers are redacted. The error is ctx's cause if that ended it.
	Run func(ctx context.Context, list []project.Check) ([]checks.Result, error)
	// Notify sends the notification that a period has begun.
	Notify func(ctx context.Context, p project.CheckPeriod) error
}

// Config is what a Watcher works with. All fields are required.
type Config struct {
	DB *sql.DB
	// Projects are all projects; they are examined once, at the first start of a version that has periodic checks.
	Projects func(ctx context.Context) ([]project.Name, error)
	// Live returns the live release of a project. fault.Refused reports that there is no such project.
	Live func(ctx context.Context, name project.Name) (Release, error)
	// Quiet reports whether no deployment of a project is running. If so, a deployment that starts before end is called cancels during, and waits
	// for end, which may be called more than once.
	Quiet func(name project.Name) (during context.Context, end func(), ok bool)
	// Now is the clock for times that are shown. Intervals do not depend on it.
	Now func() time.Time
	Log zerolog.Logger
}

const (
	// atOnce is how many projects have checks running at the same time.
	atOnce = 8
	// flushEvery is how often counts are written.
	flushEvery = time.Minute
	// retryBusy is the delay before a project is tried again in which a deployment runs; retryLoad before one whose configuration can't be
	// read.
	retryBusy, retryLoad = time.Second, time.Minute
	// splay is the time over which the first runs of all projects are spread, at most an interval.
	splay = time.Minute
	// between is the pause between two projects while all of them are examined.
	between = 50 * time.Millisecond
)

// Watcher runs periodic checks. All methods are safe for concurrent use.
type Watcher struct {
	cfg   Config
	slots chan struct{}

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // ends the goroutines at Stop
	stop    context.CancelFunc
	all     map[project.Name]*target
	running sync.WaitGroup
}

// target is one project while its checks are watched.
type target struct {
	stop context.CancelFunc
	// changed receives one value when the live release changes.
	changed chan struct{}
	// done is closed when none of its goroutines runs any more.
	done chan struct{}
	// mu guards the following fields.
	mu     sync.Mutex
	states []project.CheckState
	now    map[string]*period
}

// Open prepares the tables. Nothing runs before Start.
func Open(ctx context.Context, cfg Config) (*Watcher, error) {
	if err := migrate(ctx, cfg.DB); err != nil {
		return nil, err
	}
	return &Watcher{cfg: cfg, slots: make(chan struct{}, atOnce), all: map[project.Name]*target{}}, nil
}

// Start starts running the checks of all projects that have periodic ones. Call it once.
func (w *Watcher) Start(ctx context.Context) error {
	names, all, err := watched(ctx, w.cfg.DB)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.ctx, w.stop = context.WithCancel(context.Background())
	life := w.ctx
	for _, name := range names {
		w.begin(name)
	}
	w.running.Go(func() { w.flushOften(life) })
	if !all {
		w.running.Go(func() { w.loadAll(life) })
	}
	w.mu.Unlock()
	return nil
}

// Stop ends all running checks, writes what is not written yet, and returns when nothing runs any more.
func (w *Watcher) Stop() {
	w.mu.Lock()
	if w.stop == nil {
		w.mu.Unlock()
		return
	}
	w.stop()
	w.mu.Unlock()
	w.running.Wait()
	w.flush(context.Background())
}

// Live reports that the live release of a project has changed, and its checks.
func (w *Watcher) Live(name project.Name, list []project.Check) {
	has := slices.ContainsFunc(list, func(c project.Check) bool { return c.Interval > 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil || w.ctx.Err() != nil {
		// Not started: the next Start must examine it.
		if has {
			w.note(name, true)
		}
		return
	}
	switch x := w.all[name]; {
	case x != nil:
		select {
		case x.changed <- struct{}{}:
		default:
		}
	case has:
		w.note(name, true)
		w.begin(name)
	}
}

// Forget ends the checks of a project and removes its history. It returns when nothing of it runs any more.
func (w *Watcher) Forget(ctx context.Context, name project.Name) error {
	w.mu.Lock()
	x := w.all[name]
	delete(w.all, name)
	w.mu.Unlock()
	if x != nil {
		x.stop()
		<-x.done
	}
	return forget(ctx, w.cfg.DB, name)
}

func (w *Watcher) note(name project.Name, has bool) {
	if err := setWatched(context.Background(), w.cfg.DB, name, has); err != nil {
		w.cfg.Log.Error().Err(err).Str("project", name.String()).Msg("periodic checks: note the project")
	}
}

// begin watches a project. Called with mu held, between Start and Stop.
func (w *Watcher) begin(name project.Name) {
	ctx, stop := context.WithCancel(w.ctx)
	x := &target{stop: stop, changed: make(chan struct{}, 1), done: make(chan struct{})}
	w.all[name] = x
	w.running.Go(func() {
		defer close(x.done)
		defer stop()
		w.watch(ctx, name, x)
	})
}

// loadAll finds the projects that had periodic checks before there was a Watcher.
func (w *Watcher) loadAll(ctx context.Context) {
	names, err := w.cfg.Projects(ctx)
	for _, name := range names {
		select {
		case <-ctx.Done():
			return
		case <-time.After(between):
		}
		live, lerr := w.cfg.Live(ctx, name)
		if lerr != nil || len(live.Checks) == 0 {
			continue // it must be deployed again before it can be read
		}
		w.mu.Lock()
		if w.all[name] == nil && ctx.Err() == nil {
			w.note(name, true)
			w.begin(name)
		}
		w.mu.Unlock()
	}
	if err == nil && ctx.Err() == nil {
		w.note(everyProject, true)
	} else if err != nil {
		w.cfg.Log.Warn().Err(err).Msg("periodic checks: list the projects")
	}
}

// watch runs the checks of one project until ctx ends, or it has none any more.
func (w *Watcher) watch(ctx context.Context, name project.Name, x *target) {
	log := w.cfg.Log.With().Str("project", name.String()).Logger()
	due := map[string]time.Time{}
	var live Release
	loaded := false
	for ctx.Err() == nil {
		if !loaded {
			var err error
			if live, err = w.cfg.Live(ctx, name); err == nil {
				err = w.load(ctx, name, x, live, due)
			}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && fault.KindOf(err) == fault.Refused, err == nil && len(live.Checks) == 0:
				if w.over(name, x) {
					return
				}
				continue
			case err != nil:
				log.Warn().Err(err).Msg("periodic checks: read the configuration of what is live")
				pause(ctx, retryLoad, x.changed)
				continue
			}
			loaded = true
			w.notifyLate(ctx, name, x, live)
		}
		next := earliest(due)
		if wait := time.Until(next); wait > 0 {
			loaded = pause(ctx, wait, x.changed)
			continue
		}
		ran, err := w.run(ctx, name, x, live, due)
		if err != nil && ctx.Err() == nil {
			log.Error().Err(err).Msg("periodic checks")
		}
		if !ran {
			loaded = pause(ctx, retryBusy, x.changed)
		}
	}
}

// pause waits; false reports that the live release changed meanwhile.
func pause(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-changed:
		return false
	}
	return true
}

// over ends the watch of a project that has no periodic checks any more; false reports that a release with checks went live just now.
func (w *Watcher) over(name project.Name, x *target) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-x.changed:
		return false
	default:
	}
	if w.all[name] == x {
		delete(w.all, name)
		w.note(name, false)
	}
	return true
}

// load loads the live release: its checks with their states, and when each is due. An existing check stays due when it was.
func (w *Watcher) load(ctx context.Context, name project.Name, x *target, live Release, due map[string]time.Time) error {
	known, err := newest(ctx, w.cfg.DB, name)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.states
	if x.now == nil {
		x.now = known
	}
	x.states = nil
	for _, c := range live.Checks {
		x.states = append(x.states, project.CheckState{Name: c.Name, Kind: c.Kind, Every: c.Interval})
		same := slices.ContainsFunc(old, func(s project.CheckState) bool { return s.Name == c.Name && s.Every == c.Interval })
		if _, ok := due[c.Name]; ok && same {
			continue
		}
		due[c.Name] = time.Now().Add(w.first(name, c, x.now[c.Name]))
	}
	for check := range due {
		if !slices.ContainsFunc(live.Checks, func(c project.Check) bool { return c.Name == check }) {
			delete(due, check)
		}
	}
	return nil
}

// first returns the delay before a check's first run: when it would have been due if the server had not been stopped, and spread so that many
// projects do not start together. It is at most an interval, even if the clock was changed.
func (w *Watcher) first(name project.Name, c project.Check, last *period) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name.String() + "\x00" + c.Name))
	spread := time.Duration(h.Sum64() % uint64(min(splay, c.Interval)))
	if last == nil {
		return spread
	}
	if wait := last.Last.Add(c.Interval).Sub(w.cfg.Now()); wait > 0 {
		return min(wait, c.Interval)
	}
	return spread
}

func earliest(due map[string]time.Time) time.Time {
	var next time.Time
	for _, t := range due {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return next
}

// run runs the checks that are due. ran is false if a deployment prevented or ended them: they stay due.
func (w *Watcher) run(ctx context.Context, name project.Name, x *target, live Release, due map[string]time.Time) (ran bool, err error) {
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-ctx.Done():
		return false, nil
	}
	during, end, ok := w.cfg.Quiet(name)
	if !ok {
		return false, nil
	}
	defer end()
	during, cancel := context.WithCancelCause(during)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	begun := time.Now()
	var list []project.Check
	for _, c := range live.Checks {
		if t, ok := due[c.Name]; ok && !t.After(begun) {
			c.StartAfter, c.AlsoAfter = 0, 0 // nothing was started just now
			list = append(list, c)
		}
	}
	results, err := live.Run(during, list)
	if err != nil || during.Err() != nil {
		if during.Err() != nil {
			return false, nil
		}
		return false, err
	}
	for _, r := range results {
		// Counted from when it was due, so that the duration of a run does not shift it. Missed runs are skipped.
		next := due[r.Check.Name].Add(r.Check.Interval)
		if now := time.Now(); next.Before(now) {
			next = now.Add(r.Check.Interval - now.Sub(next)%r.Check.Interval)
		}
		due[r.Check.Name] = next
	}
	end() // a deployment need not wait for what follows
	var errs []error
	for _, r := range results {
		errs = append(errs, w.record(ctx, name, x, live, r))
	}
	return true, errors.Join(errs...)
}

// record records a result, and notifies it if it differs from the previous one.
func (w *Watcher) record(ctx context.Context, name project.Name, x *target, live Release, r checks.Result) error {
	at := w.cfg.Now().UTC()
	x.mu.Lock()
	now := x.now[r.Check.Name]
	if now != nil && now.Good == r.Good {
		now.Last, now.Took, now.dirty = at, r.Took, true
		now.Runs++
		if !r.Good {
			now.Reason, now.Answer = r.Reason, r.Answer
		}
		x.mu.Unlock()
		return nil
	}
	var old []period
	if now != nil && now.dirty {
		old = append(old, *now)
		now.dirty = false
	}
	x.mu.Unlock()
	p := &period{CheckPeriod: project.CheckPeriod{Check: r.Check.Name, Good: r.Good, Since: at, Last: at, Runs: 1, Took: r.Took, Reason: r.Reason, Answer: r.Answer, Code: live.Code}}
	p.notified = now == nil && r.Good // the first success is not notified
	if err := save(ctx, w.cfg.DB, old); err != nil {
		return err
	}
	if err := p.add(ctx, w.cfg.DB, name); err != nil {
		return err
	}
	x.mu.Lock()
	x.now[r.Check.Name] = p
	x.mu.Unlock()
	return w.notify(ctx, x, live, p)
}

// notify notifies the beginning of a period, once. A failure is not retried.
func (w *Watcher) notify(ctx context.Context, x *target, live Release, p *period) error {
	if p.notified {
		return nil
	}
	x.mu.Lock()
	told := p.CheckPeriod
	x.mu.Unlock()
	err := live.Notify(ctx, told)
	if ctx.Err() != nil {
		return nil // the next start notifies it
	}
	x.mu.Lock()
	p.notified = true
	saved := *p
	x.mu.Unlock()
	return errors.Join(err, save(ctx, w.cfg.DB, []period{saved}))
}

// notifyLate sends notifications that a crash, or the end of the server, prevented.
func (w *Watcher) notifyLate(ctx context.Context, name project.Name, x *target, live Release) {
	for _, s := range x.view() {
		x.mu.Lock()
		p := x.now[s.Name]
		x.mu.Unlock()
		if p == nil || p.notified {
			continue
		}
		if err := w.notify(ctx, x, live, p); err != nil {
			w.cfg.Log.Error().Err(err).Str("project", name.String()).Msg("periodic checks: notify")
		}
	}
}

// view returns what is known now.
func (x *target) view() []project.CheckState {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := slices.Clone(x.states)
	for i := range out {
		if p := x.now[out[i].Name]; p != nil {
			now := p.CheckPeriod
			out[i].Now = &now
		}
	}
	return out
}
