package app

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/bundle/local"
	"corpus-git/cmd/corpus-git/bundled"
	"corpus-git/cmd/corpus-git/limits"
	"corpus-git/fleet"
	"corpus-git/git/pack"
	"corpus-git/git/part"
	"corpus-git/pipeline"
	"corpus-git/procedures"
	"corpus-git/procedures/extends"
	"corpus-git/project"
	"corpus-git/remote"
)

// bundles implements verbs.Bundles.
type bundles struct {
	*local.Machine
	c *core
}

func (c *core) bundles() bundles {
	return bundles{c: c, Machine: &local.Machine{
		Projects: c.registry,
		Repository: func(name project.Name, r project.Repo) local.Repository {
			return bundled.Repository{Repository: c.repos.Open(name, r), Limits: func() pack.Limits { return limits.Pack(c.cfg.Load().Limits, c.memory) }, Pins: extends.Pins{FS: c.tools.FS, Path: c.state.Extends(name.String())}}
		},
		Deployments: c.pipeline, Restorable: c.restorable, Fences: c.fleet.Fence, Fenced: c.fleet.Fenced,
		Signer: sync.OnceValues(c.signer), // it reads files
		Name:   c.hostName, Program: c.build.Release, Signers: c.state.BundleSigners(), Temp: c.state.Path(), Now: time.Now,
	}}
}

// signer returns the key that identifies this machine to others.
func (c *core) signer() (ssh.Signer, error) {
	keys, err := hostKeys(c.state, c.log)
	if err != nil {
		return nil, err
	}
	return keys.Current[0], nil
}

// Take implements verbs.Bundles.
func (b bundles) Take(ctx context.Context, in io.Reader, by project.Pusher) (project.Deployment, bool, error) {
	return b.Machine.Take(ctx, in, by, pipeline.BundlePin)
}

// Plan implements verbs.Bundles.
func (b bundles) Plan(ctx context.Context, name project.Name, q remote.PlanRequest) (p remote.Planned, err error) {
	if p.Live, err = b.Standing(ctx, name, q.Lease); err == nil && p.Live == q.Live {
		p.Note, err = b.c.tools.Room(ctx, name, project.Description{Bytes: q.Bytes, Files: q.Files})
	}
	return p, err
}

// Promote implements verbs.Bundles.
func (b bundles) Promote(ctx context.Context, q local.Promotion) (project.Deployment, error) {
	return b.Machine.Promote(ctx, q, pipeline.BundlePin)
}

// Part implements machines.Bundles.
func (b bundles) Part(ctx context.Context, name project.Name, pillar project.Commit, m fleet.Member) (seen project.Commit, own bool, err error) {
	seen, err = b.c.repos.Open(name, project.PillarRepo).Part(ctx, pillar, func(path string) part.Share {
		own = own || strings.HasPrefix(path, fleet.NodesDir+"/")
		switch whole, below := m.Includes(path); {
		case whole:
			return part.Whole
		case below:
			return part.Some
		}
		return part.None
	})
	return seen, own, err
}

// restorable returns the archive made by a deployment.
func (c *core) restorable(name project.Name, replaced project.ID) (string, error) {
	held, err := procedures.HeldTrees(c.tools, name)
	for _, a := range held {
		if a.ID == replaced {
			return a.Name, nil
		}
	}
	return "", err
}
