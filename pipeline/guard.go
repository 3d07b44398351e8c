package pipeline

import (
	"context"

	"corpus-git/pipeline/sources"
	"corpus-git/procedures"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// guard refuses, before anything runs, what is probably a mistake: a push that leaves nothing to deploy, or, in dev, one that changes files
// that were also changed on the machine.
func (dep *deployment) guard(ctx context.Context, src procedures.Sources, prep *procedures.Prepared) error {
	p, d := dep.p, dep.record().Deployment
	if d.Trigger == project.TriggerRollback || d.Trigger == project.TriggerTask || d.Trigger == project.TriggerUndeploy || d.Trigger == project.TriggerConverge || src.RemoteLess {
		return nil
	}
	if _, skip := prep.Skips(procedures.NameReleaseSync); !skip && prep.KeepsEdits(d) {
		paths := p.cfg.Root.Project(d.Project.String())
		for _, x := range []struct {
			repo   project.Repo
			commit project.Commit
			dir    string
		}{{project.Code, d.Code, paths.Live()}, {project.PillarRepo, d.Pillar, paths.Pillar()}} {
			if x.commit == "" {
				continue
			}
			if _, err := p.cfg.Repository(d.Project, x.repo).TryCheckout(ctx, project.Checkout{Commit: x.commit, Dir: x.dir, Keep: true}, sources.Incoming(d, dep.in, x.repo)); err != nil {
				return err
			}
		}
	}
	if d.AllowEmpty || d.LiveCode == "" || d.LiveCode == d.Code || recipe.Deploys(src.Code) {
		return nil
	}
	live, err := dep.liveTree(ctx)
	if err != nil {
		return err
	}
	return recipe.RefuseEmptied(live, src.Code)
}
