package procedures

import (
	"context"
	"time"

	"corpus-git/hooks"
)

// Notify runs the notify hooks; their errors do not change the verdict. The server's own notifications are independent of it: see the room notify.
type Notify struct{}

// Name implements Procedure.
func (Notify) Name() string { return NameNotify }

// notifyTimeout limits how long a pusher waits for notify hooks.
const notifyTimeout = 30 * time.Second

// Run implements Procedure.
func (Notify) Run(ctx context.Context, env *Env) error {
	ctx, end := env.aside(ctx, notifyTimeout)
	defer end()
	return env.runHooks(ctx, hooks.Notify, func(d *hooks.Description) { d.Result = &env.Result })
}
