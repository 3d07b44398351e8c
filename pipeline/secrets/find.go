package secrets

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"corpus-git/internal/redact"
	"corpus-git/layout"
	"corpus-git/pipeline/sources"
	"corpus-git/procedures"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/schema"
)

// Repository is what is read of one repository of a project.
type Repository interface {
	sources.Refs
	List(ctx context.Context, prefix string) (map[string]project.Commit, error)
	Tree(ctx context.Context, c project.Commit, in project.Incoming) (fs.FS, error)
}

// Finder finds the secrets of projects, and remembers them.
type Finder struct {
	Memory
	Root       layout.Root
	Repository func(project.Name, project.Repo) Repository
	Tools      *procedures.Tools
	// Own are the server's own secrets; Records lists the newest deployments of a project.
	Own     func() []redact.Secret
	Records func(ctx context.Context, name project.Name, limit int) ([]project.Record, error)
	// Pins is the prefix of the refs to commits that archives hold.
	Pins string
	Log  zerolog.Logger
}

// recentDeployments is for how many deployments the values of their pillars stay secret.
const recentDeployments = 50

// Live hides the secrets of the present pillar, the new one, known recent ones, and the server itself, until Recall has read the
// recent ones and Prepare has read the pillar completely.
func (f *Finder) Live(ctx context.Context, d project.Deployment, in project.Incoming) *redact.Redactor {
	known := f.Project(d.Project)
	known.Lock()
	defer known.Unlock()
	return redact.New(f.secrets(ctx, known, d, in))
}

// Recall also hides the values of pillars of recent deployments and of archives. The first call reads the records.
func (f *Finder) Recall(ctx context.Context, d project.Deployment, in project.Incoming, hide *redact.Redactor) {
	known := f.Project(d.Project)
	known.Lock()
	defer known.Unlock()
	if known.Loaded {
		return // they were in Live
	}
	known.Loaded = true
	ctx, done := context.WithCancel(ctx)
	defer done()
	for _, c := range f.recentPillars(ctx, d.Project) {
		f.learn(ctx, known, d.Project, c, nil)
	}
	hide.Extend(f.secrets(ctx, known, d, in))
}

// secrets returns all known secrets of a project, the newest labels first. Called with known locked.
func (f *Finder) secrets(ctx context.Context, known *Project, d project.Deployment, in project.Incoming) []redact.Secret {
	// The trees are read now; they use their repository until this context ends.
	ctx, done := context.WithCancel(ctx)
	defer done()
	shown := map[string]bool{}
	if live := sources.Deployed(ctx, f.Repository(d.Project, project.PillarRepo)); live != "" {
		shown = f.learn(ctx, known, d.Project, live, nil)
	}
	if d.Repo == project.PillarRepo && d.Change.New != "" {
		shown = f.learn(ctx, known, d.Project, d.Change.New, in)
	}
	return redact.NotIn(known.Under(f.Own(), shown), func() []string { return f.codeTexts(ctx, d, in) })
}

// learn reads the secrets of one commit, and returns the values that it says may be shown. They are read again each time, because they
// include the machine's own pillar files; earlier values stay secret. A commit that is gone, or that was refused, is skipped: nothing was
// deployed from it.
func (f *Finder) learn(ctx context.Context, known *Project, name project.Name, c project.Commit, in project.Incoming) (shown map[string]bool) {
	tree, err := f.Repository(name, project.PillarRepo).Tree(ctx, c, in)
	if err != nil {
		return nil
	}
	reader := f.Tools.Pillar(name)
	reader.Declared = f.declared(ctx, project.Deployment{Project: name}, nil, false)
	found, shown := reader.Secrets(ctx, tree)
	known.Read(c, found)
	return shown
}

