package inherit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/procedures/extends"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// recipes implements extends.Source with the projects of this server, and with URLs; or with what came in a bundle, and nothing else.
type recipes struct {
	t     Server
	name  project.Name
	fetch func(line string)
	parts map[project.Commit]project.Commit // Recipes.parts
}

// upstream returns a search in another server's repository, with the rules of submodules and the key
// of the project's user.
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
	if r.parts != nil {
		return "", fault.New(fault.Refused, "", "the bundle that brought this commit does not name it").WithHint("push a new commit to the server that made the bundle")
	}
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
	repo := r.t.Code(p.Name)
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if c, err := repo.Commit(ctx, prefix+p.Rev); err != nil || c != "" {
			return c, err
		}
	}
	return "", fault.New(fault.Refused, "", "%s has no branch or tag %s", p.Name, strings.TrimSpace(p.Rev))
}

// Recipe implements extends.Source.
func (r recipes) Recipe(ctx context.Context, p extends.Parent, c project.Commit) (fs.FS, error) {
	if r.parts != nil {
		return r.taken(ctx, c)
	}
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
	code, err := r.t.Code(p.Name).Tree(ctx, c, nil)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "", "commit %s of %s cannot be read: %w", c.Short(), p.Name, err)
	}
	return recipe.In(code)
}

// taken returns a recipe that came in a bundle.
func (r recipes) taken(ctx context.Context, c project.Commit) (fs.FS, error) {
	if r.t.Upstream == nil {
		return nil, fault.New(fault.Refused, "", "recipes that came in bundles are known only to a server")
	}
	code, err := r.t.Upstream(r.name).TakenRecipe(ctx, r.parts[c])
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "", "its recipe at %s came in a bundle: %w", c.Short(), err).WithHint("deploy this release again from the server that made the bundle")
	}
	return recipe.In(code)
}
