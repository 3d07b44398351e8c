package app

import (
	"context"
	"time"

	"corpus-git/checks/watch"
	"corpus-git/live"
	"corpus-git/project"
)

// openWatch makes what runs periodic checks. It runs them once it is started, which a server does.
func (c *core) openWatch(ctx context.Context) (err error) {
	of := live.Checks{Projects: c.live, Undeployed: c.pipeline.Undeployed, LastLive: c.pipeline.LastLive, Tell: c.outbox.Tell, Log: c.log}
	c.watch, err = watch.Open(ctx, watch.Config{
		DB: c.db, Live: of.Of, Quiet: func(n project.Name) (context.Context, func(), bool) { return c.pipeline.Quiet(n) }, Now: time.Now, Log: c.log,
		Projects: c.everyProject,
	})
	return err
}
