package procedures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/procedures/extends"
	"corpus-git/procedures/pillar"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// inherited are the recipes that a project's own extends.
type inherited struct {
	own    fs.FS
	layers []extends.Layer
	// found are the commits of the entries, for a release that has a commit.
	found map[string]project.Commit
	code  project.Commit
	pins  extends.Pins
}

// inherit merges the recipe of a commit over those that it extends.
func (t *Tools) inherit(ctx context.Context, name project.Name, src Sources, files fs.FS) (fs.FS, *inherited, error) {
	in := &inherited{own: files, code: src.Commit, pins: extends.Pins{FS: t.FS, Path: t.State.Extends(name.String())}}
	parents, err := extends.Read(files, "")
	if err != nil || len(parents) == 0 {
		return files, in, err
	}
	if src.alone || t.Repository == nil {
		return nil, nil, fault.New(fault.Refused, "", "%s/%s: the recipes it extends are on the server", layout.SaltDir, extends.File).
			WithHint("use a plan:  git push prod HEAD:refs/plan/now")
	}
	var pinned map[string]project.Commit
	if src.Commit != "" {
		if pinned, err = in.pins.Of(src.Commit); err != nil {
			return nil, nil, err
		}
		if src.From != "" && src.From != name {
			if pinned, err = t.releasedBy(src.From, src.Commit, name, pinned); err != nil {
				return nil, nil, err
			}
		}
	}
	if in.layers, in.found, err = extends.Resolve(ctx, name, parents, recipes{t, name, src.Fetch}, pinned); err != nil || len(in.layers) == 0 {
		return files, in, err
	}
	all := []fs.FS{files}
	for _, l := range in.layers {
		all = append(all, l.Files)
	}
	return extends.Overlay(all...), in, nil
}

// releasedBy returns the commits that a release of the project from extends. own are those with which the project to had the same commit before: a release keeps
// them, so other ones are fault.Refused.
func (t *Tools) releasedBy(from project.Name, c project.Commit, to project.Name, own map[string]project.Commit) (map[string]project.Commit, error) {
	pinned, err := extends.Pins{FS: t.FS, Path: t.State.Extends(from.String())}.Of(c)
	switch {
	case err != nil:
		return nil, err
	case pinned == nil:
		return nil, fault.New(fault.Refused, "", "with which recipes %s released %s is not known any more", from, c.Short()).WithHint("deploy it there again, or push it to %s", to)
	case own != nil && !maps.Equal(own, pinned):
		return nil, fault.New(fault.Refused, "", "%s had %s before, with other commits of the recipes that it extends than %s", to, c.Short(), from).
			WithHint("a release keeps its recipes: promote a new commit, which may be an empty one")
	}
	return pinned, nil
}

// notes say what a recipe extends.
func (in *inherited) notes() (out []string) {
	for _, l := range in.layers {
		out = append(out, fmt.Sprintf("extends %s, its recipe at %s", l.Parent, l.Commit.Short()))
	}
	return out
}

