package procedures

import (
	"context"

	"corpus-git/hooks"
)

// HookPoint runs the hooks around a deployment: pre-deploy before the new commits are checked out, with the project's own hooks of the live
// release; post-deploy once everything else has succeeded. A failing hook fails the deployment.
type HookPoint struct{ Point hooks.Point }

// PreDeploy returns the point before release-sync.
func PreDeploy() HookPoint { return HookPoint{hooks.PreDeploy} }

// PostDeploy returns the point after the second fixperms.
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
