package procedures

import (
	"context"

	"corpus-git/hooks"
)

// HookPoint runs the hooks around a deployment: pre-deploy before the new commits are brought in, so the project's own
// are those of what is live; post-deploy when everything else went well. A hook that fails fails the deployment.
type HookPoint struct{ Point hooks.Point }

// PreDeploy is the point before release-sync.
func PreDeploy() HookPoint { return HookPoint{hooks.PreDeploy} }

// PostDeploy is the point after the second fixperms.
func PostDeploy() HookPoint { return HookPoint{hooks.PostDeploy} }

// Name implements Procedure.
func (h HookPoint) Name() string { return string(h.Point) }

// Run implements Procedure. A deployment of selected procedures (only=) runs no hooks.
func (h HookPoint) Run(ctx context.Context, env *Env) error {
	if len(env.Prepared.Cfg.Only()) > 0 {
		return nil
	}
	return env.runHooks(ctx, h.Point, nil)
}
