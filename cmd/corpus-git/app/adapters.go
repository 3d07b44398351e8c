package app

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"corpus-git/access"
	"corpus-git/archive"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/fault"
	"corpus-git/procedures"
	"corpus-git/procedures/extends"
	"corpus-git/procedures/salttree"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
	"corpus-git/receive"
)

// linker implements the registry's links with those of procedures.
type linker struct{ links salttree.Links }

func (l linker) Link(_ context.Context, name project.Name) ([]string, error) {
	return l.links.Link(string(name))
}

func (l linker) Unlink(_ context.Context, name project.Name) ([]string, error) {
	return l.links.Unlink(string(name))
}

// projects is the registry for the verbs: it also closes the repositories of destroyed projects.
type projects struct {
	*registry.Registry
	c *core
}

// Create also removes old permissions on the name, which a crash during an earlier destroy may have left.
func (p projects) Create(ctx context.Context, name project.Name, s registry.Settings) (registry.Created, error) {
	exists, err := p.Exists(ctx, name)
	if err == nil && s.Skeleton != "" {
		err = p.c.mayBegin(ctx, name, s.Skeleton, exists)
	}
	if err != nil {
		return registry.Created{}, err
	}
	if !exists {
		old, err := p.c.access.ListGrants(ctx, name)
		if err == nil && len(old) > 0 {
			err = p.c.access.RevokeAll(ctx, access.Identity{Name: "corpus-git", Admin: true, From: "local"}, name)
		}
		if err != nil {
			return registry.Created{}, err
		}
	}
	return p.Registry.Create(ctx, name, s)
}

func (p projects) Destroy(ctx context.Context, name project.Name, data bool) (registry.Destroyed, error) {
	defer p.c.archive(name).Pause()() // do not pack what is about to be removed
	p.c.repos.Forget(name)
	d, err := p.Registry.Destroy(ctx, name, data)
	p.c.repos.Forget(name)
	if err == nil {
		err = errors.Join(p.c.watch.Forget(ctx, name), p.c.converge.Forget(ctx, name), p.c.keys.Forget(ctx, name), p.c.fleet.Forget(ctx, name), p.c.tools.UndoLogs().Drop(name), extends.Pins{FS: p.c.tools.FS, Path: p.c.state.Extends(name.String())}.Drop())
	}
	return d, err
}

// lookup adapts the registry to package receive.
type lookup struct{ c *core }

func (l lookup) Lookup(ctx context.Context, name project.Name) (receive.Settings, bool, error) {
	p, err := l.c.registry.Get(ctx, name)
	if err != nil {
		if fault.KindOf(err) == fault.Refused {
			err = nil
		}
		return receive.Settings{}, false, err
	}
	out := receive.Settings{RemoteLess: p.RemoteLess, StoreOtherBranches: l.c.cfg.Load().StoreOtherBranches}
	if !p.RemoteLess && !p.Missing {
		if store, set := l.c.live.Choices(ctx, name).StoreOtherBranches(); set {
			out.StoreOtherBranches = store
		}
	}
	return out, true, nil
}

// visible returns the names of the projects that a user may see.
func (c *core) visible(ctx context.Context, who access.Identity) (out []string, err error) {
	rights, err := c.access.Rights(ctx, who)
	if err != nil {
		return nil, err
	}
	names, err := c.names(ctx, func(p registry.Project) bool {
		return rights.Can(p.Name, project.Read) || rights.Can(p.Name, project.Configure)
	})
	for _, n := range names {
		out = append(out, n.String())
	}
	return out, err
}

// maintained returns the projects that have repositories.
func (c *core) maintained(ctx context.Context) ([]project.Name, error) {
	return c.names(ctx, func(p registry.Project) bool { return !p.RemoteLess && !p.Missing })
}

// everyProject returns all projects.
func (c *core) everyProject(ctx context.Context) ([]project.Name, error) {
	return c.names(ctx, func(registry.Project) bool { return true })
}

func (c *core) names(ctx context.Context, want func(registry.Project) bool) (out []project.Name, err error) {
	all, err := c.registry.List(ctx)
	for _, p := range all {
		if want(p) {
			out = append(out, p.Name)
		}
	}
	return out, err
}

// retention returns the current retention of a project's archives.
func (c *core) retention(ctx context.Context, name project.Name) (project.Retention, error) {
	if _, err := c.registry.Get(ctx, name); err != nil {
		return project.Retention{}, err
	}
	return c.live.Choices(ctx, name).Retention(), nil
}

