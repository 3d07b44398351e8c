package procedures

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/archive"
	"corpus-git/internal/humanize"
	"corpus-git/project"
)

// Upkeep looks after archives while nobody waits: it packs all but a project's newest one, removes what the limits do not
// keep, and measures what is left. A project is due when one of its deployments has ended, and from time to time, so that
// failures expire by themselves. Each project has its own goroutine while it is due; the stores take turns (archive.Background)
// and stand still while a deployment of theirs runs (archive.Store.Pause).
//
// A crash leaves archives whole, each in one of its two forms; the next start sweeps the other. All methods are safe for
// concurrent use. Fields are set before Start.
type Upkeep struct {
	Archives func(project.Name) *archive.Store
	// Retention says what stays of a project now.
	Retention func(ctx context.Context, name project.Name) (project.Retention, error)
	// Projects are all that have archives; they become due at the start and each time Every has passed, in their order: atOnce of them together, the
	// others one by one, so that ten thousand do not keep the machine from those who deploy.
	Projects func(ctx context.Context) ([]project.Name, error)
	Every    time.Duration
	// Quiet is how long a project must have been left alone before its archives are packed: deployments that follow each other at once need the processors more. What
	// the next deployment waits for otherwise, the tree to build its archive from, is seen to at once.
	Quiet time.Duration
	// Removed is told after archives of a project were removed; it may be nil.
	Removed func(ctx context.Context, name project.Name)
	// Told is told "upkeep due NAME" when a project becomes due, "upkeep idle NAME" when that has been seen to, and "upkeep all
	// due" when all are at the start; crash tests wait for it. It may be nil, and must not call this Upkeep.
	Told func(point string)
	Log  zerolog.Logger

	mu   sync.Mutex
	ctx  context.Context //nolint:containedctx // the life of the goroutines, from Start to Stop
	stop context.CancelFunc
	due  map[project.Name]*dueness
	done sync.WaitGroup
}

// dueness is that of one project while its goroutine lives.
type dueness struct {
	again bool
	more  chan struct{} // takes one: it has become due again
}

const (
	// atOnce is how many projects become due together, and between is the time that passes before each further one.
	atOnce  = 16
	between = 100 * time.Millisecond
)

// Start makes all projects due, one after the other, and again and again. Call it once, after recovery.
func (u *Upkeep) Start() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ctx, u.stop = context.WithCancel(context.Background())
	u.due = map[project.Name]*dueness{}
	ctx := u.ctx
	if u.Told == nil {
		u.Told = func(string) {}
	}
	u.done.Go(func() {
		told := sync.OnceFunc(func() { u.Told("upkeep all due") })
		tick := time.NewTicker(u.Every)
		defer tick.Stop()
		for {
			all, err := u.Projects(ctx)
			if err != nil && ctx.Err() == nil {
				u.Log.Warn().Err(err).Msg("look for archives to pack")
			}
			for i, name := range all {
				if i >= atOnce {
					select {
					case <-time.After(between):
					case <-ctx.Done():
						return
					}
				}
				u.Due(name)
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

// Due has the archives of a project looked after, soon. It returns at once. Before Start and after Stop it does nothing:
// the next start sees to all.
func (u *Upkeep) Due(name project.Name) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ctx == nil || u.ctx.Err() != nil {
		return
	}
	u.Told("upkeep due " + name.String())
	if d := u.due[name]; d != nil {
		d.again = true
		select {
		case d.more <- struct{}{}:
		default:
		}
		return
	}
	d := &dueness{more: make(chan struct{}, 1)}
	u.due[name] = d
	ctx := u.ctx
	u.done.Go(func() {
		for again := true; again; again = u.again(name) {
			u.prepare(ctx, name)
			u.rest(ctx, name, d.more)
			u.look(ctx, name)
		}
	})
}

// rest waits until a project has been left alone for Quiet, and prepares its next archive each time that it was not.
func (u *Upkeep) rest(ctx context.Context, name project.Name, more <-chan struct{}) {
	if u.Quiet <= 0 {
		return
	}
	t := time.NewTimer(u.Quiet)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return
		case <-ctx.Done():
			return
		case <-more:
			u.prepare(ctx, name)
			t.Reset(u.Quiet)
		}
	}
}

// prepare has the next archive of a project prepared.
func (u *Upkeep) prepare(ctx context.Context, name project.Name) {
	keep, err := u.Retention(ctx, name)
	if err == nil {
		_, err = u.Archives(name).Prepare(ctx, RetentionPolicy(keep))
	}
	if err != nil && ctx.Err() == nil {
		u.Log.Warn().Err(err).Str("project", name.String()).Msg("prepare the next archive")
	}
}

func (u *Upkeep) again(name project.Name) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if d := u.due[name]; d.again && u.ctx.Err() == nil {
		d.again = false
		return true
	}
	delete(u.due, name)
	u.Told("upkeep idle " + name.String())
	return false
}

// Stop ends what is under way, which takes as long as one block of a file, and waits for it no longer than patience. It
// reports whether all has ended; what has not may be left alone: it is as safe as after a crash.
func (u *Upkeep) Stop(patience time.Duration) bool {
	u.mu.Lock()
	stop := u.stop
	u.mu.Unlock()
	if stop == nil {
		return true
	}
	stop()
	ended := make(chan struct{})
	go func() {
		u.done.Wait()
		close(ended)
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-ended:
		return true
	case <-t.C:
		return false
	}
}

// look looks after one project once.
func (u *Upkeep) look(ctx context.Context, name project.Name) {
	log := u.Log.With().Str("project", name.String()).Logger()
	keep, err := u.Retention(ctx, name)
	if err != nil {
		if ctx.Err() == nil {
			log.Warn().Err(err).Msg("archives stay as they are: what to keep is not known")
		}
		return
	}
	got, err := u.Archives(name).Compact(ctx, RetentionPolicy(keep))
	for _, r := range got.Refused {
		log.Warn().Str("archive", r.ID).Str("why", r.Why).Msg("an archive stays a folder")
	}
	if n := len(got.Packed); n > 0 {
		log.Info().Int("archives", n).Str("freed", humanize.Bytes(got.Freed)).Msg("packed archives")
	}
	for _, a := range got.Rotation.Removed {
		log.Info().Str("archive", a.ID).Str("freed", humanize.Bytes(a.Own)).Msg("removed an archive that the limits do not keep")
	}
	if u.Removed != nil && len(got.Rotation.Removed) > 0 {
		u.Removed(ctx, name)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Warn().Err(err).Msg("look after archives")
	}
}
