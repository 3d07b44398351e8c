package procedures

import (
	"context"
	"time"

	"corpus-git/hooks"
)

// Notify runs the notify hooks and tells the web addresses; nothing of it changes the verdict.
type Notify struct{}

// Name implements Procedure.
func (Notify) Name() string { return NameNotify }

// notifyTimeout bounds what a pusher waits for notifications.
const notifyTimeout = 30 * time.Second

// Run implements Procedure.
func (Notify) Run(ctx context.Context, env *Env) error {
	ctx, end := env.aside(ctx, notifyTimeout)
	defer end()
	err := env.runHooks(ctx, hooks.Notify, func(d *hooks.Description) { d.Result = &env.Result })
	for _, w := range env.Tools.Webhooks {
		if werr := w.Post(ctx, hooks.Notification{Deployment: env.Deployment, Result: env.Result}); werr != nil {
			env.Note("%v", werr)
		}
	}
	return err
}
