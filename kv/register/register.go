// Package register publishes which services run on this machine: those that the live release registers, while its periodic checks succeed.
//
// It owns when they are published again. It never checks whether a service works, and writes no key: Publish does, here or at the hub, under a lease that this package
// renews.
//
// Invariants: a service of a project with a periodic check that fails, or has not run yet, is not published. A service that is not published again ends with its lease.
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
	// Lease is how long what was published stays, every how often it is published again.
	Lease = 30 * time.Second
	every = 10 * time.Second
	// soon is the interval at which changes are checked for.
	soon = time.Second
)

// Config is what a Registrar works with. All fields are required.
type Config struct {
	// Checks are the periodic checks of a project.
	Checks func(name project.Name) []project.CheckState
	// Address is the address at which other machines reach this one.
	Address func() string
	// Publish publishes all services of this machine; a service that is no longer among them is removed.
	Publish func(ctx context.Context, services map[string]string) error
	Log     zerolog.Logger
}

// Registrar publishes which services run. Its methods are safe for concurrent use.
type Registrar struct {
	cfg Config

	mu    sync.Mutex
	all   map[project.Name]map[string]string
	life  context.Context //nolint:containedctx // the life of the goroutine, from Start to Stop
	stop  context.CancelFunc
	runs  bool
	works sync.WaitGroup
}

// New returns a Registrar. Nothing is published before Start.
func New(cfg Config) *Registrar {
	return &Registrar{cfg: cfg, all: map[project.Name]map[string]string{}}
}

// Start starts the Registrar. Call it once.
func (r *Registrar) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.life, r.stop = context.WithCancel(context.Background())
	r.begin()
}

// Stop stops the Registrar, and returns when nothing of it is running.
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

// Set sets what the live release of a project registers: services with their descriptions, each a JSON object; none if it registers none.
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

// begin runs the loop once there is something to publish. Called with mu held.
func (r *Registrar) begin() {
	if r.runs || len(r.all) == 0 || r.life == nil || r.life.Err() != nil {
		return
	}
	r.runs = true
	life := r.life
	r.works.Go(func() { r.loop(life) })
}

// loop publishes at each change, and again before the leases end.
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

// healthy returns the services to be published, with their descriptions.
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
