package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/checks"
	"corpus-git/checks/watch"
	"corpus-git/hooks"
	"corpus-git/project"
)

// Checks are the periodic checks of what is live, for a watch.Watcher.
type Checks struct {
	*Projects
	// Undeployed reports whether a project was undeployed.
	Undeployed func(context.Context, project.Name) (bool, error)
	// LastLive returns each project's newest live deployment.
	LastLive func(context.Context, []project.Name) (map[project.Name]project.Record, error)
	// Notify adds to the outbox; the same ID is added once. It is durable on return.
	Notify func(context.Context, ...project.Notification) error
	Log    zerolog.Logger
}

// checkID returns the ID of a period's notification, the same each time.
func checkID(name project.Name, p project.CheckPeriod) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%t\x00%d", name, p.Check, p.Good, p.Since.UnixNano()))
	return "check_" + hex.EncodeToString(sum[:16])
}

// Of returns the periodic checks of a project's live release; none if it was undeployed.
func (c Checks) Of(ctx context.Context, name project.Name) (watch.Release, error) {
	if gone, err := c.Undeployed(ctx, name); err != nil || gone {
		return watch.Release{}, err
	}
	l, err := c.Release(ctx, name)
	if err != nil {
		return watch.Release{}, err
	}
	out := watch.Release{Code: l.Deployment.Code}
	for _, x := range l.Prepared.Cfg.Checks() {
		if x.Interval > 0 {
			out.Checks = append(out.Checks, x)
		}
	}
	if len(out.Checks) == 0 {
		return out, nil
	}
	run := c.cfg.Tools.Checker(l.Prepared, l.Deployment)
	run.Hide = l.hidden
	out.Run = func(ctx context.Context, list []project.Check) ([]checks.Result, error) {
		results, err := run.Run(ctx, list)
		for i := range results {
			results[i].Reason = l.hidden(results[i].Reason)
			for j, line := range results[i].Answer {
				results[i].Answer[j] = l.hidden(line)
			}
		}
		return results, err
	}
	out.Notify = func(ctx context.Context, p project.CheckPeriod) error { return l.Hide.Error(c.notify(ctx, l, p)) }
	return out, nil
}

// notifyTimeout limits one notification.
const notifyTimeout = 30 * time.Second

// notify writes the notification, and runs the operator's notify hooks.
func (c Checks) notify(ctx context.Context, l Release, p project.CheckPeriod) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	d := l.Deployment
	if recs, err := c.LastLive(ctx, []project.Name{d.Project}); err == nil {
		if rec, ok := recs[d.Project]; ok {
			d = rec.Deployment
		}
	}
	log := c.Log.With().Str("project", d.Project.String()).Str("check", p.Check).Logger()
	if p.Good {
		log.Info().Msg("periodic check succeeds again")
	} else {
		log.Warn().Str("reason", p.Reason).Msg("periodic check failed")
	}
	told := c.Notify(ctx, project.Notification{
		ID: checkID(d.Project, p), Event: p.Event(), At: p.Since, Project: d.Project, Environment: l.Prepared.Environment(), Deployment: &d, Check: &p,
	})
	at := c.cfg.Tools.Root.Project(d.Project.String())
	_, err := c.cfg.Tools.Hooks.Run(ctx, nil, slices.Concat(c.cfg.Tools.Host.Environ, l.Prepared.Cfg.Environ()), hooks.Description{
		Point: hooks.Notify, Deployment: d, Environment: l.Prepared.Environment(), Check: &p,
		ProjectDir: at.Dir(), ProjectRoot: at.Live(), PillarRoot: at.Pillar(), DataRoot: at.Data(),
	}, func(hook, _, line string) {
		log.Info().Str("hook", hook).Msg(l.hidden(line))
	})
	return errors.Join(told, err)
}
