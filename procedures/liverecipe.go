package procedures

import (
	"context"

	"corpus-git/hooks"
	"corpus-git/internal/fault"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/sls"
)

// liveRecipe returns the recipe of the commit that was live before the deployment, copied on first use; that of the new commit is Prepared.Recipe.
func (e *Env) liveRecipe(ctx context.Context) (*recipe.Recipe, error) {
	if e.LiveTree == nil {
		return e.Prepared.Recipe, nil
	}
	if e.liveLoaded {
		return e.live, nil
	}
	// The tree is read now; it uses its repository until this context ends.
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

// ownHooks returns the project's own hooks of a point: those of the live commit around the archive, at the beginning and in a rollback, those of the new
// commit at the end, and in place of one that cannot be started and would end the deployment.
func (e *Env) ownHooks(ctx context.Context, p hooks.Point) ([]hooks.Hook, error) {
	if p == hooks.PostDeploy || p == hooks.Notify || p == hooks.Rollback && e.Deployment.Trigger == project.TriggerRollback {
		return e.Prepared.Recipe.Hooks(p)
	}
	live, err := e.liveRecipe(ctx)
	if err != nil {
		return nil, err
	}
	if p == hooks.LowSpace || p == hooks.PreRollback || p == hooks.Rollback || live == e.Prepared.Recipe {
		return live.Hooks(p)
	}
	return live.Mend(p, e.Prepared.Recipe, func(s recipe.Step) error {
		in := e.Prepared.inputFor(e.Tools, e.Deployment, live, s, sls.Static, e.stepCfg())
		in.First = true
		_, err := e.Tools.runner(s).Check(ctx, in)
		return err
	}, e.Note)
}