// sample reads PILLAR.sample of each recipe, the weakest first: mappings merge. It is nil if none has one.
func (in *inherited) sample(data *pillar.Reader, own fs.FS) func(context.Context) (*py.Dict, error) {
	type source struct {
		files fs.FS
		shown string
	}
	var of []source
	for i := len(in.layers) - 1; i >= 0; i-- {
		of = append(of, source{in.layers[i].Files, in.layers[i].ID() + ":" + layout.SaltDir + "/" + layout.PillarSample})
	}
	of = append(of, source{own, layout.SaltDir + "/" + layout.PillarSample})
	var has []source
	for _, s := range of {
		if s.files != nil && recipe.Has(s.files, layout.PillarSample) {
			has = append(has, s)
		}
	}
	if len(has) == 0 {
		return nil
	}
	return func(ctx context.Context) (*py.Dict, error) {
		out := py.NewDict()
		for _, s := range has {
			d, edits, err := data.Sample(ctx, s.files, layout.PillarSample, s.shown)
			if err == nil {
				err = extends.Merge(out, d, edits)
			}
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	}
}

// store pins the commits of the release's entries, in their repositories, so that they stay whatever happens to their branches. Durable on return.
func (in *inherited) store(ctx context.Context, t *Tools, name project.Name) error {
	if in == nil || in.code == "" || len(in.found) == 0 {
		return nil
	}
	ref := func(c project.Commit) string { return extends.Refs + name.String() + "/" + string(c) }
	for _, l := range in.layers {
		if l.URL != "" {
			continue // its commit is in the project's own repositories
		}
		repo := t.Repository(l.Name, project.Code)
		if have, err := repo.Commit(ctx, ref(l.Commit)); err != nil || have == l.Commit {
			if err != nil {
				return err
			}
			continue
		}
		if err := repo.CompareAndSwap(ctx, project.Change{Ref: ref(l.Commit), New: l.Commit}); err != nil {
			return fault.New(fault.KindOf(err), "keep the recipe of "+l.Name.String(), "%w", err)
		}
	}
	needed, err := in.pins.Keep(in.code, in.found)
	if err != nil {
		return err
	}
	elsewhere := map[project.Commit]bool{}
	for of, commits := range needed {
		if of.URL != "" {
			maps.Copy(elsewhere, commits)
			continue
		}
		repo := t.Repository(of.Name, project.Code)
		have, err := repo.List(ctx, extends.Refs+name.String()+"/")
		if err != nil {
			continue // destroyed meanwhile: nothing is left to unpin
		}
		for r, c := range have {
			if !commits[c] {
				if err := repo.CompareAndSwap(ctx, project.Change{Ref: r, Old: c}); err != nil {
					return err
				}
			}
		}
	}
	if t.Upstream == nil {
		return nil
	}
	if err := t.Upstream(name).KeepRecipes(elsewhere); err != nil {
		return fault.New(fault.KindOf(err), "keep the recipes from elsewhere", "%w", err)
	}
	return nil
}

// recipes implements extends.Source by the projects of this server, and by URLs.
type recipes struct {
	t     *Tools
	name  project.Name
	fetch func(line string)
}

// upstream returns a search elsewhere, with the rules of submodules and the key of the project's user.
func (r recipes) upstream() (Upstream, project.SubmoduleRequest, error) {
	if r.t.Upstream == nil {
		return nil, project.SubmoduleRequest{}, fault.New(fault.Refused, "", "recipes from URLs are fetched only by a server")
	}
	return r.t.Upstream(r.name), project.SubmoduleRequest{
		Submodules: project.Submodules{Fetch: true, User: r.name.User()}, Offline: r.fetch == nil, Say: r.fetch,
	}, nil
}

// Resolve implements extends.Source.
func (r recipes) Resolve(ctx context.Context, p extends.Parent) (project.Commit, error) {
	if p.URL != "" {
		if c, ok := project.ParseCommit(p.Rev); ok && c != "" {
			return c, nil
		}
		from, want, err := r.upstream()
		if err != nil {
			return "", err
		}
		return from.RecipeTip(ctx, p.URL, p.Rev, want)
	}
	if _, err := os.Stat(r.t.Root.Project(p.Name.String()).ProjectGit()); errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Refused, "", "this server has no project %s", p.Name)
	}
	if p.Rev == "" {
		if r.t.Live == nil {
			return "", fault.New(fault.Refused, "", "no release is live here")
		}
		c, err := r.t.Live(ctx, p.Name)
		if err == nil && c == "" {
			err = fault.New(fault.Refused, "", "%s has no live release", p.Name)
		}
		return c, err
	}
	if c, ok := project.ParseCommit(p.Rev); ok {
		return c, nil
	}
	repo := r.t.Repository(p.Name, project.Code)
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if c, err := repo.Commit(ctx, prefix+p.Rev); err != nil || c != "" {
			return c, err
		}
	}
	return "", fault.New(fault.Refused, "", "%s has no branch or tag %s", p.Name, strings.TrimSpace(p.Rev))
}

// Recipe implements extends.Source.
func (r recipes) Recipe(ctx context.Context, p extends.Parent, c project.Commit) (fs.FS, error) {
	if p.URL != "" {
		from, want, err := r.upstream()
		if err != nil {
			return nil, err
		}
		code, err := from.RecipeTree(ctx, p.URL, c, want)
		if err != nil {
			return nil, err
		}
		return recipe.In(code)
	}
	code, err := r.t.Repository(p.Name, project.Code).Tree(ctx, c, nil)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "", "commit %s of %s cannot be read: %w", c.Short(), p.Name, err)
	}
	return recipe.In(code)
}
