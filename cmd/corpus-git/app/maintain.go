package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/status"
	"corpus-git/receive"
)

const (
	// sweepEvery is how often all projects are looked at, beside those that were deployed; sweepFirst is how long after the start that begins.
	sweepEvery, sweepFirst = 24 * time.Hour, 10 * time.Minute
	// sweepStep is the time between two projects then.
	sweepStep = 50 * time.Millisecond
	// othersWait is how long maintenance waits for deployments of other projects; a server that always deploys must be maintained too.
	othersWait = 10 * time.Minute
	// busyPoll is how often a waiting maintenance looks again.
	busyPoll = 100 * time.Millisecond
)

// errDeploying abandons the maintenance of a project that is being deployed.
var errDeploying = fault.New(fault.Busy, "gc", "a deployment goes first").WithHint("try again when it has ended; a server does by itself")

// maintainer keeps the repositories fast and small, one at a time.
type maintainer struct {
	c *core
	// turn holds one token: who works has it.
	turn chan struct{}

	mu  sync.Mutex
	due map[project.Name]time.Time
	// woken is told that something became due.
	woken chan struct{}
}

func newMaintainer(c *core) *maintainer {
	return &maintainer{c: c, turn: make(chan struct{}, 1), due: map[project.Name]time.Time{}, woken: make(chan struct{}, 1)}
}

func (m *maintainer) settings(cfg *config.Config) receive.Maintenance {
	k := cfg.Maintenance
	return receive.Maintenance{Packs: k.MaxPacks, Loose: k.MaxLoose, PackRefs: k.MaxRefs, Grace: k.Grace, Every: k.Every}
}

// ended notes that a deployment of a project has ended: its repositories are looked at when it has been quiet for a while.
func (m *maintainer) ended(name project.Name) { m.plan(name, m.c.cfg.Load().Maintenance.Quiet) }

func (m *maintainer) plan(name project.Name, in time.Duration) {
	m.mu.Lock()
	m.due[name] = time.Now().Add(in)
	m.mu.Unlock()
	select {
	case m.woken <- struct{}{}:
	default:
	}
}

// next takes the project that has been due for longest; without one it tells how long there will be none.
func (m *maintainer) next() (name project.Name, wait time.Duration) {
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

// run maintains until ctx ends.
func (m *maintainer) run(ctx context.Context) {
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
		m.look(ctx, name)
	}
}

// sweep looks at every project: those that nobody deploys have objects that grow old too.
func (m *maintainer) sweep(ctx context.Context) {
	all, err := m.c.registry.List(ctx)
	if err != nil {
		m.c.log.Warn().Err(err).Msg("maintenance: list projects")
	}
	for _, p := range all {
		if p.RemoteLess || p.Missing {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepStep):
		}
		m.look(ctx, p.Name)
	}
}

// look maintains what is due of a project.
func (m *maintainer) look(ctx context.Context, name project.Name) {
	cfg := m.c.cfg.Load()
	if !cfg.Maintenance.Enabled || ctx.Err() != nil {
		return
	}
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		what := m.settings(cfg)
		due, err := m.c.repos.Open(name, repo).Due(what)
		if err == nil && due {
			_, err = m.one(ctx, name, repo, what)
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case fault.KindOf(err) == fault.Busy:
			m.c.log.Info().Err(err).Str("project", string(name)).Str("repo", string(repo)).Msg("maintenance put off")
			m.plan(name, max(cfg.Maintenance.Quiet, time.Second))
		default:
			m.c.log.Error().Err(err).Str("project", string(name)).Str("repo", string(repo)).Msg("maintenance failed; nothing was removed")
		}
	}
}

// one maintains one repository, when it is its turn, and logs what was done.
func (m *maintainer) one(ctx context.Context, name project.Name, repo project.Repo, what receive.Maintenance) (receive.Maintained, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return receive.Maintained{}, ctx.Err()
	}
	what.Pause, what.Idle = m.pause(name), m.idle(name)
	if err := what.Pause(ctx); err != nil {
		return receive.Maintained{}, err
	}
	done, err := m.c.repos.Open(name, repo).Maintain(ctx, what)
	if err == nil && done.Changed() && !what.DryRun {
		m.c.log.Info().Str("project", string(name)).Str("repo", string(repo)).Int("packs_before", done.Before.Packs).Int("packs", done.After.Packs).
			Int64("bytes_before", done.Before.PackBytes+done.Before.LooseBytes).Int64("bytes", done.After.PackBytes+done.After.LooseBytes).
			Int("loose_packed", done.Packed).Int("refs_packed", done.Refs).Int("pruned", done.Pruned).
			Int("submodules_consolidated", done.Submodules.Consolidated).Int("submodules_expired", done.Submodules.Expired).
			Int("submodules_pruned", done.Submodules.Pruned).Dur("took", done.Took).Msg("maintained")
	}
	return done, err
}

// idle is errDeploying while anything is deployed in a project, or waits for it.
func (m *maintainer) idle(name project.Name) func(context.Context) error {
	return func(ctx context.Context) error {
		q, err := m.c.pipeline.Queue(ctx, name)
		if err == nil && q.Running != nil {
			err = errDeploying
		}
		return err
	}
}

// pause keeps the maintenance of a project out of deployments' way.
func (m *maintainer) pause(name project.Name) func(context.Context) error {
	p := &pace{
		own: m.idle(name), busy: m.c.pipeline.Busy, after: time.After,
		rate: func() int64 { return int64(m.c.cfg.Load().Maintenance.Rate) },
	}
	return p.pause
}

// pace is that of one maintenance.
type pace struct {
	// own is an error while its own project is being deployed; busy counts the projects in which something is.
	own  func(context.Context) error
	busy func() int
	// rate is how many bytes a second may be written.
	rate   func() int64
	after  func(time.Duration) <-chan time.Time
	waited time.Duration // for others
}

// pause comes before each store.PauseEvery bytes: it ends with an error where its own project is being deployed, waits while others
// are, othersWait in all, and never lets more be written than the rate allows.
func (p *pace) pause(ctx context.Context) error {
	rest := time.Duration(float64(time.Second) * store.PauseEvery / float64(p.rate()))
	for first := true; ; first = false {
		if err := p.own(ctx); err != nil {
			return err
		}
		if !first && (p.busy() == 0 || p.waited >= othersWait) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.after(rest):
		}
		if !first {
			p.waited += rest
		}
		rest = busyPoll
	}
}

// Maintain implements verbs.Maintainer.
func (m *maintainer) Maintain(ctx context.Context, name project.Name, gc verbs.GC) ([]status.Maintained, error) {
	what := m.settings(m.c.cfg.Load())
	what.All, what.DryRun = gc.All, gc.DryRun
	if gc.All {
		what.Every, what.PackRefs = 0, 0
	}
	var out []status.Maintained
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		if there, err := m.c.repos.Open(name, repo).Exists(); err != nil {
			return nil, err
		} else if !there {
			continue
		}
		done, err := m.one(ctx, name, repo, what)
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
				m.c.log.Error().Err(err).Str("project", string(name)).Str("repo", string(repo)).Msg("gc failed; nothing was removed")
				d.Error = fmt.Sprintf("the server failed at this; its log has the details, under %s", name)
			}
		}
		out = append(out, d)
	}
	return out, nil
}

func stored(c store.Counts) status.Stored {
	return status.Stored{Packs: c.Packs, Objects: c.Objects, Bytes: c.PackBytes, Loose: c.Loose, LooseBytes: c.LooseBytes}
}
