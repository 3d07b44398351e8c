// Package maintenance schedules the maintenance of repositories: some time after a deployment, once a day, one repository at a time, with a
// limited write rate, and never while their project is being deployed. receive.Repository.Maintain does the work.
package maintenance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/status"
	"corpus-git/receive"
)

const (
	// sweepEvery is how often all projects are examined, in addition to those that were deployed; sweepFirst is the delay after the start.
	sweepEvery, sweepFirst = 24 * time.Hour, 10 * time.Minute
	// sweepStep is the pause between two projects in a sweep.
	sweepStep = 50 * time.Millisecond
	// othersWait is how long maintenance waits for deployments of other projects: it must also run on a server that is always deploying.
	othersWait = 10 * time.Minute
	// busyPoll is the interval at which waiting maintenance checks again.
	busyPoll = 100 * time.Millisecond
)

// errDeploying abandons the maintenance of a project that is being deployed.
var errDeploying = fault.New(fault.Busy, "gc", "a deployment has priority").WithHint("try again when it has finished; a running server retries automatically")

// Config configures a Scheduler.
type Config struct {
	// Settings returns the settings of the current configuration.
	Settings   func() config.Maintenance
	Repository func(project.Name, project.Repo) *receive.Repository
	// Projects returns the projects that have repositories.
	Projects func(context.Context) ([]project.Name, error)
	// Deploying reports whether anything is being deployed in a project, or waiting for it; Busy counts the projects in which that is so.
	Deploying func(context.Context, project.Name) (bool, error)
	Busy      func() int
	Log       zerolog.Logger
}

// Scheduler maintains repositories, one at a time.
type Scheduler struct {
	cfg Config
	// turn holds one token, whose holder may work.
	turn chan struct{}

	mu  sync.Mutex
	due map[project.Name]time.Time
	// woken receives a value when something becomes due.
	woken chan struct{}
}

// New returns a scheduler, which does nothing before Run.
func New(cfg Config) *Scheduler {
	return &Scheduler{cfg: cfg, turn: make(chan struct{}, 1), due: map[project.Name]time.Time{}, woken: make(chan struct{}, 1)}
}

// limits returns the limits of the configuration.
func limits(k config.Maintenance) receive.Maintenance {
	return receive.Maintenance{Packs: k.MaxPacks, Loose: k.MaxLoose, PackRefs: k.MaxRefs, Grace: k.Grace, Every: k.Every}
}

// Ended records that a deployment of a project has ended: its repositories are examined when it has been idle for a while.
func (m *Scheduler) Ended(name project.Name) { m.plan(name, m.cfg.Settings().Quiet) }

func (m *Scheduler) plan(name project.Name, in time.Duration) {
	m.mu.Lock()
	m.due[name] = time.Now().Add(in)
	m.mu.Unlock()
	select {
	case m.woken <- struct{}{}:
	default:
	}
}

// next takes the project that has been due for longest, or returns the time until one becomes due.
func (m *Scheduler) next() (name project.Name, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	wait = time.Hour
	first := now
	for n, t := range m.due {
		switch d := t.Sub(now); {
		case d > 0:
			wait = min(wait, d)
		case name == "" || t.Before(first):
			name, first = n, t
		}
	}
	delete(m.due, name)
	return name, wait
}

// Run performs maintenance until ctx ends.
func (m *Scheduler) Run(ctx context.Context) {
	sweep := time.NewTimer(sweepFirst)
	defer sweep.Stop()
	for {
		name, wait := m.next()
		if name == "" {
			select {
			case <-ctx.Done():
				return
			case <-m.woken:
			case <-time.After(wait):
			case <-sweep.C:
				m.sweep(ctx)
				sweep.Reset(sweepEvery)
			}
			continue
		}
		m.maintainDue(ctx, name)
	}
}

// sweep examines every project: objects also grow old without deployments.
func (m *Scheduler) sweep(ctx context.Context) {
	all, err := m.cfg.Projects(ctx)
	if err != nil {
		m.cfg.Log.Warn().Err(err).Msg("maintenance: list projects")
	}
	for _, name := range all {
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepStep):
		}
		m.maintainDue(ctx, name)
	}
}

