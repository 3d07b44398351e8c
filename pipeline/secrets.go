package pipeline

import (
	"context"
	"slices"

	"corpus-git/internal/redact"
	"corpus-git/pipeline/secrets"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// recentDeployments is for how many deployments the values of their pillars stay secret.
const recentDeployments = 50

// liveRedactor hides the secrets of the present pillar, the new one, known recent ones, and the server itself, until recall has read the
// recent ones and Prepare has read the pillar completely.
func (p *Pipeline) liveRedactor(ctx context.Context, d project.Deployment, in project.Incoming) *redact.Redactor {
	known := p.known.Project(d.Project)
	known.Lock()
	defer known.Unlock()
	return redact.New(p.secrets(ctx, known, d, in))
}

// recall also hides the values of pillars of recent deployments and of archives. The first call reads the records.
func (p *Pipeline) recall(ctx context.Context, d project.Deployment, in project.Incoming, hide *redact.Redactor) {
	known := p.known.Project(d.Project)
	known.Lock()
	defer known.Unlock()
	if known.Loaded {
		return // they were in liveRedactor
	}
	known.Loaded = true
	ctx, done := context.WithCancel(ctx)
	defer done()
	for _, c := range p.recentPillars(ctx, d.Project) {
		p.learn(ctx, known, d.Project, c, nil)
	}
	hide.Extend(p.secrets(ctx, known, d, in))
}

// secrets returns all known secrets of a project, the newest labels first. Called with known locked.
func (p *Pipeline) secrets(ctx context.Context, known *secrets.Project, d project.Deployment, in project.Incoming) []redact.Secret {
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
	return redact.NotIn(known.Under(p.cfg.Secrets(), shown), p.codeTexts(ctx, d, in))
}

// learn reads the secrets of one commit, and returns the values that it says may be shown. They are read again each time, because they
// include the machine's own pillar files; earlier values stay secret. A commit that is gone, or that was refused, is skipped: nothing was
// deployed from it.
func (p *Pipeline) learn(ctx context.Context, known *secrets.Project, name project.Name, c project.Commit, in project.Incoming) (shown map[string]bool) {
	tree, err := p.cfg.Repository(name, project.PillarRepo).Tree(ctx, c, in)
	if err != nil {
		return nil
	}
	reader := p.cfg.Tools.Pillar(name)
	reader.Declared = p.declared(ctx, project.Deployment{Project: name}, nil, Settings{})
	found, shown := reader.Secrets(ctx, tree)
	known.Read(c, found)
	return shown
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
