package procedures

import (
	"context"
	"fmt"
	"strings"
	"time"

	"corpus-git/archive/tree"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/examined"
	"corpus-git/procedures/permissions"
	"corpus-git/project"
)

// ReleaseSync checks the deployment's commits out into project/ and pillar/. Untracked files stay.
type ReleaseSync struct{}

// Name implements Procedure.
func (ReleaseSync) Name() string { return NameReleaseSync }

// Run implements Procedure.
func (ReleaseSync) Run(ctx context.Context, env *Env) error {
	if env.RemoteLess {
		env.Summarize(nil, "remote-less: the working copy is deployed")
		return nil
	}
	if len(env.Prepared.Steps) > 0 && env.Prepared.Rollout == nil {
		env.series().Prepare(env.writers()) // beside the checkout
	}
	var parts, lines []string
	seen := env.takeScan()
	env.synced = nil
	code, pillar := env.treeOwners()
	left := &examined.Synced{Scan: seen, Touched: map[string][]string{}}
	for _, c := range []struct {
		repo   project.Repo
		commit project.Commit
		dir    string
		tree   string
		owner  *project.Owner
	}{
		{project.Code, env.Deployment.Code, env.Paths.Live(), layout.ArchivedTree, code},
		{project.PillarRepo, env.Deployment.Pillar, env.Paths.Pillar(), layout.ArchivedPillar, pillar},
	} {
		if c.commit == "" {
			left.Touched[c.tree] = nil
			continue
		}
		st, err := env.Tools.Repository(env.Deployment.Project, c.repo).Checkout(ctx, project.Checkout{
			Commit: c.commit, Dir: c.dir, NoSync: env.settles(), Submodules: env.Prepared.Cfg.Submodules(), Owner: c.owner, Snapshot: snapshotOf(seen, c.tree), Keep: env.Prepared.KeepsEdits(env.Deployment),
		})
		if err != nil {
			return diskfull.WithHint(fault.New(fault.KindOf(err), "check out "+string(c.repo)+" "+c.commit.Short(), "%w", err))
		}
		if st.Touched != nil {
			left.Touched[c.tree] = st.Touched
		}
		if s := checkoutSummary(st); s != "" {
			if c.repo == project.PillarRepo {
				s = "pillar " + s
			}
			parts = append(parts, s)
		}
		if st.LocalCount > 0 {
			line := fmt.Sprintf("overwrote %s changed on this machine: %s", humanize.Plural(st.LocalCount, "file"), strings.Join(printable.Lines(st.Local), ", "))
			if st.LocalCount > len(st.Local) {
				line += ", …"
			}
			lines = append(lines, line)
		}
		if st.KeptCount > 0 {
			line := fmt.Sprintf("kept %s changed on this machine: %s", humanize.Plural(st.KeptCount, "file"), strings.Join(printable.Lines(st.Kept), ", "))
			if st.KeptCount > len(st.Kept) {
				line += ", …"
			}
			lines = append(lines, line+" (-o force overwrites)")
		}
		lines = append(lines, st.Notes...)
	}
	linked, err := env.linkModules()
	if err != nil {
		return err
	}
	parts = append(parts, linked...)
	if seen != nil {
		env.synced = left
	}
	if len(parts) == 0 {
		parts = []string{"nothing to change"}
	}
	env.Summarize(lines, "%s", strings.Join(parts, "; "))
	return nil
}

// settles reports whether nothing depends on the trees before Settle, so that after a power cut the archived ones are restored.
func (e *Env) settles() bool {
	_, stays := e.Prepared.Skips(NameRollback)
	return e.archived && !stays && !e.Prepared.Dev()
}

// checkoutSummary returns "" if nothing was done and there is nothing to report.
func checkoutSummary(st project.CheckoutStats) string {
	var s []string
	if st.Written > 0 {
		s = append(s, humanize.Count(st.Written)+" written")
	}
	if st.Removed > 0 {
		s = append(s, humanize.Count(st.Removed)+" removed")
	}
	if st.Untracked > 0 {
		s = append(s, humanize.Count(st.Untracked)+" untracked kept")
	}
	return strings.Join(s, ", ")
}

// treeOwners returns the owners and permissions of the project's tree and of the pillar's, as fixperms sets them; nil if they are not known
// yet. Files that are written with them need no later fixing, and the index need not be written again.
func (e *Env) treeOwners() (code, pillar *project.Owner) {
	owner, err := e.treeOwner()
	if err != nil {
		return nil, nil
	}
	live, _, secret := permissions.Defaults(owner)
	return live.Owner(), secret.Owner()
}

// scanMaxAge is how long the archive's scan is used: see ADR 13. After a longer copy, another scan is comparatively cheap.
const scanMaxAge = 2 * time.Second

// takeScan returns the archive's scan, once, if it is recent enough.
func (e *Env) takeScan() *tree.Snapshot {
	s := e.scan
	e.scan = nil // the trees change from here on
	if s == nil || !e.fresh(s) {
		return nil
	}
	return s
}

// takeSynced returns release-sync's facts, once, if they are wanted, recent enough, and nothing else ran.
func (e *Env) takeSynced(wanted bool) *examined.Synced {
	s := e.synced
	e.synced = nil
	if !wanted || s == nil || !e.fresh(s.Scan) {
		return nil
	}
	return s
}

func (e *Env) fresh(s *tree.Snapshot) bool {
	age := e.Tools.Now().Sub(s.Begun)
	return age >= 0 && age <= scanMaxAge
}

// snapshotOf returns the scan of one tree, nil if there is none.
func snapshotOf(s *tree.Snapshot, tree string) *vfs.Snapshot {
	if s == nil {
		return nil
	}
	return &vfs.Snapshot{Begun: s.Begun, Each: func(yield func(string, vfs.FileFacts) bool) {
		for path, e := range s.Tree(tree) {
			f := vfs.FileFacts{
				Mode: e.Mode, UID: e.UID, GID: e.GID, Dev: e.Live.Dev, Ino: e.Live.Ino, Size: e.Size, Mtime: e.Mtime, Ctime: e.Live.Ctime,
			}
			if !yield(path, f) {
				return
			}
		}
	}}
}
