package app

import (
	"context"
	"slices"
	"time"

	"corpus-git/internal/execx"
	"corpus-git/project"
	"corpus-git/project/demands"
	"corpus-git/receive/signed"
)

// demands returns the server's requirements for a project in some environments, including those of their classes.
func (c *core) demands(name project.Name, environments []string) demands.Demands {
	policy, err := c.cfg.Load().Require.Policy()
	if err != nil { // it was checked when it was read
		c.log.Error().Err(err).Msg("what is demanded of deployments")
	}
	envs, all := c.environments(), slices.Clone(environments)
	for _, e := range environments {
		if class, err := envs.Class(e); err == nil {
			all = append(all, class)
		}
	}
	return policy.Of(all, name.String())
}

// verifier verifies signatures with the keys of this server's users and those in the configuration.
func (c *core) verifier() *signed.Verifier {
	return &signed.Verifier{Access: c.access, Exec: execx.OS{Notes: c.state.Processes()}, Now: time.Now, Settings: func() signed.Settings {
		r := c.cfg.Load().Require
		return signed.Settings{AllowedSigners: r.AllowedSigners, GPGHome: r.GPGHome}
	}}
}

// signed is pipeline.Config.Signed.
func (c *core) signed(ctx context.Context, d project.Deployment, repo project.Repo, in project.Incoming) (demands.Signature, error) {
	tag, commit, want := project.Commit(""), d.Code, project.Deploy
	if repo == project.PillarRepo {
		commit, want = d.Pillar, project.Configure
	}
	if repo == d.Repo {
		tag = d.Tag
	}
	return c.repos.Open(d.Project, repo).Signed(ctx, c.verifier(), tag, commit, in, signed.For{Project: d.Project, Right: want, From: d.Pusher.From})
}
