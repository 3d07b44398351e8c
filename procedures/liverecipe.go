package procedures

import (
	"context"

	"corpus-git/hooks"
	"corpus-git/internal/fault"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// liveRecipe is the recipe of the commit that was live before the deployment, copied when something first asks for it; that of the commit which it
// brings is Prepared.Recipe.
func (e *Env) liveRecipe(ctx context.Context) (*recipe.Recipe, error) {
	if e.LiveTree == nil {
		return e.Prepared.Recipe, nil
	}
	if e.liveLoaded {
		return e.live, nil
	}
	// The tree is read here and now; it keeps its repository in use until this context ends.
	tctx, done := context.WithCancel(ctx)
	defer done()
	code, err := e.LiveTree(tctx)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "read commit "+e.Deployment.LiveCode.Short(), "%w", err)
	}
	files, err := recipe.In(code)
	if err != nil {
		return nil, err
	}
	runs, err := recipe.RunsAround(files)
	if err != nil {
		return nil, err
	}
	if runs {
		if e.live, err = recipe.Copy(ctx, files, e.Tools.State.Recipe(string(e.Deployment.ID), "live"), e.Paths.Salt()); err != nil {
			return nil, err
		}
	}
	e.liveLoaded = true
	return e.live, nil
}

// recipeAt is the recipe whose hooks run at a point. What stands around the archive, the beginning and the rollback of a deployment
// belongs to the commit that is live then; what comes at its end to the one that it brings.
func (e *Env) recipeAt(ctx context.Context, p hooks.Point) (*recipe.Recipe, error) {
	switch {
	case p == hooks.PostDeploy, p == hooks.Notify, p == hooks.Rollback && e.Deployment.Trigger == project.TriggerRollback:
		return e.Prepared.Recipe, nil
	}
	return e.liveRecipe(ctx)
}
