package live

import (
	"context"

	"corpus-git/project"
)

// Choices are a project's settings for the server's behaviour between deployments.
type Choices struct {
	code, pillar project.Commit
	server       project.Retention
	store, set   bool
	keep         project.Retention
}

// StoreOtherBranches reports whether pushes to branches other than the deployed one are stored; set is false if the project does not say.
func (c Choices) StoreOtherBranches() (store, set bool) { return c.store, c.set }

// Retention returns which of the project's archives are kept.
func (c Choices) Retention() project.Retention { return c.keep }

// Choices returns the choices of a project. They are cached while the live release and the server's configuration stay the same. There are
// none if the configuration can't be read.
func (p *Projects) Choices(ctx context.Context, name project.Name) Choices {
	now := Choices{server: p.cfg.Retention()}
	now.keep = now.server
	for repo, to := range map[project.Repo]*project.Commit{project.Code: &now.code, project.PillarRepo: &now.pillar} {
		if _, commit, err := p.cfg.Repository(name, repo).Live(ctx); err == nil {
			*to = commit
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Without repositories there is no key for the cache.
	old, ok := p.known[name]
	if ok && old.code == now.code && old.pillar == now.pillar && old.server == now.server && now.code+now.pillar != "" {
		return old
	}
	if cfg, err := p.Cfg(ctx, name); err == nil {
		now.store, now.set = cfg.StoreOtherBranches()
		now.keep = cfg.Retention()
	}
	p.known[name] = now
	return now
}
