package procedures

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"corpus-git/internal/diskfull"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/vfs"
	"corpus-git/procedures/permissions"
	"corpus-git/project"
)

// Fixperms enforces owner, group and modes, and changes only what differs:
//
//	project/   <user>:<group>, folders set-group-ID
//	data/      the same for what belongs to root or to the project; what other accounts own is not changed, nor are pid files of root
//	pillar/    root:<group>, nothing for others
//
// and the project's own `permissions` for paths below (permission.Rule). As an ordinary user owners are kept, and the pillar is
// closed to everybody else. Symbolic links are neither followed nor changed; a file that also has a name outside the tree stays as it
// is. It may be run again after any error.
type Fixperms struct {
	// Early is true if steps are still to run, or have been undone: an account named by a rule may then be missing. That part of the
	// rule is skipped, and reported.
	Early bool
	// Synced is true right after release-sync: its facts about the trees are used for as long as the checkout would use the archive's
	// scan.
	Synced bool
}

// Name implements Procedure.
func (Fixperms) Name() string { return NameFixperms }

// Run implements Procedure.
func (f Fixperms) Run(ctx context.Context, env *Env) error {
	known := env.takeSynced(f.Synced)
	look := permissions.Accounts{Users: env.Tools.Host.Users}
	var kept []string
	if f.Early {
		look.Missing = &kept
	}
	trees, err := env.permTrees(look)
	if err != nil {
		return err
	}
	tail := ""
	if !env.Tools.ownsFiles() {
		tail = ", " + env.leftOwners()
	}
	var changed map[string]*permissions.Part
	switch {
	case !f.Early:
		changed = env.Tools.known.Changed(trees)
	case known == nil: // otherwise only the archive can have begun it: its facts are older
		env.Tools.known.Begin(env.Paths)
	}
	if len(changed) > 0 {
		tail = ", the rest as before the steps" + tail
	}
	var right, fixed int64
	for _, t := range trees {
		part, seen := known.PartOf(t)
		if p, ok := changed[t.Dir]; ok {
			part = p
		}
		w, err := env.walk(ctx, t, part, permissions.How{Inodes: f.Early && env.Tools.known.Wants(part)})
		if err == nil && w.Unsure && changed[t.Dir] != nil {
			was := w.Fixed
			w, err = env.walk(ctx, t, nil, permissions.How{})
			w.Fixed += was
		}
		if err != nil {
			return err
		}
		if f.Early {
			env.Tools.known.Add(t, known, part, w)
		}
		right += seen + w.Unchanged
		fixed += w.Fixed
		if w.Fixed > 0 {
			env.differ(int(w.Fixed), "%s of %s", humanize.Plural(w.Fixed, "permission"), t.Name)
		}
		if t.Repo != "" && w.Fixed > 0 && !env.RemoteLess {
			if err := env.Tools.Repository(env.Deployment.Project, t.Repo).Refresh(ctx, t.Dir); err != nil {
				return fault.New(fault.Internal, NameFixperms, "refresh the index of %s: %w", t.Dir, err)
			}
		}
		if n := len(w.Foreign); n > 0 {
			kept = append(kept, fmt.Sprintf("%s kept: hard links out of the tree, such as %s", humanize.Plural(n, "owner"), w.Foreign[0]))
		}
	}
	switch {
	case fixed == 0:
		env.Summarize(kept, "%s unchanged%s", humanize.Count(right), tail)
	case right == 0:
		env.Summarize(kept, "%s fixed%s", humanize.Count(fixed), tail)
	default:
		env.Summarize(kept, "%s unchanged, %s fixed%s", humanize.Count(right), humanize.Count(fixed), tail)
	}
	return nil
}

// permTrees returns the project's trees and their rules.
func (e *Env) permTrees(look permissions.Accounts) ([]permissions.Tree, error) {
	owner, err := e.treeOwner()
	if err != nil {
		return nil, err
	}
	return permissions.Trees(e.Paths, owner, e.Prepared.Cfg.Permissions(), look)
}

// treeOwner returns the owner of the project's files, nil if this server does not manage owners.
func (e *Env) treeOwner() (*project.Owner, error) {
	if !e.Tools.ownsFiles() {
		return nil, nil
	}
	o, err := e.owner()
	if err != nil {
		return nil, err
	}
	return &o, nil
}

// owner returns the user and the group that the project's files belong to. They must exist.
func (e *Env) owner() (o project.Owner, err error) {
	user, group := e.Prepared.Cfg.User(), e.Prepared.Cfg.Group()
	u, err := e.Tools.Host.Users.User(user)
	if err != nil {
		return o, fault.New(fault.Failed, NameFixperms, "user %s: %w", user, err).WithHint("the sync procedure creates the user; run it, or correct `user` in the pillar")
	}
	g, err := e.Tools.Host.Users.Group(group)
	if err != nil {
		return o, fault.New(fault.Failed, NameFixperms, "group %s: %w", group, err).WithHint("the sync procedure creates the group; run it, or correct `group` in the pillar")
	}
	return project.Owner{UID: u.UID, GID: g.GID}, nil
}

// walk applies the rules of a tree: see permissions.Tree.Walk. A missing tree is not an error.
func (e *Env) walk(ctx context.Context, t permissions.Tree, part *permissions.Part, how permissions.How) (permissions.WalkResult, error) {
	w, err := t.Walk(ctx, e.Tools.FS, part, how)
	if err == nil {
		return w, nil
	}
	if there, xerr := vfs.Exists(e.Tools.FS, t.Dir); xerr == nil && !there {
		return w, nil
	}
	if ctx.Err() != nil {
		return w, err
	}
	f := diskfull.WithHint(fault.New(fault.Internal, NameFixperms, "%s: %w", t.Dir, err))
	if f.Hint == "" {
		f = f.WithHint("only owners and modes were being changed: push again to continue")
	}
	return w, f
}

// planFixperms reports what fixperms would change in the current trees. Missing accounts that sync would create are not errors.
func (e *Env) planFixperms(ctx context.Context) (int, error) {
	say := func(st event.Status, lines []string, format string, args ...any) {
		e.Report.Append(event.Event{Kind: event.Plan, Status: st, Procedure: NameFixperms, Text: NameFixperms + "  " + fmt.Sprintf(format, args...), Lines: lines})
	}
	var lines []string
	trees, err := e.permTrees(permissions.Accounts{Users: e.Tools.Host.Users, Missing: &lines})
	if err != nil {
		say(event.Changed, nil, "decided when it runs: %v", err)
		return 0, nil
	}
	missing := len(lines)
	var right, n int64
	for _, t := range trees {
		w, err := e.walk(ctx, t, nil, permissions.How{Dry: true})
		if err != nil {
			return 0, err
		}
		right, n = right+w.Unchanged, n+w.Fixed
		if w.Fixed > 0 {
			e.differ(int(w.Fixed), "%s of %s", humanize.Plural(w.Fixed, "permission"), t.Name)
		}
		slices.Sort(w.Differ)
		for _, l := range w.Differ {
			lines = append(lines, "~ "+filepath.Join(t.Name, l))
		}
	}
	if n == 0 {
		say(event.OK, lines, "%s unchanged", humanize.Count(right))
		return 0, nil
	}
	if more := n - int64(len(lines)-missing); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	say(event.Changed, lines, "%s would change", humanize.Plural(n, "permission"))
	return int(n), nil
}
