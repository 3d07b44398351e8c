package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// promotable refuses a promotion that would not do what was requested: by a user who may not move the pillar, over commits that the promoted ones do not
// contain, or of what is no longer live if only the environment changes. code and pillar are the commits that were live when it was requested.
func (p *Pipeline) promotable(ctx context.Context, d project.Deployment, code, pillar project.Commit) error {
	if d.Pillar != d.LivePillar {
		ok, err := p.cfg.May(ctx, d.Pusher, d.Project, project.Configure)
		if err != nil || !ok {
			return errors.Join(err, fault.New(fault.Refused, "promote", "%s may not: the pillar of %s requires %s permission", d.Pusher.Key, d.Project, project.Configure))
		}
	}
	if d.Promoted.From == d.Project {
		if d.LiveCode != code || d.LivePillar != pillar {
			return fault.New(fault.Refused, "promote", "something else went live in %s meanwhile: %s", d.Project, d.LiveCode.Short()).WithHint("look at it, and promote again")
		}
		return nil
	}
	if d.Forced {
		return nil
	}
	for _, x := range []struct {
		repo      project.Repo
		live, new project.Commit
	}{{project.Code, d.LiveCode, d.Code}, {project.PillarRepo, d.LivePillar, d.Pillar}} {
		if x.live == "" || x.live == x.new {
			continue
		}
		desc, err := p.cfg.Repository(d.Project, x.repo).Describe(ctx, x.live, x.new, nil)
		if err != nil {
			return err
		}
		if desc.Forced {
			return fault.New(fault.Refused, "promote", "what is live in %s as its %s, %s, is not part of %s, which is live in %s: it would be lost", d.Project, x.repo, x.live.Short(), x.new.Short(), d.Promoted.From).
				WithHint("bring it there first, or give it up:  --force")
		}
	}
	return nil
}

// printPromoted prints where the commits of a promotion come from.
func (dep *deployment) printPromoted() {
	m := dep.record().Promoted
	if m == nil {
		return
	}
	d := dep.record().Deployment
	text := fmt.Sprintf("promoted from %s, deployment %s", m.From, m.Deployment.Short())
	switch {
	case m.From == d.Project:
		text = fmt.Sprintf("promoted to the environment %s, as deployment %s brought it live", m.Environment, m.Deployment.Short())
	case d.Pillar == "":
		text += "; without a pillar"
	case m.WithPillar:
		text += ", with its pillar " + d.Pillar.Short()
	default:
		text += fmt.Sprintf("; the pillar is that of %s, %s", d.Project, d.Pillar.Short())
	}
	dep.log.Append(event.Event{Kind: event.Note, Text: text})
	if len(m.Set) > 0 {
		dep.log.Append(event.Event{Kind: event.Note, Text: "set on the command line there, and not here: " + printable.Line(strings.Join(m.Set, " "))})
	}
}

// moveEnvironment sets the environment that the project was promoted to. It is repeated after a crash.
func (dep *deployment) moveEnvironment(ctx context.Context) {
	d := dep.env.Deployment
	if dep.res.State != project.Live || d.Promoted == nil || d.Promoted.Environment == "" {
		return
	}
	if err := dep.p.cfg.SetEnvironment(ctx, d.Project, d.Promoted.Environment); err != nil {
		dep.env.Note("the environment of the project could not be set: %s", strings.Join(dep.explain(err), " "))
		dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("set the environment of a project")
	}
}
