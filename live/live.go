package live

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/procedures/extends"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/schema"
)

// Repository is what is read from a project's repository; receive's implements it.
type Repository interface {
	// Live returns the deployed branch and its commit, "" and "" before the first deployment.
	Live(context.Context) (ref string, c project.Commit, err error)
	Tree(ctx context.Context, c project.Commit, in project.Incoming) (fs.FS, error)
	Submodules(ctx context.Context, c project.Commit, in project.Incoming, want project.SubmoduleRequest) (fs.FS, error)
}

// Config configures a Projects.
type Config struct {
	Tools      *procedures.Tools
	Get        func(context.Context, project.Name) (registry.Project, error)
	Repository func(project.Name, project.Repo) Repository
	// Redactor returns a redactor for the secrets that deployments of a project hide.
	Redactor func(context.Context, project.Name) *redact.Redactor
	// Retention returns which archives are kept if a project sets nothing.
	Retention func() project.Retention
}

// Projects reads what is live in projects. It may be used by several goroutines.
type Projects struct {
	cfg Config

	mu    sync.Mutex
	known map[project.Name]Choices
}

// New returns a Projects.
func New(cfg Config) *Projects { return &Projects{cfg: cfg, known: map[project.Name]Choices{}} }

// Release is the live release of a project: its configuration, a deployment that represents it, and a redactor for its secrets.
type Release struct {
	Prepared   *procedures.Prepared
	Deployment project.Deployment
	Hide       *redact.Redactor
}

// hidden redacts a text of the project.
func (r Release) hidden(text string) string { return r.Hide.String(event.ScrubText(text)) }

// Release reads what is live in a project.
func (p *Projects) Release(ctx context.Context, name project.Name) (Release, error) {
	hide := p.cfg.Redactor(ctx, name)
	prep, d, err := p.prepared(ctx, name, hide, nil)
	return Release{prep, d, hide}, err
}

// Cfg returns the configuration of what is live.
func (p *Projects) Cfg(ctx context.Context, name project.Name) (*project.Cfg, error) {
	prep, _, err := p.prepared(ctx, name, redact.None(), nil)
	if err != nil {
		return nil, err
	}
	return prep.Cfg, nil
}

// Explain reports what each layer sets in the configuration of what is live, at a key or below: see project.Cfg.Explain.
func (p *Projects) Explain(ctx context.Context, name project.Name, key string, show project.Show) (out []project.Explained, err error) {
	_, _, err = p.prepared(ctx, name, redact.None(), func(prep *procedures.Prepared, src procedures.Sources) (err error) {
		out, err = prep.Explain(src, key, show)
		return err
	})
	return out, err
}

// Recipe reports where each file of the live recipe comes from, and, with values, what each layer sets in the configuration wherever a recipe sets something.
func (p *Projects) Recipe(ctx context.Context, name project.Name, values bool) (recipes []extends.RecipeOf, files []extends.Origin, written []extends.Written, said []project.Explained, err error) {
	_, _, err = p.prepared(ctx, name, redact.None(), func(prep *procedures.Prepared, src procedures.Sources) (err error) {
		if recipes, files, err = prep.Origins(name); err != nil {
			return err
		}
		all, err := prep.Explain(src, "", project.Show{})
		written = writtenBy(prep.Cfg, all)
		for _, v := range all {
			if values && slices.ContainsFunc(v.Layers, ofRecipe) {
				said = append(said, v)
			}
		}
		return err
	})
	return recipes, files, written, said, err
}

// ofRecipe reports whether a recipe sets the value.
func ofRecipe(l project.LayerValue) bool {
	return strings.HasSuffix(l.File, layout.PillarSample) || strings.HasSuffix(l.File, layout.SaltDir+"/"+schema.ClassesFile)
}

// writtenBy returns the files that the configuration writes, with the places that say anything of them; all is the whole configuration.
func writtenBy(cfg *project.Cfg, all []project.Explained) (out []extends.Written) {
	for _, f := range cfg.Files() {
		w := extends.Written{Path: f.Path, Kind: f.Kind(), From: []string{}}
		for _, v := range all {
			ours := strings.HasPrefix(v.Key, "files:"+f.Declared+":") || slices.ContainsFunc(f.From, func(keys []string) bool {
				return strings.HasPrefix(v.Key+":", strings.Join(keys, ":")+":")
			})
			for _, l := range slices.Backward(v.Layers) {
				at := string(l.Layer)
				if l.File != "" {
					at = l.File
				}
				if ours && !slices.Contains(w.From, at) {
					w.From = append(w.From, at)
				}
			}
		}
		out = append(out, w)
	}
	return out
}

// prepared returns the configuration of the live release, and a deployment that represents it; hide is extended by the pillar's values. then, if
// not nil, may read the sources, which are closed afterwards.
func (p *Projects) prepared(ctx context.Context, name project.Name, hide *redact.Redactor, then func(*procedures.Prepared, procedures.Sources) error) (prep *procedures.Prepared, d project.Deployment, err error) {
	// The trees use their repositories until this context ends; the caller's may last as long as the server.
	ctx, done := context.WithCancel(ctx)
	defer done()
	of, err := p.cfg.Get(ctx, name)
	if err != nil {
		return nil, d, err
	}
	src := procedures.Sources{Environment: of.Env, RemoteLess: of.RemoteLess, Node: of.Node}
	d = project.Deployment{Project: name, Trigger: project.TriggerPlan}
	if of.RemoteLess {
		at := p.cfg.Tools.Root.Project(string(name))
		if src.Code, err = openInside(at.Live(), "."); err != nil {
			return nil, d, err
		}
		if src.Pillar, err = openInside(at.Pillar(), layout.PillarFile); err != nil {
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
	src.Commit = d.Code
	if prep, err = procedures.PrepareRollback(ctx, p.cfg.Tools, d, src, hide); err != nil {
		return nil, d, err
	}
	// As in a deployment: the settings of submodules are read without the submodules, everything else with them.
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
	if then != nil {
		err = then(prep, src)
	}
	return prep, d, err
}

// submodules adds the files of submodules to src: .salt, or a folder of it, may be one. Those of the live release were fetched earlier; nothing is fetched
// now.
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

// openInside returns a folder that its owner may change while it is read, nil if it, or the given file in it, is missing.
func openInside(dir, file string) (fs.FS, error) {
	tree, err := vfs.Beneath(dir)
	if err == nil {
		_, err = fs.Stat(tree, file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return tree, err
}

// liveTree returns the files of a repository's live commit; nil if there is none.
func liveTree(ctx context.Context, r Repository) (fs.FS, project.Commit, error) {
	_, commit, err := r.Live(ctx)
	if err != nil || commit == "" {
		return nil, "", err
	}
	tree, err := r.Tree(ctx, commit, nil)
	return tree, commit, err
}
