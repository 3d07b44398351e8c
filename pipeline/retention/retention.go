// Package retention applies the limits on what is recorded: the deployments of projects, their logs, and the audit log.
package retention

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/project"
	"corpus-git/project/config"
)

// first is the delay after the start until the limits are applied for the first time, and every the interval after that.
const (
	first = time.Minute
	every = time.Hour
)

// Pruner applies the limits on what is recorded.
type Pruner struct {
	// Limits returns the limits of the current configuration.
	Limits   func() config.History
	Projects func(context.Context) ([]project.Name, error)
	// Prune removes the deployments and logs of a project that exceed limits.
	Prune func(context.Context, project.Name, project.History) (project.Pruned, error)
	// Audit removes audit entries from before a time, and counts them.
	Audit func(context.Context, time.Time) (int64, error)
	// Notifications removes deliveries that ended before a time, and those beyond a number; a zero time and a zero number set no
	// limit.
	Notifications func(context.Context, time.Time, int) (int64, error)
	Now           func() time.Time
	Log           zerolog.Logger
}

// Run applies the limits until ctx ends.
func (k Pruner) Run(ctx context.Context) {
	for wait := first; ; wait = every {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		k.Keep(ctx)
	}
}

// Keep applies the limits now. What could not be removed is logged, and removed at a later run.
func (k Pruner) Keep(ctx context.Context) {
	h := k.Limits()
	all, err := k.Projects(ctx)
	if err != nil {
		k.Log.Warn().Err(err).Msg("history: list projects")
	}
	for _, name := range all {
		if ctx.Err() != nil {
			return
		}
		done, err := k.Prune(ctx, name, h.Bounds())
		switch {
		case err != nil:
			k.Log.Warn().Err(err).Str("project", string(name)).Msg("remove old history")
		case done != project.Pruned{}:
			k.Log.Info().Str("project", string(name)).Int("deployments", done.Deployments).Int("logs", done.Logs).Int("undo_logs", done.UndoLogs).Msg("removed old history")
		}
	}
	k.notifications(ctx, h)
	if h.AuditAge == 0 {
		return
	}
	n, err := k.Audit(ctx, k.Now().Add(-h.AuditAge))
	switch {
	case err != nil:
		k.Log.Warn().Err(err).Msg("remove old audit entries")
	case n > 0:
		k.Log.Info().Int64("entries", n).Msg("removed old audit entries")
	}
}

func (k Pruner) notifications(ctx context.Context, h config.History) {
	var before time.Time
	if h.NotifyAge > 0 {
		before = k.Now().Add(-h.NotifyAge)
	}
	n, err := k.Notifications(ctx, before, h.NotifyMax)
	switch {
	case err != nil:
		k.Log.Warn().Err(err).Msg("remove old notifications")
	case n > 0:
		k.Log.Info().Int64("deliveries", n).Msg("removed old notifications")
	}
}
