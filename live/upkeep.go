package live

import (
	"context"
	"errors"
	"fmt"

	"corpus-git/internal/humanize"
	"corpus-git/procedures/permissions"
	"corpus-git/procedures/salttree"
	"corpus-git/project"
	"corpus-git/sls/host"
)

// Difference is something around a project that differs from what a deployment sets.
type Difference struct {
	// Kind is accounts, links or permissions.
	Kind, Text string
}

// Upkeep is the current state of what deployments maintain around a project.
type Upkeep struct {
	// User is the account that the project runs as, "" if nothing is live.
	User string
	// Differs is empty if the procedures sync and fixperms would change nothing.
	Differs []Difference
}

// Upkeep checks the accounts, links, owners and modes of a project and changes nothing. It walks the trees. The caller blocks
// deployments.
func (p *Projects) Upkeep(ctx context.Context, name project.Name, linked bool) (u Upkeep, err error) {
	l, err := p.Release(ctx, name)
	if err != nil {
		return u, err
	}
	of, err := p.cfg.Get(ctx, name)
	if err != nil || l.Deployment.Code == "" && !of.RemoteLess {
		return u, err
	}
	t, cfg := p.cfg.Tools, l.Prepared.Cfg
	u.User = cfg.User()
	differ := func(kind, format string, args ...any) {
		u.Differs = append(u.Differs, Difference{kind, fmt.Sprintf(format, args...)})
	}
	if linked && !(salttree.Links{FS: t.FS, Root: t.Root}).Linked(name.String()) {
		differ("links", "%s is not linked in %s and %s", name, t.Root.Salt(), t.Root.Pillar())
	}
	var owner *project.Owner
	if t.Accounts && t.Host.EUID == 0 {
		account, uerr := t.Host.Users.User(cfg.User())
		group, gerr := t.Host.Users.Group(cfg.Group())
		if errors.Is(uerr, host.ErrNoAccount) || errors.Is(gerr, host.ErrNoAccount) {
			differ("accounts", "%s: the user %s or the group %s is missing", name, cfg.User(), cfg.Group())
			return u, nil // the owner that the files should have can't be determined
		}
		if err := errors.Join(uerr, gerr); err != nil {
			return u, err
		}
		owner = &project.Owner{UID: account.UID, GID: group.GID}
	}
	var missing []string
	trees, err := permissions.Trees(t.Root.Project(name.String()), owner, cfg.Permissions(), permissions.Accounts{Users: t.Host.Users, Missing: &missing})
	if err != nil {
		return u, l.Hide.Error(err)
	}
	for _, tree := range trees {
		w, err := tree.Walk(ctx, t.FS, nil, permissions.How{Dry: true})
		if err != nil {
			return u, l.Hide.Error(err)
		}
		if w.Fixed > 0 {
			differ("permissions", "%s: owner or mode of %s in %s", name, humanize.Plural(w.Fixed, "file"), tree.Dir)
		}
	}
	return u, nil
}
