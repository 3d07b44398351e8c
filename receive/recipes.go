package receive

import (
	"context"
	"errors"
	"io/fs"

	"corpus-git/git/tree"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/receive/submodule"

	"github.com/go-git/go-git/v5/plumbing"
)

// RecipeTip returns the commit that a branch or tag now points to in a repository elsewhere, under the same rules as for submodules; the error is
// fault.Busy if trying again may help, otherwise fault.Refused.
func (r *Repository) RecipeTip(ctx context.Context, url, rev string, want project.SubmoduleRequest) (project.Commit, error) {
	s, _, err := r.resolver(r.recipesDir(), 0o700, want)
	if err != nil {
		return "", err
	}
	if s.Offline {
		return "", fault.New(fault.Refused, "", "it has not been fetched yet").WithHint("a deployment or a plan fetches it")
	}
	h, err := s.Tip(ctx, url, rev)
	if err != nil {
		return "", err
	}
	return project.Commit(h.String()), nil
}

// RecipeTree returns the files of a commit of a repository elsewhere, fetched if it is missing, under the same rules as for submodules. Gitlinks in
// it are empty folders. What was fetched is durable. The file system is valid until ctx ends. Only one call that is not Offline may run at a time for
// each project.
func (r *Repository) RecipeTree(ctx context.Context, url string, c project.Commit, want project.SubmoduleRequest) (fs.FS, error) {
	s, _, err := r.resolver(r.recipesDir(), 0o700, want)
	if err != nil {
		return nil, err
	}
	o, err := r.acquire() // removing objects waits until this use ends
	if err != nil {
		return nil, err
	}
	objs, end, err := s.Commit(ctx, url, hashOf(c))
	if err != nil {
		r.all.release(o)
		return nil, err
	}
	return r.recipeFiles(ctx, o, objs, end, c)
}

// recipeFiles returns the files of a commit; objs and o are in use until ctx ends.
func (r *Repository) recipeFiles(ctx context.Context, o *opened, objs tree.Objects, end func() error, c project.Commit) (fs.FS, error) {
	files, err := tree.FS(ctx, objs, hashOf(c), "")
	if err != nil {
		err = errors.Join(err, end())
		r.all.release(o)
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		if err := end(); err != nil {
			r.all.Log.Warn().Err(err).Str("project", string(r.name)).Msg("closing the repositories of recipes")
		}
		r.all.release(o)
	})
	return files, nil
}

// KeepRecipes keeps the given commits among those that RecipeTree fetched, and allows maintenance to remove the others.
func (r *Repository) KeepRecipes(keep map[project.Commit]bool) error {
	return submodule.Keep(r.recipesDir(), func(h plumbing.Hash) bool { return keep[project.Commit(h.String())] })
}

// recipesDir returns the folder of the repositories of recipes from elsewhere, and of those that came in bundles.
func (r *Repository) recipesDir() string { return r.all.Root.Project(string(r.name)).Recipes() }
