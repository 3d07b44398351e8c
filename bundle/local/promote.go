package local

import (
	"context"
	"errors"
	"io"
	"os"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Promotion is a request to deploy what is live in From to To.
type Promotion struct {
	From, To project.Name
	// WithPillar also promotes the pillar; otherwise To keeps its own.
	WithPillar bool
	// Environment is the environment of From in which it then goes live, if To is From; "" otherwise.
	Environment string
}

// Promote copies the commits of what is live in one project to another one, and returns the deployment that brings them live there. pin is as in Take. If
// From is To, nothing is copied.
func (b *Machine) Promote(ctx context.Context, q Promotion, pin func(project.ID) string) (d project.Deployment, err error) {
	for _, name := range []project.Name{q.From, q.To} {
		p, err := b.Projects.Get(ctx, name)
		if err != nil {
			return d, err
		}
		if p.RemoteLess {
			return d, fault.New(fault.Refused, "promote", "%s is remote-less: it has no commits", name)
		}
		if p.Node != nil && name == q.To {
			return d, fault.New(fault.Refused, "promote", "%s is deployed here by %s", name, p.Node.Hub).WithHint("promote it there")
		}
	}
	if gone, err := b.Deployments.Undeployed(ctx, q.From); err != nil || gone {
		return d, errors.Join(err, fault.New(fault.Refused, "promote", "%s was undeployed: nothing is live in it", q.From).WithHint("corpus-git deploy %s  deploys it again", q.From))
	}
	last, err := b.Deployments.LastLive(ctx, []project.Name{q.From})
	if err != nil {
		return d, err
	}
	rec, ok := last[q.From]
	if !ok || rec.Result == nil || rec.Result.Code == "" {
		return d, fault.New(fault.Refused, "promote", "%s has no live release", q.From).WithHint("push it first, and look at it")
	}
	d = project.Deployment{
		ID: project.NewID(), Project: q.To, Trigger: project.TriggerPromote, Code: rec.Result.Code, Branches: map[project.Repo]string{},
		Promoted: &project.Promotion{From: q.From, Deployment: rec.ID, Environment: q.Environment, WithPillar: q.WithPillar || q.From == q.To},
	}
	for _, s := range rec.Set {
		d.Promoted.Set = append(d.Promoted.Set, s.Key)
	}
	if d.Promoted.WithPillar {
		d.Pillar = rec.Result.Pillar
	}
	if q.WithPillar && d.Pillar == "" {
		return d, fault.New(fault.Refused, "promote", "%s has no pillar", q.From)
	}
	if q.From == q.To {
		return d, nil
	}
	for _, x := range []struct {
		repo   project.Repo
		commit project.Commit
	}{{project.Code, d.Code}, {project.PillarRepo, d.Pillar}} {
		if x.commit == "" {
			continue
		}
		if d.Branches[x.repo], err = b.Repository(q.From, x.repo).Head(ctx); err != nil {
			return d, err
		}
		if err := b.copyCommit(ctx, b.Repository(q.From, x.repo), b.Repository(q.To, x.repo), x.commit, pin(d.ID)); err != nil {
			return d, fault.New(fault.KindOf(err), "copy "+x.commit.Short()+" of "+q.From.String(), "%w", err)
		}
	}
	return d, b.copyRecipes(ctx, b.Repository(q.From, project.Code), b.Repository(q.To, project.Code), d.Code)
}

// copyRecipes gives a project the recipes of a release of another one, if they came there in a bundle, and records them for the same commit: nothing else on this machine has them. What the
// project has recorded for the commit stays; the deployment refuses it if it differs.
func (b *Machine) copyRecipes(ctx context.Context, from, to Repository, c project.Commit) error {
	if _, came, err := from.RecipesCame(c); err != nil || !came {
		return err
	}
	if recorded, _, err := to.RecipesCame(c); err != nil || recorded {
		return err
	}
	list, err := from.Recipes(ctx, c)
	if err != nil {
		return err
	}
	have, err := to.TakenRecipes()
	if err != nil {
		return err
	}
	lacks := bundle.Lacking(list, have)
	if len(lacks) == 0 {
		return to.TakeRecipes(ctx, nil, c, list, nil, nil)
	}
	return b.through(func(w io.Writer) (int, error) { return from.WriteRecipes(ctx, w, c, lacks, nil) },
		func(in io.Reader) error { return to.TakeRecipes(ctx, in, c, list, bundle.Parted(lacks), nil) })
}

// copyCommit gives a repository a commit of another one, at the ref pin. The pack is in a file meanwhile: nothing of one repository is held while the other is used.
func (b *Machine) copyCommit(ctx context.Context, from, to Repository, c project.Commit, pin string) (err error) {
	if _, err := to.Create(ctx); err != nil {
		return err
	}
	have, err := to.Tips(ctx)
	if err != nil {
		return err
	}
	return b.through(func(w io.Writer) (int, error) { return from.WritePack(ctx, w, c, have) }, func(in io.Reader) error { return to.TakePack(ctx, in, c, pin, nil) })
}

// through has a pack written to a file, and then read from it: in is nil if it has no objects.
func (b *Machine) through(write func(io.Writer) (objects int, err error), read func(in io.Reader) error) (err error) {
	f, err := os.CreateTemp(b.Temp, ".pack-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := os.Remove(f.Name()); err != nil { // a crash leaves nothing
		return err
	}
	objects, err := write(f)
	if err != nil {
		return err
	}
	var in io.Reader
	if objects > 0 {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		in = f
	}
	return read(in)
}
