package app

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"corpus-git/cmd/corpus-git/hubs"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/pipeline"
	"corpus-git/project"
)

// recovery tracks what a crashed server left until all of it is recovered.
type recovery struct {
	c *core
	// full: all projects are examined, not only those with an in-progress marker.
	full bool
	list []pipeline.Unfinished
	// left are the projects in which a deployment waits for signals: the next start examines them again.
	left []project.Name

	mu   sync.Mutex
	bad  map[project.Name]bool
	errs []error
}

// recover completes the recovery before it returns.
func (c *core) recover(ctx context.Context) error {
	r, err := c.takeUp(ctx)
	if r == nil {
		return err
	}
	for _, u := range r.list {
		if c.pipeline.LeaveWaiting(u) {
			r.left = append(r.left, u.Project)
			continue
		}
		r.done(u.Project, c.pipeline.FinishNow(ctx, u))
	}
	return r.end()
}

// takeUp starts the recovery after a crash: it cleans up, and puts unfinished deployments into their queues. It examines only projects with an in-progress
// marker, so the cost of a start does not depend on the number of projects. Without markers, at the first start of a version that has them, every project is
// examined. The result is nil if there is nothing to recover.
func (c *core) takeUp(ctx context.Context) (*recovery, error) {
	if c.clean.Load() {
		if _, full := c.underway.Pending(); full {
			c.underway.MarkAllRecovered() // it ended in order, before markers existed
		}
		return nil, nil
	}
	names, full := c.underway.Pending()
	if full {
		all, err := c.registry.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			names = append(names, p.Name)
		}
	} else {
		c.recovered = map[project.Name]bool{}
		for _, name := range names {
			c.recovered[name] = true
		}
	}
	r := &recovery{c: c, full: full}
	var err error
	if r.list, r.bad, err = c.pipeline.FindUnfinished(ctx, names, full); r.bad == nil {
		return nil, err
	}
	r.errs = append(r.errs, err)
	open := map[project.Name]bool{}
	for _, u := range r.list {
		open[u.Project] = true
	}
	if err := c.nodes.Hold(slices.Collect(maps.Keys(open))); err != nil {
		c.log.Warn().Err(err).Msg("hold the slots of nodes that may still deploy")
	}
	c.sweepDeployments()
	c.sweepTemps()
	var sweeps sync.WaitGroup
	slots := make(chan struct{}, 4)
	for _, name := range names {
		slots <- struct{}{}
		sweeps.Go(func() {
			defer func() { <-slots }()
			c.sweep(name)
			if !r.bad[name] && !open[name] {
				c.underway.MarkRecovered(name)
			}
		})
	}
	sweeps.Wait()
	return r, nil
}

// done records that the deployment of a project was ended, or could not be.
func (r *recovery) done(name project.Name, err error) {
	r.c.nodes.Unhold(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.bad[name] = true
	}
	r.errs = append(r.errs, err)
	if !r.bad[name] {
		r.c.underway.MarkRecovered(name)
	}
}

// end is called when recovery is complete. The error joins those of single projects, which are examined again at the next start.
func (r *recovery) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := errors.Join(r.errs...)
	if r.full {
		var errs []error
		for name := range r.bad {
			errs = append(errs, r.c.underway.MarkUnrecovered(name))
		}
		for _, name := range r.left {
			errs = append(errs, r.c.underway.MarkUnrecovered(name))
		}
		if errors.Join(errs...) == nil {
			r.c.underway.MarkAllRecovered()
		}
		err = errors.Join(append(errs, err)...)
	}
	r.c.clean.Store(err == nil && len(r.left) == 0)
	return err
}

// finishLater completes the recovery in the background while the server serves.
func (s *server) finishLater(r *recovery) {
	if r == nil {
		s.reached("recovered")
		return
	}
	s.pipeline.Finish(r.list, r.done, func() {
		if err := r.end(); err != nil {
			// Failed projects report the error at their next deployment.
			s.log.Error().Err(err).Msg("recovery is not complete")
		}
		s.reached("recovered")
	})
}

// sweep removes files that a crash left in the repositories of a project. A repository is swept at its first use otherwise.
func (c *core) sweep(name project.Name) {
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		if err := c.repos.Open(name, repo).Sweep(); err != nil {
			c.log.Warn().Err(err).Str("project", name.String()).Str("repository", string(repo)).Msg("sweep")
		}
	}
}

// sweepDeployments removes the configuration folders of salt-call and the private copies of recipes that a crash left.
func (c *core) sweepDeployments() {
	for _, dir := range []string{filepath.Dir(c.state.SaltConfig("x", "y")), c.state.Recipes()} {
		if err := os.RemoveAll(dir); err != nil {
			c.log.Warn().Err(err).Str("folder", dir).Msg("remove what deployments left")
		}
	}
}

// sweepTemps removes incomplete files from the directories shared by all projects. Trees, archives and repositories are swept separately.
func (c *core) sweepTemps() {
	at := c.root.Project("any")
	dirs := []string{
		c.state.Path(), c.state.Journals(), filepath.Dir(c.state.Rollout("any")), c.root.Salt(), c.root.Pillar(), filepath.Dir(c.state.Passwords("any")), filepath.Dir(at.SaltLink()), filepath.Dir(at.PillarLink()),
	}
	for _, kind := range layout.ModuleDirs() {
		dirs = append(dirs, c.root.Modules(kind))
	}
	for _, dir := range dirs {
		if err := vfs.SweepTemps(vfs.OS{}, dir); err != nil {
			c.log.Warn().Err(err).Str("folder", dir).Msg("remove half-written files")
		}
	}
}

// checkOut checks out the trees of the projects, if another hub led before.
func (c *core) checkOut(ctx context.Context) error {
	if c.lead == nil {
		return nil
	}
	all, err := c.registry.List(ctx)
	if err != nil {
		return err
	}
	names := make([]project.Name, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	if err := c.lead.CheckOut(ctx, c.root, names, func(n project.Name, r project.Repo) hubs.Repository { return c.repos.Open(n, r) }); err != nil {
		c.log.Error().Err(err).Msg("the trees of projects; their next deployment writes them")
	}
	return nil
}