// recentPillars returns the commits of the pillar that recent deployments were about and that archives hold, the oldest first.
func (f *Finder) recentPillars(ctx context.Context, name project.Name) (out []project.Commit) {
	recs, err := f.Records(ctx, name, recentDeployments)
	if err != nil {
		f.Log.Warn().Err(err).Str("project", name.String()).Msg("look for recent pillars")
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
	if refs, err := f.Repository(name, project.PillarRepo).List(ctx, f.Pins); err == nil {
		for _, c := range refs {
			add(c)
		}
	}
	slices.Reverse(out)
	return out
}

// codeTexts returns the texts of the new recipe, or the live one: their content is not a secret.
func (f *Finder) codeTexts(ctx context.Context, d project.Deployment, in project.Incoming) []string {
	c := sources.Deployed(ctx, f.Repository(d.Project, project.Code))
	if d.Repo != project.Code {
		in = nil
	} else if d.Change.New != "" {
		c = d.Change.New
	}
	if c == "" {
		return nil
	}
	tree, err := f.Repository(d.Project, project.Code).Tree(ctx, c, in)
	if err != nil {
		return nil
	}
	return recipe.Texts(tree)
}

// Redactor hides the secrets of a project, those of its live and its recent pillars, in what is shown outside of a deployment.
func (f *Finder) Redactor(ctx context.Context, name project.Name) *redact.Redactor {
	d := project.Deployment{Project: name}
	hide := f.Live(ctx, d, nil)
	f.Recall(ctx, d, nil, hide)
	return hide
}

// Settings reports which settings of the command line are secret, and hides their values from now on: those whose key holds a secret in the
// live pillar or in the new one, those that the recipe declares as secret, and those whose value is a secret. If these can't be read, every
// key may be secret.
func (f *Finder) Settings(ctx context.Context, d project.Deployment, in project.Incoming, remoteLess bool, hide *redact.Redactor) []project.Setting {
	if len(d.Set) == 0 {
		return nil
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	out := slices.Clone(d.Set)
	for _, in := range f.declared(ctx, d, in, remoteLess) {
		for i, s := range out {
			path := strings.Split(s.Key, ".")
			if in == nil || in.Secret(path) || path[0] == "data" && in.Secret(path[1:]) {
				out[i].Secret = true
			}
		}
	}
	for _, tree := range f.pillars(ctx, d, in, remoteLess) {
		pillar, err := f.Tools.Pillar(d.Project).All(ctx, tree)
		known := redact.New(redact.Secrets(pillar))
		for i, s := range out {
			if err != nil || redact.Hides(pillar, d.Project.String(), s.Key) || known.String(s.Value) != s.Value {
				out[i].Secret = true
			}
		}
	}
	var secrets []redact.Secret
	for _, s := range out {
		if s.Secret {
			secrets = append(secrets, s.Secrets()...)
		}
	}
	hide.Extend(secrets)
	f.Project(d.Project).Remember(d.ID, secrets)
	return out
}

// declared returns the inputs of the live recipe, and of the pushed one. It is nil if it can't be read: then each key may be secret.
func (f *Finder) declared(ctx context.Context, d project.Deployment, in project.Incoming, remoteLess bool) (out []*schema.Inputs) {
	add := func(tree fs.FS, err error) {
		if err != nil || tree == nil {
			return
		}
		files, err := recipe.In(tree)
		if err != nil || files == nil || !recipe.Has(files, schema.InputsFile) {
			return
		}
		declared, err := procedures.Inputs(files)
		if err != nil {
			declared = nil
		}
		out = append(out, declared)
	}
	if remoteLess {
		add(sources.TreeWith(f.Root.Project(d.Project.String()).Live(), "."))
		return out
	}
	code := f.Repository(d.Project, project.Code)
	if live := sources.Deployed(ctx, code); live != "" {
		add(code.Tree(ctx, live, nil))
	}
	if d.Repo == project.Code && d.Change.New != "" {
		add(code.Tree(ctx, d.Change.New, in))
	}
	return out
}

// pillars returns the live pillar, and the pushed one.
func (f *Finder) pillars(ctx context.Context, d project.Deployment, in project.Incoming, remoteLess bool) []fs.FS {
	if remoteLess {
		if tree, err := sources.TreeWith(f.Root.Project(d.Project.String()).Pillar(), layout.PillarFile); err == nil && tree != nil {
			return []fs.FS{tree}
		}
		return nil
	}
	var out []fs.FS
	if live := sources.Deployed(ctx, f.Repository(d.Project, project.PillarRepo)); live != "" {
		if tree, err := f.Repository(d.Project, project.PillarRepo).Tree(ctx, live, nil); err == nil {
			out = append(out, tree)
		}
	}
	if d.Repo == project.PillarRepo && d.Change.New != "" {
		if tree, err := f.Repository(d.Project, project.PillarRepo).Tree(ctx, d.Change.New, in); err == nil {
			out = append(out, tree)
		}
	}
	return out
}