// maintainDue maintains those repositories of a project that are due.
func (m *Scheduler) maintainDue(ctx context.Context, name project.Name) {
	cfg := m.cfg.Settings()
	if !cfg.Enabled || ctx.Err() != nil {
		return
	}
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		what, r := limits(cfg), m.cfg.Repository(name, repo)
		due, err := r.Due(what)
		if err == nil && due {
			_, err = m.maintain(ctx, r, what)
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case fault.KindOf(err) == fault.Busy:
			m.cfg.Log.Info().Err(err).Str("project", string(name)).Str("repo", string(repo)).Msg("maintenance put off")
			m.plan(name, max(cfg.Quiet, time.Second))
		default:
			m.cfg.Log.Error().Err(err).Str("project", string(name)).Str("repo", string(repo)).Msg("maintenance failed; nothing was removed")
		}
	}
}

// maintain maintains one repository in its turn, and logs the result.
func (m *Scheduler) maintain(ctx context.Context, r *receive.Repository, what receive.Maintenance) (receive.Maintained, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return receive.Maintained{}, ctx.Err()
	}
	what.Pause, what.Idle = m.pause(r.Project()), m.idle(r.Project())
	if err := what.Pause(ctx); err != nil {
		return receive.Maintained{}, err
	}
	done, err := r.Maintain(ctx, what)
	if err == nil && done.Changed() && !what.DryRun {
		m.cfg.Log.Info().Str("project", string(r.Project())).Str("repo", string(r.Kind())).Int("packs_before", done.Before.Packs).Int("packs", done.After.Packs).
			Int64("bytes_before", done.Before.PackBytes+done.Before.LooseBytes).Int64("bytes", done.After.PackBytes+done.After.LooseBytes).
			Int("loose_packed", done.Packed).Int("refs_packed", done.Refs).Int("pruned", done.Pruned).
			Int("submodules_consolidated", done.Submodules.Consolidated).Int("submodules_expired", done.Submodules.Expired).
			Int("submodules_pruned", done.Submodules.Pruned).Stringer("took", done.Took.Round(time.Millisecond)).Msg("maintained")
	}
	return done, err
}

// idle returns errDeploying while anything is being deployed in a project, or waiting for it.
func (m *Scheduler) idle(name project.Name) func(context.Context) error {
	return func(ctx context.Context) error {
		deploying, err := m.cfg.Deploying(ctx, name)
		if err == nil && deploying {
			err = errDeploying
		}
		return err
	}
}

// pause makes the maintenance of a project yield to deployments.
func (m *Scheduler) pause(name project.Name) func(context.Context) error {
	p := &pace{
		own: m.idle(name), busy: m.cfg.Busy, after: time.After,
		rate: func() int64 { return int64(m.cfg.Settings().Rate) },
	}
	return p.pause
}

// Maintain maintains the repositories of a project now, and returns one entry for each, with an error if it failed. all consolidates
// everything and searches for unreferenced objects, whatever the thresholds are; dryRun changes nothing. It is fault.Busy during a
// deployment.
func (m *Scheduler) Maintain(ctx context.Context, name project.Name, all, dryRun bool) ([]status.Maintained, error) {
	what := limits(m.cfg.Settings())
	what.All, what.DryRun = all, dryRun
	if all {
		what.Every, what.PackRefs = 0, 0
	}
	var out []status.Maintained
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		r := m.cfg.Repository(name, repo)
		if there, err := r.Exists(); err != nil {
			return nil, err
		} else if !there {
			continue
		}
		done, err := m.maintain(ctx, r, what)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		d := status.Maintained{
			Project: name, Repo: repo, Before: stored(done.Before), After: stored(done.After), Consolidated: done.Consolidated, Packed: done.Packed,
			Refs: done.Refs, Pruned: done.Pruned, Young: done.Young, Left: done.Left, Took: done.Took,
		}
		if s := done.Submodules; s.Repositories > 0 {
			d.Submodules = &status.MaintainedSubmodules{
				Repositories: s.Repositories, Before: stored(s.Before), After: stored(s.After), Consolidated: s.Consolidated, Packed: s.Packed,
				Expired: s.Expired, Pruned: s.Pruned, Young: s.Young, Left: s.Left,
			}
		}
		if err != nil {
			d.Error = err.Error()
			if fault.KindOf(err) == fault.Internal {
				m.cfg.Log.Error().Err(err).Str("project", string(name)).Str("repo", string(repo)).Msg("gc failed; nothing was removed")
				d.Error = fmt.Sprintf("internal server error; see the server's log, under %s", name)
			}
		}
		out = append(out, d)
	}
	return out, nil
}

func stored(c store.Counts) status.Stored {
	return status.Stored{Packs: c.Packs, Objects: c.Objects, Bytes: c.PackBytes, Loose: c.Loose, LooseBytes: c.LooseBytes}
}
