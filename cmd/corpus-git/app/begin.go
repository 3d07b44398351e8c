package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/receive"
	"corpus-git/skeletons"
)

// mayBegin refuses, before anything is created, an unknown skeleton, and a project whose code already has commits.
func (c *core) mayBegin(ctx context.Context, name project.Name, skeleton string, exists bool) error {
	if _, err := c.namedSkeleton(skeleton); err != nil {
		return err
	}
	if !exists {
		return nil
	}
	repo := c.repos.Open(name, project.Code)
	if there, err := repo.Exists(); err != nil || !there {
		return err
	}
	ref, err := repo.Deployed(ctx)
	if err == nil && ref != "" {
		err = fault.New(fault.Refused, "project create", "%s already has code, so --skeleton cannot be used", name).
			WithHint("write the skeleton's files to a directory:  corpus-git init --skeleton %s DIR", skeleton)
	}
	return err
}

// namedSkeleton returns a skeleton of the server. Paths are not accepted: a user over ssh must not read directories of the server with it.
func (c *core) namedSkeleton(name string) (skeletons.Skeleton, error) {
	if strings.Contains(name, "/") {
		return skeletons.Skeleton{}, fault.New(fault.Usage, "", "%q is not a valid skeleton name", name).
			WithHint("the server's own skeletons are folders in %s;  corpus-git init  takes paths and URLs", c.state.Skeletons())
	}
	return skeletons.Find(c.state.Skeletons(), name)
}

// firstPillar returns the initial pillar of a project with a skeleton.
const firstPillar = `# The configuration of this installation. It overrides the defaults of the project's .salt/PILLAR.sample.
# Values here are secrets: they are hidden in whatever deployments print.
makina-projects.%s:
  data: {}
`

// begin stores the first commits of a project, and returns the deployments for them: that of the pillar, unless it already has commits, and that of the code.
func (c *core) begin(ctx context.Context, name project.Name, skeleton string, by project.Pusher) ([]project.Deployment, error) {
	s, err := c.namedSkeleton(skeleton)
	if err != nil {
		return nil, err
	}
	files, err := s.Read()
	if err != nil {
		return nil, err
	}
	code := make([]receive.File, len(files))
	for i, f := range files {
		code[i] = receive.File{Name: f.Name, Data: f.Data, Mode: f.Mode}
	}
	var out []project.Deployment
	for _, first := range []struct {
		repo  project.Repo
		files []receive.File
	}{
		{project.PillarRepo, []receive.File{{Name: "init.sls", Data: fmt.Appendf(nil, firstPillar, name), Mode: 0o644}}},
		{project.Code, code},
	} {
		repo := c.repos.Open(name, first.repo)
		if ref, err := repo.Deployed(ctx); err != nil {
			return nil, err
		} else if ref != "" {
			continue
		}
		ref, err := repo.Head(ctx)
		if err != nil {
			return nil, err
		}
		commit, err := repo.FirstCommit(ctx, first.files, by.Key, "Begin with the skeleton "+s.Name, time.Now())
		if err != nil {
			return nil, err
		}
		d := project.Deployment{Project: name, Trigger: project.TriggerPush, Pusher: by, Repo: first.repo, Change: project.Change{Ref: ref, New: commit}}
		if first.repo == project.PillarRepo {
			d.Pillar = commit
		} else {
			d.Code = commit
		}
		out = append(out, d)
	}
	return out, nil
}
