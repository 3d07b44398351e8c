package pipeline

import (
	"context"
	"errors"
	"io/fs"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
	"corpus-git/pipeline/sources"
	"corpus-git/procedures"
	"corpus-git/project"
)

// modulesFile holds the URLs of submodules: gitmodules(5).
const modulesFile = ".gitmodules"

// submodules fetches the submodules of the commits, before anything runs, and adds their files to src. The project's settings for
// submodules are read without them first, so only what steps need may be in a submodule.
func (dep *deployment) submodules(ctx context.Context, d project.Deployment, src *procedures.Sources) error {
	if src.RemoteLess {
		return nil
	}
	code, err := hasModules(src.Code)
	if err != nil {
		return err
	}
	pillar, err := hasModules(src.Pillar)
	if err != nil || !code && !pillar {
		return err
	}
	prep, err := procedures.PrepareRollback(ctx, dep.tools, d, *src, dep.redact)
	if err != nil {
		return err
	}
	want := project.SubmoduleRequest{
		Submodules: prep.Cfg.Submodules(), Offline: d.Trigger == project.TriggerRollback || d.Trigger == project.TriggerTask || d.Trigger == project.TriggerUndeploy || d.Trigger == project.TriggerConverge, Pusher: d.Pusher,
		Say: func(line string) { dep.log.Append(event.Event{Kind: event.Note, Text: line}) },
		Hide: func(secrets []string) {
			for _, s := range secrets {
				dep.redact.Extend([]redact.Secret{{Label: "submodule's URL", Value: s}})
			}
		},
	}
	if !want.Fetch {
		return nil
	}
	for _, x := range []struct {
		has    bool
		repo   project.Repo
		commit project.Commit
		tree   *fs.FS
	}{{code, project.Code, d.Code, &src.Code}, {pillar, project.PillarRepo, d.Pillar, &src.Pillar}} {
		if !x.has {
			continue
		}
		tree, err := dep.p.cfg.Repository(d.Project, x.repo).Submodules(ctx, x.commit, sources.Incoming(d, dep.in, x.repo), want)
		if err != nil {
			return err
		}
		if tree != nil {
			*x.tree = tree
		}
	}
	return nil
}

func hasModules(tree fs.FS) (bool, error) {
	if tree == nil {
		return false, nil
	}
	_, err := fs.Stat(tree, modulesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
