// Package upkeep maintains archives in the background: see Scheduler.
//
// It decides when archives are packed, expired and measured. It does not decide which are kept (procedures.RetentionPolicy does, from the
// project's and the server's settings), and package archive does the work.
package upkeep

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/archive"
	"corpus-git/internal/humanize"
	"corpus-git/procedures"
	"corpus-git/project"
)

// Scheduler maintains archives in the background: it packs all but a project's newest one, removes what the limits do not keep, and
// measures the rest. A project is due when one of its deployments has ended, and periodically, so that failed archives expire without
// deployments. Each project has its own goroutine while it is due; the stores take turns (archive.Background) and pause while a deployment
// of their project is running (archive.Store.Pause).
//
// A crash leaves each archive complete, in one of its two forms; the next start removes the other. All methods are safe for concurrent use.
// Fields are set before Start.
type Scheduler struct {
	Archives func(project.Name) *archive.Store
	// Retention returns which archives of a project are currently kept.
	Retention func(ctx context.Context, name project.Name) (project.Retention, error)
	// Projects returns all projects that have archives; they become due at the start and each time Every has passed, in their order: atOnce
	// of them together, the others one by one, so that ten thousand projects do not slow down deployments.
	Projects func(ctx context.Context) ([]project.Name, error)
	Every    time.Duration
	// Quiet is how long a project must be idle before its archives are packed, since deployments in quick succession need the CPUs more.
	// The spare tree of a project that has large files is prepared at once (archive.Store.Prepare).
	Quiet time.Duration
	// Removed is called after archives of a project were removed; it may be nil.
	Removed func(ctx context.Context, name project.Name)
	// Reached is called with "upkeep due NAME" when a project becomes due, "upkeep idle NAME" when its work is done, and "upkeep all due"
	// when all are due at the start; crash tests wait for it. It may be nil, and must not call this Scheduler.
	Reached func(point string)
	Log     zerolog.Logger

	mu   sync.Mutex
	ctx  context.Context //nolint:containedctx // the life of the goroutines, from Start to Stop
	stop context.CancelFunc
	all  map[project.Name]*due
	done sync.WaitGroup
}

// due is a project while its goroutine runs.
type due struct {
	again bool
	more  chan struct{} // takes one: it has become due again
}

const (
	// atOnce is the number of projects that become due together, and between is the delay before each further one.
	atOnce  = 16
	between = 100 * time.Millisecond
)

// Start makes all projects due, one after the other, and periodically. Call it once, after recovery.
func (s *Scheduler) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.all = map[project.Name]*due{}
	ctx := s.ctx
	if s.Reached == nil {
		s.Reached = func(string) {}
	}
	s.done.Go(func() {
		told := sync.OnceFunc(func() { s.Reached("upkeep all due") })
		tick := time.NewTicker(s.Every)
		defer tick.Stop()
		for {
			all, err := s.Projects(ctx)
			if err != nil && ctx.Err() == nil {
				s.Log.Warn().Err(err).Msg("look for archives to pack")
			}
			for i, name := range all {
				if i >= atOnce {
					select {
					case <-time.After(between):
					case <-ctx.Done():
						return
					}
				}
				s.schedule(name, false)
			}
			told()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// Due schedules the maintenance of a project's archives after a deployment, and returns immediately. Before Start and after Stop it does nothing: the next
// start schedules all.
func (s *Scheduler) Due(name project.Name) { s.schedule(name, true) }

// schedule is Due; deployed reports whether there was a deployment, which another one may follow soon.
func (s *Scheduler) schedule(name project.Name, deployed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	s.Reached("upkeep due " + name.String())
	if d := s.all[name]; d != nil {
		d.again = true
		if deployed {
			select {
			case d.more <- struct{}{}:
			default:
			}
		}
		return
	}
	d := &due{more: make(chan struct{}, 1)}
	s.all[name] = d
	ctx := s.ctx
	s.done.Go(func() {
		for again := true; again; again = s.again(name) {
			if deployed {
				s.prepare(ctx, name)
			}
			deployed = false // rest learns of each further one
			s.rest(ctx, name, d.more)
			s.run(ctx, name)
		}
		s.Archives(name).DropAhead() // where it stopped before Compact
	})
}

// Ahead begins to write the base of the next archive (archive.Store.Ahead), and returns immediately. Before Start and after Stop it does nothing.
func (s *Scheduler) Ahead(name project.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	ctx := s.ctx
	s.done.Go(func() {
		if err := s.Archives(name).Ahead(ctx); err != nil {
			s.Log.Warn().Err(err).Str("project", name.String()).Msg("write the base of the next archive")
		}
	})
}

// rest waits until a project has been idle for Quiet, and prepares its next archive after each deployment meanwhile.
func (s *Scheduler) rest(ctx context.Context, name project.Name, more <-chan struct{}) {
	if s.Quiet <= 0 {
		return
	}
	t := time.NewTimer(s.Quiet)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return
		case <-ctx.Done():
			return
		case <-more:
			s.prepare(ctx, name)
			t.Reset(s.Quiet)
		}
	}
}

// prepare prepares the next archive of a project. What the last steps changed may be copied then.
func (s *Scheduler) prepare(ctx context.Context, name project.Name) {
	select {
	case <-time.After(archive.Settled):
	case <-ctx.Done():
		return
	}
	keep, err := s.Retention(ctx, name)
	if err == nil {
		_, err = s.Archives(name).Prepare(ctx, procedures.RetentionPolicy(keep))
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn().Err(err).Str("project", name.String()).Msg("prepare the next archive")
	}
}

func (s *Scheduler) again(name project.Name) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.all[name]; d.again && s.ctx.Err() == nil {
		d.again = false
		return true
	}
	delete(s.all, name)
	s.Reached("upkeep idle " + name.String())
	return false
}

// Stop ends running work, which takes as long as one block of a file, and waits for it no longer than timeout. It reports whether all has
// ended; what has not may be abandoned as in a crash.
func (s *Scheduler) Stop(timeout time.Duration) bool {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	if stop == nil {
		return true
	}
	stop()
	ended := make(chan struct{})
	go func() {
		s.done.Wait()
		close(ended)
	}()
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-ended:
		return true
	case <-t.C:
		return false
	}
}

// run maintains one project once.
func (s *Scheduler) run(ctx context.Context, name project.Name) {
	log := s.Log.With().Str("project", name.String()).Logger()
	keep, err := s.Retention(ctx, name)
	if err != nil {
		if ctx.Err() == nil {
			log.Warn().Err(err).Msg("archives were not pruned: the retention settings could not be read")
		}
		return
	}
	got, err := s.Archives(name).Compact(ctx, procedures.RetentionPolicy(keep))
	for _, r := range got.Refused {
		log.Warn().Str("archive", r.ID).Str("why", r.Why).Msg("cannot pack an archive")
	}
	if n := len(got.Packed); n > 0 {
		log.Info().Int("archives", n).Str("freed", humanize.Bytes(got.Freed)).Msg("packed archives")
	}
	for _, a := range got.Rotation.Removed {
		log.Info().Str("archive", a.ID).Str("freed", humanize.Bytes(a.Own)).Msg("removed an archive beyond the limits")
	}
	if s.Removed != nil && len(got.Rotation.Removed) > 0 {
		s.Removed(ctx, name)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Warn().Err(err).Msg("look after archives")
	}
}
