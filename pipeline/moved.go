package pipeline

import (
	"context"
	"fmt"

	"corpus-git/internal/event"
	"corpus-git/project"
)

// branches are the commits that the branches of a project's repositories are at, "" where there is none.
type branches struct{ code, pillar project.Commit }

// live fills in what is live, and tells where the branches are. They say the same, unless somebody moved a branch beside the server (git
// update-ref, a push past the hooks): what is live is what the last deployment that went well left, and notes say that a branch is elsewhere. A
// commit that was never deployed must not be taken for what an archive holds: a rollback to that archive would make it live.
func (p *Pipeline) live(ctx context.Context, d *project.Deployment) (at branches, notes []event.Event, err error) {
	at = branches{deployedCommit(ctx, p.cfg.Repository(d.Project, project.Code)), deployedCommit(ctx, p.cfg.Repository(d.Project, project.PillarRepo))}
	d.LiveCode, d.LivePillar = at.code, at.pillar
	list, err := p.records.live(ctx, []project.Name{d.Project})
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
				continue // it is not kept any more: the branch is all there is
			}
		}
		*x.live = x.recorded
		notes = append(notes, event.Event{Kind: event.Note, Text: project.MovedBeside(x.repo, x.branch, x.recorded)})
	}
	return at, notes, nil
}

// hintMoved says what can be done about a branch that was moved.
func hintMoved(d project.Deployment, at branches) string {
	if at.code == d.LiveCode || d.LiveCode == "" || at.code == "" {
		return ""
	}
	return fmt.Sprintf("deploy it:  git push prod %s:refs/deploy/now , or take the branch back:  git push -f prod %s:master", at.code.Short(), d.LiveCode.Short())
}

// LastLive gives the newest deployment that went live, of each of the projects that have one.
func (p *Pipeline) LastLive(ctx context.Context, names []project.Name) (map[project.Name]project.Record, error) {
	list, err := p.records.live(ctx, names)
	return byProject(list), err
}

func byProject(list []project.Record) map[project.Name]project.Record {
	out := make(map[project.Name]project.Record, len(list))
	for _, rec := range list {
		out[rec.Project] = rec
	}
	return out
}
