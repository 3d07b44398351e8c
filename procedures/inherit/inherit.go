// Package inherit merges the recipe of a project over those that it extends, from projects of this server and from URLs.
//
// It determines their commits for a release, and stores them: a release always keeps the same ones. Package extends reads, orders and merges the layers. It runs
// nothing, and it never deploys a recipe. For explanations it knows what PILLAR.sample of each recipe sets, before they are merged.
//
// A crash between Read and Keep leaves nothing behind; one during Keep leaves pins that the next Keep of the project completes or removes.
package inherit

import (
	"context"
	"fmt"
	"io/fs"
	"maps"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/extends"
	"corpus-git/project"
)

// Repository is what is needed from the code's repository of a project; procedures.Repository satisfies it.
type Repository interface {
	Tree(ctx context.Context, c project.Commit, in project.Incoming) (fs.FS, error)
	// Commit returns the commit that a ref points to, directly or through tags, ""> if there is none; List returns the refs below prefix, hidden ones included.
	Commit(ctx context.Context, ref string) (project.Commit, error)
	List(ctx context.Context, prefix string) (map[string]project.Commit, error)
	CompareAndSwap(ctx context.Context, c project.Change) error
}

// Upstream reads recipes from other servers for a project, and stores them, and those that came in bundles; receive's Repository satisfies it.
type Upstream interface {
	RecipeTip(ctx context.Context, url, rev string, want project.SubmoduleRequest) (project.Commit, error)
	RecipeTree(ctx context.Context, url string, c project.Commit, want project.SubmoduleRequest) (fs.FS, error)
	KeepRecipes(keep map[project.Commit]bool) error
	// TakenRecipe returns the files of a commit that came in a bundle.
	TakenRecipe(ctx context.Context, c project.Commit) (fs.FS, error)
	// HoldRecipes keeps bundles from bringing recipes until release is called.
	HoldRecipes() (release func())
}

// Server provides the recipes.
type Server struct {
	FS    vfs.FS
	Root  layout.Root
	State layout.State
	// Code opens the code's repository of a project. Without it no recipe can be extended: that is an error.
	Code func(project.Name) Repository
	// Upstream reads recipes from other servers; nil means that none are read.
	Upstream func(project.Name) Upstream
	// Live returns the commit that is live in a project, "" if none is; nil means that none is.
	Live func(context.Context, project.Name) (project.Commit, error)
}

// Request is about one release of a project.
type Request struct {
	Name project.Name
	// Commit is the commit of the release, ""> if it has none: a working tree.
	Commit project.Commit
	// From is the project that released the commit with its recipes, when it is promoted; otherwise "">.
	From project.Name
	// Fetch is called with what is fetched; nil fetches nothing.
	Fetch func(line string)
}

// Recipes are the recipes that a project's own extends. On nil, Keep and Classes do nothing.
type Recipes struct {
	// Own is the project's own recipe, nil if it has none, and Layers those below it, the nearest first.
	Own    fs.FS
	Layers []extends.Layer
	// Commit is the commit of the release.
	Commit project.Commit
	// found are the commits of the entries, for a release that has a commit.
	found map[string]project.Commit
	// parts is set if they came in a bundle: see extends.Release.
	parts map[project.Commit]project.Commit
	pins  extends.Pins
	// samples are what the function that Sample returns has read, the weakest first.
	samples []sample
}

// Read merges the recipe of a commit over those that it extends. It stores nothing.
func (t Server) Read(ctx context.Context, req Request, files fs.FS) (fs.FS, *Recipes, error) {
	in := &Recipes{Own: files, Commit: req.Commit, pins: extends.Pins{FS: t.FS, Path: t.State.Extends(req.Name.String())}}
	parents, err := extends.Read(files, "")
	if err != nil || len(parents) == 0 {
		return files, in, err
	}
	if t.Code == nil {
		return nil, nil, fault.New(fault.Refused, "", "%s/%s: the recipes it extends are on the server", layout.SaltDir, extends.File).
			WithHint("use a plan:  git push prod HEAD:refs/plan/now")
	}
	var known extends.Release
	if req.Commit != "" {
		if known, err = t.released(in.pins, req); err != nil {
			return nil, nil, err
		}
		in.parts = known.Parts
	}
	from := recipes{t: t, name: req.Name, fetch: req.Fetch, parts: in.parts}
	if in.Layers, in.found, err = extends.Resolve(ctx, req.Name, parents, from, known.Pins); err != nil || len(in.Layers) == 0 {
		return files, in, err
	}
	all := []fs.FS{files}
	for _, l := range in.Layers {
		all = append(all, l.Files)
	}
	return extends.Overlay(all...), in, nil
}

// released returns the record of the commit of a release, an empty one if there is none. A promoted release has the commits of the project that it is promoted from; what the
// project has had with the same commit before stays, so different ones are fault.Refused.
func (t Server) released(own extends.Pins, req Request) (r extends.Release, err error) {
	known, err := own.Of(req.Commit)
	if err == nil && known != nil {
		r = *known
	}
	if err != nil || req.From == "" || req.From == req.Name {
		return r, err
	}
	from, err := extends.Pins{FS: t.FS, Path: t.State.Extends(req.From.String())}.Of(req.Commit)
	switch {
	case err != nil:
		return r, err
	case from == nil:
		return r, fault.New(fault.Refused, "", "with which recipes %s released %s is not known any more", req.From, req.Commit.Short()).WithHint("deploy it there again, or push it to %s", req.Name)
	case known != nil && !maps.Equal(known.Pins, from.Pins):
		return r, fault.New(fault.Refused, "", "%s had %s before, with other commits of the recipes that it extends than %s", req.Name, req.Commit.Short(), req.From).
			WithHint("a release keeps its recipes: promote a new commit, which may be an empty one")
	case known != nil:
		return r, nil
	}
	return *from, nil
}

// Notes returns notes on what a recipe extends.
func (in *Recipes) Notes() (out []string) {
	for _, l := range in.Layers {
		out = append(out, fmt.Sprintf("extends %s, its recipe at %s", l.Parent, l.Commit.Short()))
	}
	return out
}

// Keep pins the commits of the release's entries, in their repositories, so that they are kept whatever happens to their branches. It is durable on return.
func (in *Recipes) Keep(ctx context.Context, t Server, name project.Name) error {
	if in == nil || in.Commit == "" || len(in.found) == 0 {
		return nil
	}
	ref := func(c project.Commit) string { return extends.Refs + name.String() + "/" + string(c) }
	if t.Upstream != nil {
		defer t.Upstream(name).HoldRecipes()()
	}
	for _, l := range in.Layers {
		if l.URL != "" || in.parts != nil {
			continue // its commit is in the project's own repositories
		}
		repo := t.Code(l.Name)
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
	needed, err := in.pins.Keep(in.Commit, extends.Release{Pins: in.found, Parts: in.parts})
	if err != nil {
		return err
	}
	for of, commits := range needed.Projects {
		repo := t.Code(of)
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
	if err := t.Upstream(name).KeepRecipes(needed.Stored); err != nil {
		return fault.New(fault.KindOf(err), "keep the recipes from elsewhere", "%w", err)
	}
	return nil
}
