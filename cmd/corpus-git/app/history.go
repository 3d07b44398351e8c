package app

import (
	"context"
	"time"

	"corpus-git/project"
)

// historyFirst is how long after the start the limits on what is recorded are kept for the first time, and historyEvery how often then.
const (
	historyFirst = time.Minute
	historyEvery = time.Hour
)

// pruneHistory keeps those limits until ctx ends.
func (c *core) pruneHistory(ctx context.Context) {
	for wait := historyFirst; ; wait = historyEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		c.keepHistory(ctx)
	}
}

// keepHistory keeps the limits now.
func (c *core) keepHistory(ctx context.Context) {
	h := c.cfg.Load().History
	all, err := c.registry.List(ctx)
	if err != nil {
		c.log.Warn().Err(err).Msg("history: list projects")
	}
	for _, p := range all {
		if ctx.Err() != nil {
			return
		}
		done, err := c.pipeline.PruneHistory(ctx, p.Name, h.Bounds())
		switch {
		case err != nil:
			c.log.Warn().Err(err).Str("project", string(p.Name)).Msg("history is not as short as it should be")
		case done != project.Pruned{}:
			c.log.Info().Str("project", string(p.Name)).Int("deployments", done.Deployments).Int("logs", done.Logs).Msg("removed old history")
		}
	}
	if h.AuditAge == 0 {
		return
	}
	n, err := c.audit.Prune(ctx, time.Now().Add(-h.AuditAge))
	switch {
	case err != nil:
		c.log.Warn().Err(err).Msg("the audit log is not as short as it should be")
	case n > 0:
		c.log.Info().Int64("entries", n).Msg("removed old audit entries")
	}
}
