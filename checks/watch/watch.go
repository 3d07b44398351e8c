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

// Release is what is live of a project, as far as its periodic checks are concerned.
type Release struct {
	Code project.Commit
	// Checks are those with an interval.
	Checks []project.Check
	// Run runs some of them once each; reasons and answers are redacted. The error is ctx's cause where that ended it.
	Run func(ctx context.Context, list []project.Check) ([]checks.Result, error)
	// Notify tells whoever is to be told that a period has begun.
	Notify func(ctx context.Context, p project.CheckPeriod) error
}

// Config is what a Watcher works with. All fields are needed.
type Config struct {
	DB *sql.DB
	// Projects are all there are; they are looked at once, at the first start of a version that has periodic checks.
	Projects func(ctx context.Context) ([]project.Name, error)
	// Live is what is live of a project now. fault.Refused tells that there is no such project.
	Live func(ctx context.Context, name project.Name) (Release, error)
	// Quiet reports whether nothing is deployed to a project. While it is so, until end is called, during is not over; a deployment ends it, and
	// waits for end, which may be called more than once.
	Quiet func(name project.Name) (during context.Context, end func(), ok bool)
	// Now is the clock that people read. Intervals do not depend on it.
	Now func() time.Time
	Log zerolog.Logger
}

const (
	// atOnce is how many projects have checks running at the same time.
	atOnce = 8
	// flushEvery is how often counts are written.
	flushEvery = time.Minute
	// retryBusy is when a project is looked at again in which something is deployed; retryLoad one whose configuration cannot be read.
	retryBusy, retryLoad = time.Second, time.Minute
	// splay is within which time the first runs of all projects are spread, at most an interval.
	splay = time.Minute
	// between is the time between two projects in the look at all of them.
	between = 50 * time.Millisecond
)

// Watcher runs periodic checks. All methods are safe for concurrent use.
type Watcher struct {
	cfg   Config
	slots chan struct{}

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // the life of the goroutines, from Start to Stop
	stop    context.CancelFunc
	all     map[project.Name]*target
	running sync.WaitGroup
}

// target is one project while its checks are watched.
type target struct {
	stop context.CancelFunc
	// changed takes one: something else is live.
	changed chan struct{}
	// done is closed when nothing of it runs any more.
	done chan struct{}
	// mu guards what follows, for those who look.
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

// Start begins to run the checks of all projects that have periodic ones. Call it once.
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

// Stop ends all checks that run, writes what is not written yet, and returns when nothing runs any more.
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

// Live tells that something else is live in a project, and with which checks.
func (w *Watcher) Live(name project.Name, list []project.Check) {
	has := slices.ContainsFunc(list, func(c project.Check) bool { return c.Interval > 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil || w.ctx.Err() != nil {
		// Nothing is watched here: the next Start must know.
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
			continue // what cannot be read is deployed again before it can be
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

// pause waits; false tells that something else is live meanwhile.
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

// over ends the watch of a project that has no periodic checks any more; false tells that something else went live just now.
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

// load takes over what is live: what is known of its checks, and when each is due. One that was there before stays due when it was.
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

// first is how long from now a check runs first: when it would have been due, had the server not been stopped, and spread so that many projects do
// not begin together. A clock that was set makes it an interval at most.
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

// run runs the checks that are due. ran is false where a deployment keeps them out, or ended them: they stay due.
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
		// From when it was due: it does not move by what it takes. Runs that were missed are not made up for.
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

// record notes an answer, and tells of it where it is another than before.
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
	p.notified = now == nil && r.Good // that it works is no news
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

// notify tells of the beginning of a period, once. What fails then is not tried again.
func (w *Watcher) notify(ctx context.Context, x *target, live Release, p *period) error {
	if p.notified {
		return nil
	}
	x.mu.Lock()
	told := p.CheckPeriod
	x.mu.Unlock()
	err := live.Notify(ctx, told)
	if ctx.Err() != nil {
		return nil // the next start tells
	}
	x.mu.Lock()
	p.notified = true
	saved := *p
	x.mu.Unlock()
	return errors.Join(err, save(ctx, w.cfg.DB, []period{saved}))
}

// notifyLate tells of what a crash, or the end of the server, kept from being told.
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

// view is what is known now.
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

func (w *Watcher) flushOften(ctx context.Context) {
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// flush writes the counts of all projects.
func (w *Watcher) flush(ctx context.Context) {
	w.mu.Lock()
	var of []*target
	for _, x := range w.all {
		of = append(of, x)
	}
	w.mu.Unlock()
	var list []period
	for _, x := range of {
		x.mu.Lock()
		for _, p := range x.now {
			if p.dirty {
				p.dirty = false
				list = append(list, *p)
			}
		}
		x.mu.Unlock()
	}
	if err := save(ctx, w.cfg.DB, list); err != nil && ctx.Err() == nil {
		w.cfg.Log.Error().Err(err).Msg("periodic checks: write the history")
	}
}

// States are the periodic checks of a project as they stand; none where nothing is watched.
func (w *Watcher) States(name project.Name) []project.CheckState {
	w.mu.Lock()
	x := w.all[name]
	w.mu.Unlock()
	if x == nil {
		return nil
	}
	return x.view()
}

// History gives the periods of a project's checks, the newest first, at most limit.
func (w *Watcher) History(ctx context.Context, name project.Name, limit int) ([]project.CheckPeriod, error) {
	list, err := periods(ctx, w.cfg.DB, `WHERE project = ? ORDER BY since DESC, id DESC LIMIT ?`, name, limit)
	if err != nil {
		return nil, err
	}
	now := map[string]project.CheckPeriod{}
	for _, s := range w.States(name) {
		if s.Now != nil {
			now[s.Name] = *s.Now
		}
	}
	out := make([]project.CheckPeriod, 0, len(list))
	for _, p := range list {
		if n, ok := now[p.Check]; ok && n.Since.Equal(p.Since) {
			p.CheckPeriod = n
		}
		out = append(out, p.CheckPeriod)
	}
	return out, nil
}