// withArchives returns the projects that have archives, those that the last server left unfinished first.
func (c *core) withArchives(ctx context.Context) ([]project.Name, error) {
	all, err := c.registry.List(ctx)
	var out []project.Name
	for _, p := range all {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if holdsSomething(c.root.Project(p.Name.String()).Archives()) {
			out = append(out, p.Name)
		}
	}
	slices.SortStableFunc(out, func(a, b project.Name) int {
		switch fa, fb := c.recovered[a], c.recovered[b]; {
		case fa == fb:
			return 0
		case fa:
			return -1
		}
		return 1
	})
	return out, err
}

// holdsSomething reports whether a directory exists and is not empty.
func holdsSomething(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return err == nil
}

func (l lookup) Create(ctx context.Context, who access.Identity, name project.Name) error {
	by := project.Pusher{Key: who.Name, Fingerprint: who.Fingerprint, From: who.From}
	_, err := projects{l.c.registry, l.c}.Create(ctx, name, registry.Settings{By: by})
	return err
}

// archives adapts package archive to the verbs and the pages.
type archives struct{ c *core }

func describeArchive(a archive.Archive) status.Archive {
	out := status.Archive{
		ID: project.ID(a.ID), Name: lastElement(a.Path), At: a.At, Code: project.Commit(a.Held.Code), Pillar: project.Commit(a.Held.Pillar),
		Pusher: a.By, Pinned: a.Pinned, Tree: a.Whole, Failed: a.FailedTree, Packed: a.Packed != nil,
		Files: a.Sizes.Files, Bytes: a.Sizes.Bytes, Disk: a.Sizes.Disk, Own: a.Own, Shared: a.Shared, Estimated: a.Estimated,
		SharedFile: a.SharedFile(), Incremental: a.Incremental(),
	}
	switch a.Verdict {
	case archive.Good:
		out.Verdict = project.Live
	case archive.Failed:
		out.Verdict = project.Failed
	case archive.RolledBack:
		out.Verdict = project.RolledBack
	}
	return out
}

func lastElement(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

func (a archives) List(_ context.Context, name project.Name) ([]status.Archive, error) {
	all, err := a.c.archive(name).List()
	if err != nil {
		return nil, err
	}
	out := make([]status.Archive, 0, len(all))
	for _, x := range all {
		out = append(out, describeArchive(x))
	}
	return out, nil
}

func (a archives) Pin(_ context.Context, name project.Name, id project.ID, pinned bool) error {
	pin := a.c.archive(name).Unpin
	if pinned {
		pin = a.c.archive(name).Pin
	}
	_, err := pin(string(id))
	return err
}

func (a archives) Export(ctx context.Context, name project.Name, id project.ID, w io.Writer) error {
	_, err := a.c.archive(name).Export(ctx, string(id), w)
	return err
}

// Keeping returns the current retention settings.
func (a archives) Keeping(ctx context.Context, name project.Name) (status.Keeping, error) {
	r, err := a.c.retention(ctx, name)
	return status.Keeping{
		Good: r.Keep, Failed: r.KeepFailed, MaxBytes: r.MaxBytes, MaxAge: r.MaxAge, FailedMaxAge: r.FailedMaxAge, Spare: a.c.archive(name).Spare(),
	}, err
}

// Prune applies the limits like upkeep. It is refused while a deployment runs. If no server is running, it also packs older archives.
func (a archives) Prune(ctx context.Context, name project.Name, how verbs.Prune) (status.Pruned, error) {
	out := status.Pruned{Version: status.Version, Project: name, DryRun: how.DryRun, Removed: []status.Archive{}}
	keep, err := a.c.retention(ctx, name)
	if err != nil {
		return out, err
	}
	if how.Keep > 0 {
		keep.Keep = how.Keep
	}
	store, policy := a.c.archive(name), procedures.RetentionPolicy(keep)
	var r archive.Rotation
	if how.DryRun {
		r, err = store.Preview(policy)
	} else {
		r, err = a.prune(ctx, name, store, policy)
	}
	for _, x := range r.Removed {
		out.Removed = append(out.Removed, describeArchive(x))
	}
	out.Kept, out.Freed = r.Kept, r.Freed
	return out, err
}

func (a archives) prune(ctx context.Context, name project.Name, store *archive.Store, policy archive.Policy) (archive.Rotation, error) {
	release, err := a.c.pipeline.Exclusive(ctx, name, "archives prune", project.Pusher{Key: "archives prune", From: "local"})
	if err != nil {
		return archive.Rotation{}, err
	}
	defer release()
	if policy.MaxBytes > 0 {
		if err := store.Measure(ctx); err != nil {
			return archive.Rotation{}, err
		}
	}
	r, err := store.Rotate(policy)
	if err != nil {
		return r, err
	}
	a.c.pipeline.SweepPins(ctx, name)
	if a.c.serves {
		a.c.upkeep.Due(name)
	} else if _, err := store.Compact(ctx, policy); err != nil {
		return r, err
	}
	return r, store.Wait()
}
