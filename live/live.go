package live

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/project/registry"
)

// Repository is what is read of a project's repository; receive's satisfies it.
type Repository interface {
	// Live is the branch that deploys and its commit, "" and "" before the first deployment.
	Live(context.Context) (ref string, c project.Commit, err error)
	Tree(ctx context.Context, c project.Commit, in project.Incoming) (fs.FS, error)
	Submodules(ctx context.Context, c project.Commit, in project.Incoming, want project.SubmoduleRequest) (fs.FS, error)
}

// Config is what Projects works with.
type Config struct {
	Tools      *procedures.Tools
	Get        func(context.Context, project.Name) (registry.Project, error)
	Repository func(project.Name, project.Repo) Repository
	// Redactor hides what deployments of a project hide.
	Redactor func(context.Context, project.Name) *redact.Redactor
	// Retention is which archives stay where a project does not say.
	Retention func() project.Retention
}

// Projects reads what is live in projects. It may be used by several goroutines.
type Projects struct {
	cfg Config

	mu    sync.Mutex
	known map[project.Name]Choices
}

// New makes a Projects.
func New(cfg Config) *Projects { return &Projects{cfg: cfg, known: map[project.Name]Choices{}} }

// Release is what is live in a project: its configuration, a deployment that stands for it, and what hides its secrets.
type Release struct {
	Prepared   *procedures.Prepared
	Deployment project.Deployment
	Hide       *redact.Redactor
}

// hidden redacts a text of the project's.
func (r Release) hidden(text string) string { return r.Hide.String(event.ScrubText(text)) }

// Release reads what is live in a project.
func (p *Projects) Release(ctx context.Context, name project.Name) (Release, error) {
	hide := p.cfg.Redactor(ctx, name)
	prep, d, err := p.prepared(ctx, name, hide)
	return Release{prep, d, hide}, err
}

// Cfg is the configuration of what is live.
func (p *Projects) Cfg(ctx context.Context, name project.Name) (*project.Cfg, error) {
	prep, _, err := p.prepared(ctx, name, redact.None())
	if err != nil {
		return nil, err
	}
	return prep.Cfg, nil
}

// prepared is the configuration of what is live, and a deployment that stands for it; hide is extended by the pillar's values.
func (p *Projects) prepared(ctx context.Context, name project.Name, hide *redact.Redactor) (prep *procedures.Prepared, d project.Deployment, err error) {
	// The trees keep their repositories in use until this context ends, and who asks may live as long as the server.
	ctx, done := context.WithCancel(ctx)
	defer done()
	of, err := p.cfg.Get(ctx, name)
	if err != nil {
		return nil, d, err
	}
	src := procedures.Sources{Environment: of.Env, RemoteLess: of.RemoteLess}
	d = project.Deployment{Project: name, Trigger: project.TriggerPlan}
	if of.RemoteLess {
		at := p.cfg.Tools.Root.Project(string(name))
		if src.Code, err = beneath(at.Live(), "."); err != nil {
			return nil, d, err
		}
		if src.Pillar, err = beneath(at.Pillar(), layout.PillarFile); err != nil {
			return nil, d, err
		}
	} else {
		if src.Code, d.Code, err = liveTree(ctx, p.cfg.Repository(name, project.Code)); err != nil {
			return nil, d, err
		}
		if src.Pillar, d.Pillar, err = liveTree(ctx, p.cfg.Repository(name, project.PillarRepo)); err != nil {
			return nil, d, err
		}
	}
	if prep, err = procedures.PrepareRollback(ctx, p.cfg.Tools, d, src, hide); err != nil {
		return nil, d, err
	}
	// As in a deployment: what a project wants done about submodules is read without them, everything else with them.
	if want := prep.Cfg.Submodules(); want.Fetch && !of.RemoteLess {
		more, err := p.submodules(ctx, d, &src, want)
		if err != nil {
			return nil, d, err
		}
		if more {
			if prep, err = procedures.PrepareRollback(ctx, p.cfg.Tools, d, src, hide); err != nil {
				return nil, d, err
			}
		}
	}
	return prep, d, nil
}

// submodules puts the files of submodules in their places in src: .salt, or a folder of it, may be one. What is live was fetched; nothing is now.
func (p *Projects) submodules(ctx context.Context, d project.Deployment, src *procedures.Sources, want project.Submodules) (more bool, err error) {
	for _, x := range []struct {
		repo   project.Repo
		commit project.Commit
		tree   *fs.FS
	}{{project.Code, d.Code, &src.Code}, {project.PillarRepo, d.Pillar, &src.Pillar}} {
		if x.commit == "" {
			continue
		}
		tree, err := p.cfg.Repository(d.Project, x.repo).Submodules(ctx, x.commit, nil, project.SubmoduleRequest{Submodules: want, Offline: true})
		if err != nil {
			return false, err
		}
		if tree != nil {
			*x.tree, more = tree, true
		}
	}
	return more, nil
}

// beneath is a folder that its owner may change while it is read, nil where it, or the file in it that is wanted, is missing.
func beneath(dir, file string) (fs.FS, error) {
	tree, err := vfs.Beneath(dir)
	if err == nil {
		_, err = fs.Stat(tree, file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return tree, err
}

// liveTree are the files of a repository's commit that is live; nil where none is.
func liveTree(ctx context.Context, r Repository) (fs.FS, project.Commit, error) {
	_, commit, err := r.Live(ctx)
	if err != nil || commit == "" {
		return nil, "", err
	}
	tree, err := r.Tree(ctx, commit, nil)
	return tree, commit, err
}
