// Package register says which services run on this machine: those that what is live registers, while its periodic checks succeed.
//
// It owns when that is said again. It never looks whether a service works, and writes no key: Publish does, here or at the hub, under a lease that this package renews.
//
// Invariants: a service of a project with a periodic check that fails, or has not run yet, is not said. What is not said again ends with its lease.
//
// A crash leaves leases, which end.
package register

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/project"
)

// Times.
const (
	// Lease is how long what was said stays, every how often it is said again.
	Lease = 30 * time.Second
	every = 10 * time.Second
	// soon is how often it is looked whether something has changed.
	soon = time.Second
)

// Config is what a Registrar works with. All fields are needed.
type Config struct {
	// Checks are the periodic checks of a project.
	Checks func(name project.Name) []project.CheckState
	// Address is how other machines reach this one.
	Address func() string
	// Publish says all services of this machine; one that is not among them any more is gone.
	Publish func(ctx context.Context, services map[string]string) error
	Log     zerolog.Logger
}

// Registrar says which services run. Its methods are safe for concurrent use.
type Registrar struct {
	cfg Config

	mu    sync.Mutex
	all   map[project.Name]map[string]string
	life  context.Context //nolint:containedctx // the life of the goroutine, from Start to Stop
	stop  context.CancelFunc
	runs  bool
	works sync.WaitGroup
}

// New makes one. Nothing is said before Start.
func New(cfg Config) *Registrar {
	return &Registrar{cfg: cfg, all: map[project.Name]map[string]string{}}
}

// Start begins. Call it once.
func (r *Registrar) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.life, r.stop = context.WithCancel(context.Background())
	r.begin()
}

// Stop ends it, and returns when nothing of it runs.
func (r *Registrar) Stop() {
	r.mu.Lock()
	if r.stop == nil {
		r.mu.Unlock()
		return
	}
	r.stop()
	r.mu.Unlock()
	r.works.Wait()
}

// Set says what is live in a project registers: services with what is said of each, a JSON object; none where it registers none.
func (r *Registrar) Set(name project.Name, services map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(services) == 0 {
		delete(r.all, name)
		return
	}
	r.all[name] = services
	r.begin()
}

// begin runs the loop once there is something to say. Called with mu held.
func (r *Registrar) begin() {
	if r.runs || len(r.all) == 0 || r.life == nil || r.life.Err() != nil {
		return
	}
	r.runs = true
	life := r.life
	r.works.Go(func() { r.loop(life) })
}

// loop says it at each change, and again before the leases end.
func (r *Registrar) loop(ctx context.Context) {
	var said map[string]string
	var at time.Time
	tick := time.NewTicker(soon)
	defer tick.Stop()
	for {
		now := r.healthy()
		if !maps.Equal(said, now) || len(now) > 0 && time.Since(at) >= every {
			err := r.cfg.Publish(ctx, now)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				r.cfg.Log.Warn().Err(err).Msg("register services")
			} else {
				said = now
			}
			at = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// healthy returns the services to be said, with what is said of each.
func (r *Registrar) healthy() map[string]string {
	r.mu.Lock()
	all := maps.Clone(r.all)
	r.mu.Unlock()
	out := map[string]string{}
	for name, services := range all {
		good := true
		for _, c := range r.cfg.Checks(name) {
			good = good && c.Now != nil && c.Now.Good
		}
		if !good {
			continue
		}
		for service, text := range services {
			doc := map[string]any{}
			if json.Unmarshal([]byte(text), &doc) != nil {
				continue
			}
			if _, ok := doc["address"]; !ok {
				doc["address"] = r.cfg.Address()
			}
			doc["project"] = name
			if line, err := json.Marshal(doc); err == nil {
				out[service] = string(line)
			}
		}
	}
	return out
}
