package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"corpus-git/checks"
	"corpus-git/checks/watch"
	"corpus-git/hooks"
	"corpus-git/internal/event"
	"corpus-git/project"
)

// openWatch makes what runs periodic checks. It runs them once it is started, which a server does.
func (c *core) openWatch(ctx context.Context) (err error) {
	c.watch, err = watch.Open(ctx, watch.Config{
		DB: c.db, Live: c.liveChecks, Quiet: func(n project.Name) (context.Context, func(), bool) { return c.pipeline.Quiet(n) }, Now: time.Now, Log: c.log,
		Projects: func(ctx context.Context) ([]project.Name, error) {
			all, err := c.registry.List(ctx)
			var names []project.Name
			for _, p := range all {
				names = append(names, p.Name)
			}
			return names, err
		},
	})
	return err
}

// liveChecks are the periodic checks of what is live in a project; none where it was undeployed.
func (c *core) liveChecks(ctx context.Context, name project.Name) (watch.Release, error) {
	if gone, err := c.pipeline.Undeployed(ctx, name); err != nil || gone {
		return watch.Release{}, err
	}
	l, err := processes{c}.live(ctx, name)
	if err != nil {
		return watch.Release{}, err
	}
	out := watch.Release{Code: l.d.Code}
	for _, x := range l.prep.Cfg.Checks() {
		if x.Interval > 0 {
			out.Checks = append(out.Checks, x)
		}
	}
	if len(out.Checks) == 0 {
		return out, nil
	}
	run := c.tools.Checker(l.prep, l.d)
	hidden := func(text string) string { return l.hide.String(event.Scrub(text)) }
	out.Run = func(ctx context.Context, list []project.Check) ([]checks.Result, error) {
		results, err := run.Run(ctx, list)
		for i := range results {
			results[i].Reason = hidden(results[i].Reason)
			for j, line := range results[i].Answer {
				results[i].Answer[j] = hidden(line)
			}
		}
		return results, err
	}
	out.Notify = func(ctx context.Context, p project.CheckPeriod) error { return l.hide.Error(c.notifyCheck(ctx, l, p)) }
	return out, nil
}

// notifyTimeout bounds one notification.
const notifyTimeout = 30 * time.Second

// notifyCheck runs the operator's notify hooks and posts to the web addresses.
func (c *core) notifyCheck(ctx context.Context, l liveProject, p project.CheckPeriod) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	d := l.d
	if recs, err := c.pipeline.LastLive(ctx, []project.Name{d.Project}); err == nil {
		if rec, ok := recs[d.Project]; ok {
			d = rec.Deployment
		}
	}
	log := c.log.With().Str("project", d.Project.String()).Str("check", p.Check).Logger()
	if p.Good {
		log.Info().Msg("periodic check succeeds again")
	} else {
		log.Warn().Str("reason", p.Reason).Msg("periodic check failed")
	}
	at := c.root.Project(d.Project.String())
	_, err := c.tools.Hooks.Run(ctx, nil, slices.Concat(c.tools.Host.Environ, l.prep.Cfg.Environ()), hooks.Description{
		Point: hooks.Notify, Deployment: d, Environment: l.prep.Environment(), Check: &p,
		ProjectDir: at.Dir(), ProjectRoot: at.Live(), PillarRoot: at.Pillar(), DataRoot: at.Data(),
	}, func(hook, _, line string) {
		log.Info().Str("hook", hook).Msg(l.hide.String(event.Scrub(line)))
	})
	for _, w := range c.tools.Webhooks {
		err = errors.Join(err, w.Post(ctx, hooks.Notification{Deployment: d, Check: &p}))
	}
	return err
}
