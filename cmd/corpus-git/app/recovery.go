package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/pipeline"
	"corpus-git/project"
)

// recovery is what a dead server left, until it is all fixed.
type recovery struct {
	c *core
	// full: all projects are looked at, not only those that have notes of what was under way.
	full bool
	list []pipeline.Unfinished

	mu   sync.Mutex
	bad  map[project.Name]bool
	errs []error
}

// recover fixes what a dead server left, before it returns.
func (c *core) recover(ctx context.Context) error {
	r, err := c.takeUp(ctx)
	if r == nil {
		return err
	}
	for _, u := range r.list {
		r.done(u.Project, c.pipeline.FinishNow(ctx, u))
	}
	return r.end()
}

// takeUp looks for what a dead server left, and fixes it but for the deployments that it left open: they have their places in the queue. It looks
// where something was under way, and nowhere else: a start costs the same for ten projects and ten thousand, after an orderly end, which
// leaves nothing, and after a crash. Only where there are no notes of that, at the first start of a version that keeps them, every project is
// looked at. There is no recovery where nothing is left, and where nothing could be looked at.
func (c *core) takeUp(ctx context.Context) (*recovery, error) {
	if c.clean.Load() {
		if _, full := c.underway.Pending(); full {
			c.underway.MarkAllRecovered() // the end was orderly, before there were notes
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

// done notes that the deployment of a project was ended, or could not be.
func (r *recovery) done(name project.Name, err error) {
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

// end is called when all is done. The error joins those of single projects; what could not be fixed is looked at again at the next start.
func (r *recovery) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := errors.Join(r.errs...)
	if r.full {
		var errs []error
		for name := range r.bad {
			errs = append(errs, r.c.underway.MarkUnrecovered(name))
		}
		if errors.Join(errs...) == nil {
			r.c.underway.MarkAllRecovered()
		}
		err = errors.Join(append(errs, err)...)
	}
	r.c.clean.Store(err == nil)
	return err
}

// finishLater ends what is left while the server serves.
func (s *server) finishLater(r *recovery) {
	if r == nil {
		s.reached("recovered")
		return
	}
	s.pipeline.Finish(r.list, r.done, func() {
		if err := r.end(); err != nil {
			// The projects that could be fixed are; the others say so at their next deployment.
			s.log.Error().Err(err).Msg("recovery is not complete")
		}
		s.reached("recovered")
	})
}

// sweep removes what a crash left in the repositories of a project. What is not removed now is when a repository is first used.
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

// sweepTemps removes half-written files from the folders in which the files of all projects are replaced. Trees, archives and repositories
// sweep themselves.
func (c *core) sweepTemps() {
	at := c.root.Project("any")
	dirs := []string{
		c.state.Path(), c.state.Journals(), c.root.Salt(), c.root.Pillar(), filepath.Dir(c.state.Passwords("any")), filepath.Dir(at.SaltLink()), filepath.Dir(at.PillarLink()),
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
