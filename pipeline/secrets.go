package pipeline

import (
	"context"
	"slices"
	"sync"

	"corpus-git/internal/redact"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// recentPillars is for how many commits of a pillar, and recentDeployments for how many deployments, old values stay secret: a file on the
// machine may contain a value until it is written again, and diffs show removed values.
const recentPillars, recentDeployments = 20, 50

// mostSecrets is the number of secrets up to which a commit keeps those of earlier reads.
const mostSecrets = 2000

// knownSecrets knows the secrets of the recent commits of each project's pillar.
type knownSecrets struct {
	mu sync.Mutex
	of map[project.Name]*recentSecrets
}

// recentSecrets are those of one project.
type recentSecrets struct {
	mu      sync.Mutex
	loaded  bool
	commits []project.Commit // the newest last
	of      map[project.Commit]pillarValues
}

// pillarValues are the secrets of one commit, and the values that it says may be shown.
type pillarValues struct {
	secrets []redact.Secret
	shown   map[string]bool
}

func (k *knownSecrets) project(name project.Name) *recentSecrets {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[project.Name]*recentSecrets{}
	}
	r := k.of[name]
	if r == nil {
		r = &recentSecrets{of: map[project.Commit]pillarValues{}}
		k.of[name] = r
	}
	return r
}

// forget drops the secrets of a project that was deleted.
func (k *knownSecrets) forget(name project.Name) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, name)
}

// add makes a commit the newest one, and forgets the oldest of too many.
func (r *recentSecrets) add(c project.Commit, v pillarValues) {
	r.commits = append(slices.DeleteFunc(r.commits, func(x project.Commit) bool { return x == c }), c)
	r.of[c] = v
	for len(r.commits) > recentPillars {
		delete(r.of, r.commits[0])
		r.commits = r.commits[1:]
	}
}

// remember keeps secrets of one deployment's command line as if a pillar had had them.
func (r *recentSecrets) remember(id project.ID, secrets []redact.Secret) {
	if len(secrets) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(project.Commit("settings of "+id), pillarValues{secrets: secrets})
}

// liveRedactor hides the secrets of the present pillar, the new one, known recent ones, and the server itself, until recall has read the
// recent ones and Prepare has read the pillar completely.
func (p *Pipeline) liveRedactor(ctx context.Context, d project.Deployment, in project.Incoming) *redact.Redactor {
	known := p.known.project(d.Project)
	known.mu.Lock()
	defer known.mu.Unlock()
	return redact.New(p.secrets(ctx, known, d, in))
}

// recall also hides the values of pillars of recent deployments and of archives. The first call reads the records.
func (p *Pipeline) recall(ctx context.Context, d project.Deployment, in project.Incoming, hide *redact.Redactor) {
	known := p.known.project(d.Project)
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.loaded {
		return // they were in liveRedactor
	}
	known.loaded = true
	ctx, done := context.WithCancel(ctx)
	defer done()
	for _, c := range p.recentPillars(ctx, d.Project) {
		p.learn(ctx, known, d.Project, c, nil)
	}
	hide.Extend(p.secrets(ctx, known, d, in))
}

// secrets returns all known secrets of a project, the newest labels first. Called with known.mu held.
func (p *Pipeline) secrets(ctx context.Context, known *recentSecrets, d project.Deployment, in project.Incoming) []redact.Secret {
	// The trees are read now; they use their repository until this context ends.
	ctx, done := context.WithCancel(ctx)
	defer done()
	shown := map[string]bool{}
	if live := deployedCommit(ctx, p.cfg.Repository(d.Project, project.PillarRepo)); live != "" {
		shown = p.learn(ctx, known, d.Project, live, nil)
	}
	if d.Repo == project.PillarRepo && d.Change.New != "" {
		shown = p.learn(ctx, known, d.Project, d.Change.New, in)
	}
	secrets := p.cfg.Secrets()
	had := map[string]bool{}
	for _, c := range slices.Backward(known.commits) {
		for _, s := range known.of[c].secrets {
			// What the newest pillar says may be shown is, though an older one did not.
			if !had[s.Value] && !shown[s.Value] {
				had[s.Value] = true
				secrets = append(secrets, s)
			}
		}
	}
	return redact.NotIn(secrets, p.codeTexts(ctx, d, in))
}

// learn reads the secrets of one commit, and returns the values that it says may be shown. They are read again each time, because they
// include the machine's own pillar files; earlier values stay secret. A commit that is gone, or that was refused, is skipped: nothing was
// deployed from it.
func (p *Pipeline) learn(ctx context.Context, known *recentSecrets, name project.Name, c project.Commit, in project.Incoming) (shown map[string]bool) {
	tree, err := p.cfg.Repository(name, project.PillarRepo).Tree(ctx, c, in)
	if err != nil {
		return nil
	}
	v := pillarValues{}
	reader := p.cfg.Tools.Pillar(name)
	reader.Declared = p.declared(ctx, project.Deployment{Project: name}, nil, Settings{})
	v.secrets, v.shown = reader.Secrets(ctx, tree)
	had := map[string]bool{}
	for _, s := range v.secrets {
		had[s.Value] = true
	}
	for _, s := range known.of[c].secrets {
		if len(v.secrets) < mostSecrets && !had[s.Value] {
			v.secrets = append(v.secrets, s)
		}
	}
	known.add(c, v)
	return v.shown
}

// recentPillars returns the commits of the pillar that recent deployments were about and that archives hold, the oldest first.
func (p *Pipeline) recentPillars(ctx context.Context, name project.Name) (out []project.Commit) {
	recs, err := p.records.List(ctx, name, recentDeployments)
	if err != nil {
		p.cfg.Logger.Warn().Err(err).Str("project", name.String()).Msg("look for recent pillars")
	}
	add := func(c project.Commit) {
		if c != "" && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for _, rec := range recs {
		add(rec.Pillar)
		add(rec.LivePillar)
	}
	if refs, err := p.cfg.Repository(name, project.PillarRepo).List(ctx, archivePins); err == nil {
		for _, c := range refs {
			add(c)
		}
	}
	slices.Reverse(out)
	return out
}

// codeTexts returns the texts of the new recipe, or the live one: their content is not a secret.
func (p *Pipeline) codeTexts(ctx context.Context, d project.Deployment, in project.Incoming) []string {
	c := deployedCommit(ctx, p.cfg.Repository(d.Project, project.Code))
	if d.Repo != project.Code {
		in = nil
	} else if d.Change.New != "" {
		c = d.Change.New
	}
	if c == "" {
		return nil
	}
	tree, err := p.cfg.Repository(d.Project, project.Code).Tree(ctx, c, in)
	if err != nil {
		return nil
	}
	return recipe.Texts(tree)
}

// Redactor hides the secrets of a project, those of its live and its recent pillars, in what is shown outside of a deployment.
func (p *Pipeline) Redactor(ctx context.Context, name project.Name) *redact.Redactor {
	d := project.Deployment{Project: name}
	hide := p.liveRedactor(ctx, d, nil)
	p.recall(ctx, d, nil, hide)
	return hide
}
