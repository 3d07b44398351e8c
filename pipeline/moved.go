package pipeline

import (
	"context"
	"fmt"

	"corpus-git/internal/event"
	"corpus-git/pipeline/sources"
	"corpus-git/project"
)

// branches are the commits that the branches of a project's repositories point to, "" if there is none.
type branches struct{ code, pillar project.Commit }

// live fills in what is live, and reports the commits of the branches. They are equal, unless a branch was moved outside the server (git
// update-ref, a push that bypasses the hooks): live is what the last successful deployment left, and notes report the difference. A commit
// that was never deployed must not be taken for the content of an archive: a rollback to that archive would make it live.
func (p *Pipeline) live(ctx context.Context, d *project.Deployment) (at branches, notes []event.Event, err error) {
	at = branches{sources.Deployed(ctx, p.cfg.Repository(d.Project, project.Code)), sources.Deployed(ctx, p.cfg.Repository(d.Project, project.PillarRepo))}
	d.LiveCode, d.LivePillar = at.code, at.pillar
	list, err := p.records.Live(ctx, []project.Name{d.Project})
	if err != nil || len(list) == 0 || list[0].Result == nil {
		return at, nil, err
	}
	res := list[0].Result
	for _, x := range []struct {
		repo     project.Repo
		branch   project.Commit
		recorded project.Commit
		live     *project.Commit
	}{{project.Code, at.code, res.Code, &d.LiveCode}, {project.PillarRepo, at.pillar, res.Pillar, &d.LivePillar}} {
		if x.branch == x.recorded {
			continue
		}
		if x.recorded != "" {
			if _, err := p.cfg.Repository(d.Project, x.repo).Tree(ctx, x.recorded, nil); err != nil {
				continue // its record is gone: only the branch is known
			}
		}
		*x.live = x.recorded
		notes = append(notes, event.Event{Kind: event.Note, Text: project.MovedBeside(x.repo, x.branch, x.recorded)})
	}
	return at, notes, nil
}

// hintMoved returns the hint on what to do about a branch that was moved.
func hintMoved(d project.Deployment, at branches) string {
	if at.code == d.LiveCode || d.LiveCode == "" || at.code == "" {
		return ""
	}
	return fmt.Sprintf("deploy it:  git push prod %s:refs/deploy/now , or take the branch back:  git push -f prod %s:master", at.code.Short(), d.LiveCode.Short())
}

// LastLive returns the newest deployment that went live, for each project that has one.
func (p *Pipeline) LastLive(ctx context.Context, names []project.Name) (map[project.Name]project.Record, error) {
	list, err := p.records.Live(ctx, names)
	return byProject(list), err
}

func byProject(list []project.Record) map[project.Name]project.Record {
	out := make(map[project.Name]project.Record, len(list))
	for _, rec := range list {
		out[rec.Project] = rec
	}
	return out
}
