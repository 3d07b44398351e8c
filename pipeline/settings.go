package pipeline

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/schema"
)

// settings reports which settings of the command line are secret, and hides their values from now on: those whose key holds a secret in the
// live pillar or in the new one, those that the recipe declares as secret, and those whose value is a secret. If these can't be read, every
// key may be secret.
func (p *Pipeline) settings(ctx context.Context, d project.Deployment, in project.Incoming, set Settings, hide *redact.Redactor) []project.Setting {
	if len(d.Set) == 0 {
		return nil
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	out := slices.Clone(d.Set)
	for _, in := range p.declared(ctx, d, in, set) {
		for i, s := range out {
			path := strings.Split(s.Key, ".")
			if in == nil || in.Secret(path) || path[0] == "data" && in.Secret(path[1:]) {
				out[i].Secret = true
			}
		}
	}
	for _, tree := range p.pillars(ctx, d, in, set) {
		pillar, err := p.cfg.Tools.Pillar(d.Project).All(ctx, tree)
		known := redact.New(redact.Secrets(pillar, nil))
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
	p.known.Project(d.Project).Remember(d.ID, secrets)
	return out
}

// declared returns the inputs of the live recipe, and of the pushed one. It is nil if it can't be read: then each key may be secret.
func (p *Pipeline) declared(ctx context.Context, d project.Deployment, in project.Incoming, set Settings) (out []*schema.Inputs) {
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
	if set.RemoteLess {
		add(treeWith(p.cfg.Root.Project(d.Project.String()).Live(), "."))
		return out
	}
	code := p.cfg.Repository(d.Project, project.Code)
	if live := deployedCommit(ctx, code); live != "" {
		add(code.Tree(ctx, live, nil))
	}
	if d.Repo == project.Code && d.Change.New != "" {
		add(code.Tree(ctx, d.Change.New, in))
	}
	return out
}

// pillars returns the live pillar, and the pushed one.
func (p *Pipeline) pillars(ctx context.Context, d project.Deployment, in project.Incoming, set Settings) []fs.FS {
	if set.RemoteLess {
		if tree, err := treeWith(p.cfg.Root.Project(d.Project.String()).Pillar(), layout.PillarFile); err == nil && tree != nil {
			return []fs.FS{tree}
		}
		return nil
	}
	var out []fs.FS
	if live := deployedCommit(ctx, p.cfg.Repository(d.Project, project.PillarRepo)); live != "" {
		if tree, err := p.cfg.Repository(d.Project, project.PillarRepo).Tree(ctx, live, nil); err == nil {
			out = append(out, tree)
		}
	}
	if d.Repo == project.PillarRepo && d.Change.New != "" {
		if tree, err := p.cfg.Repository(d.Project, project.PillarRepo).Tree(ctx, d.Change.New, in); err == nil {
			out = append(out, tree)
		}
	}
	return out
}

// printSettings tells the pusher what was set. The values are redacted like all output.
func (dep *deployment) printSettings() {
	d := dep.record().Deployment
	if len(d.Set) == 0 {
		return
	}
	dep.log.Append(event.Event{Kind: event.Note, Text: "set on the command line: " + project.ShowSettings(d.Set)})
}
