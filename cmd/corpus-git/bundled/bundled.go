// Package bundled connects a repository of this machine with package bundle/local: with the limits of what it takes, and, for the code, the records of the recipes that its
// releases extend.
//
// It owns how an entry of extends.yaml is written in a bundle. It resolves no name: a release has the recipes with which it was first deployed here.
package bundled

import (
	"context"
	"io"
	"maps"
	"slices"

	"corpus-git/bundle"
	"corpus-git/git/pack"
	"corpus-git/internal/fault"
	"corpus-git/procedures/extends"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/receive"
)

// Repository is one repository of a project; it implements local.Repository.
type Repository struct {
	*receive.Repository
	// Limits limit a pack.
	Limits func() pack.Limits
	// Pins are the records of the project's releases.
	Pins extends.Pins
}

// TakePack implements bundle.Repository.
func (r Repository) TakePack(ctx context.Context, in io.Reader, commit project.Commit, ref string, complete func() error) error {
	return r.Repository.TakePack(ctx, in, r.Limits(), commit, ref, complete)
}

// TakeSubmodules implements bundle.Repository.
func (r Repository) TakeSubmodules(ctx context.Context, in io.Reader, commits []project.Commit, complete func() error) error {
	return r.Repository.TakeSubmodules(ctx, in, r.Limits(), commits, complete)
}

// Recipes implements bundle.Repository.
func (r Repository) Recipes(ctx context.Context, of project.Commit) ([]bundle.Recipe, error) {
	known, err := r.Pins.Of(of)
	if err != nil {
		return nil, err
	}
	if known == nil {
		return nil, r.extendsNothing(ctx, of)
	}
	entries := slices.Sorted(maps.Keys(known.Pins))
	out := make([]bundle.Recipe, len(entries))
	list := make([]receive.RecipeOf, len(entries))
	for i, entry := range entries {
		p, err := extends.ParseEntry(entry)
		if err != nil {
			return nil, fault.New(fault.Internal, "read the commits of recipes", "%w", err)
		}
		out[i] = bundle.Recipe{Project: p.Name, URL: p.URL, Ref: p.Rev, Commit: known.Pins[entry]}
		list[i] = source(p, out[i].Commit, known.Parts)
	}
	parts, err := r.RecipeParts(ctx, list)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "the recipes of "+of.Short(), "%w", err)
	}
	for i := range out {
		out[i].Part = parts[i]
	}
	return out, nil
}

// source returns where a recipe is read from here.
func source(of extends.Parent, c project.Commit, parts map[project.Commit]project.Commit) receive.RecipeOf {
	if parts != nil {
		return receive.RecipeOf{Commit: parts[c], Part: true}
	}
	return receive.RecipeOf{Project: of.Name, Commit: c}
}

// extendsNothing refuses a commit that extends recipes.
func (r Repository) extendsNothing(ctx context.Context, of project.Commit) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	code, err := r.Tree(ctx, of, nil)
	if err != nil {
		return err
	}
	files, err := recipe.In(code)
	if err != nil {
		return err
	}
	parents, err := extends.Read(files, "")
	if err == nil && len(parents) > 0 {
		err = fault.New(fault.Refused, "", "with which recipes %s was released is not known here", of.Short()).WithHint("deploy it here first")
	}
	return err
}

// RecipesCame implements local.Repository.
func (r Repository) RecipesCame(of project.Commit) (recorded, came bool, err error) {
	known, err := r.Pins.Of(of)
	return known != nil, known != nil && known.Parts != nil, err
}

// recent is the number of earlier releases whose recipes another machine is expected to have.
const recent = 20

// WriteRecipes implements bundle.Repository.
func (r Repository) WriteRecipes(ctx context.Context, w io.Writer, of project.Commit, recipes []bundle.Recipe, have []project.Commit) (int, error) {
	own, err := r.Pins.Of(of)
	if err != nil {
		return 0, err
	}
	if own == nil {
		return 0, fault.New(fault.Busy, "", "the recipes of %s are not recorded any more", of.Short())
	}
	latest, err := r.Pins.Latest(recent)
	if err != nil {
		return 0, err
	}
	var want, known []receive.RecipeOf
	for _, x := range recipes {
		is := extends.Parent{Name: x.Project, URL: x.URL}
		want = add(want, source(is, x.Commit, own.Parts))
		for _, rel := range latest {
			for entry, c := range rel.Pins {
				if p, err := extends.ParseEntry(entry); err == nil && p.ID() == is.ID() {
					known = add(known, source(p, c, rel.Parts))
				}
			}
		}
	}
	return r.Repository.WriteRecipes(ctx, w, want, known, have)
}

func add(list []receive.RecipeOf, of receive.RecipeOf) []receive.RecipeOf {
	if slices.Contains(list, of) {
		return list
	}
	return append(list, of)
}

// TakeRecipes implements bundle.Repository.
func (r Repository) TakeRecipes(ctx context.Context, in io.Reader, of project.Commit, recipes []bundle.Recipe, brought []project.Commit, complete func() error) error {
	rel := extends.Release{Pins: map[string]project.Commit{}, Parts: map[project.Commit]project.Commit{}}
	named := map[project.Commit]string{}
	for i, x := range recipes {
		p := extends.Parent{Name: x.Project, URL: x.URL, Rev: x.Ref}
		if got, err := extends.ParseEntry(p.String()); err != nil || got != p {
			return fault.New(fault.Refused, "", "the bundle's manifest: recipe %d is not one that a project can extend", i+1) // its URL may have a password
		}
		if part, ok := rel.Parts[x.Commit]; ok && part != x.Part {
			return fault.New(fault.Refused, "", "the bundle's manifest: the recipe %s has two forms of %s", x, x.Commit.Short())
		}
		rel.Pins[p.String()], rel.Parts[x.Commit] = x.Commit, x.Part
		named[x.Part] = x.String()
	}
	if err := r.Pins.Agrees(of, rel.Pins); err != nil {
		return err
	}
	return r.Repository.TakeRecipes(ctx, in, r.Limits(), named, brought, complete, func() error { return r.Pins.Receive(of, rel) })
}
