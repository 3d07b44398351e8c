package procedures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/vfs"
	"corpus-git/procedures/accounts"
	"corpus-git/procedures/salttree"
	"corpus-git/project"
)

// Sync creates or fixes what a project needs around its working copy: user, group, ssh key, bare repositories, folders, the two links, the
// top file, custom modules. It changes only what is missing or wrong.
type Sync struct{}

// Name implements Procedure.
func (Sync) Name() string { return NameSync }

// Run implements Procedure.
func (Sync) Run(ctx context.Context, env *Env) error {
	var made, did, lines []string
	if env.Tools.ownsFiles() {
		cfg := env.Prepared.Cfg
		who, err := accounts.Accounts{Users: env.Tools.Host.Users, Exec: env.Tools.Exec}.Ensure(ctx, cfg.User(), cfg.Group(), cfg.Groups())
		if err != nil {
			return fault.New(fault.KindOf(err), NameSync, "%w", err)
		}
		made = append(made, who...)
	} else {
		lines = append(lines, "users and groups: "+env.leftOwners())
	}
	if !env.RemoteLess {
		for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
			isNew, err := env.Tools.Repository(env.Deployment.Project, repo).Create(ctx)
			if err != nil {
				return fault.New(fault.Internal, NameSync, "repository %s.git: %w", repo, err)
			}
			if isNew {
				made = append(made, string(repo)+".git")
			}
		}
	}
	dirs, err := EnsureDirs(env.Tools.FS, env.Paths, !env.RemoteLess)
	if err != nil {
		return fault.New(fault.Internal, NameSync, "%w", err)
	}
	if made = append(made, dirs...); len(made) > 0 {
		did = append(did, "created "+strings.Join(made, ", "))
	}
	linked, err := env.link()
	if err != nil {
		return fault.New(fault.KindOf(err), NameSync, "%w", err)
	}
	did = append(did, linked...)
	if len(did) == 0 {
		env.Summarize(nil, "up to date")
		return nil
	}
	if env.Tools.Remotes != nil && !env.RemoteLess {
		code, pillar := env.Tools.Remotes(env.Deployment.Project)
		lines = append(lines, "push code to    "+code, "push pillar to  "+pillar)
	}
	env.Summarize(lines, "%s", strings.Join(did, ", "))
	return nil
}

// link adds the project to the Salt and pillar trees, unless the operator removed it.
func (e *Env) link() ([]string, error) {
	if e.Unlinked {
		return nil, nil
	}
	links := salttree.Links{FS: e.Tools.FS, Root: e.Tools.Root}
	did, err := links.Link(e.Deployment.Project.String())
	if err != nil {
		return nil, err
	}
	modules, err := e.linkModules()
	return append(did, modules...), err
}

// linkModules links the project's own Salt modules into Salt's tree: when a deployment begins, after the checkout, and after a rollback.
func (e *Env) linkModules() ([]string, error) {
	if e.Unlinked {
		return nil, nil
	}
	n, err := salttree.Links{FS: e.Tools.FS, Root: e.Tools.Root}.Modules(e.Deployment.Project.String())
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "custom modules", "%w", err)
	}
	if n == 0 {
		return nil, nil
	}
	return []string{"linked " + humanize.Plural(n, "module")}, nil
}

// pathsOf is the part of layout.Project that EnsureDirs needs.
type pathsOf interface {
	Dir() string
	Live() string
	Pillar() string
	Data() string
	Git() string
	Archives() string
}

// EnsureDirs creates the missing folders of a project; existing ones keep their mode. It returns the names of those that it created.
func EnsureDirs(f vfs.FS, p pathsOf, git bool) ([]string, error) {
	var made []string
	dirs := []struct {
		path string
		mode uint32
	}{{p.Dir(), 0o755}, {p.Archives(), 0o750}, {p.Data(), 0o750}, {p.Live(), 0o755}, {p.Pillar(), 0o700}}
	if git {
		dirs = append(dirs, struct {
			path string
			mode uint32
		}{p.Git(), 0o700})
	}
	for _, d := range dirs {
		st, err := f.Lstat(d.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := vfs.MkdirAll(f, d.path, 0o755); err != nil {
				return made, err
			}
			if err := f.Chmod(d.path, d.mode); err != nil {
				return made, err
			}
			if d.path != p.Dir() {
				made = append(made, d.path[len(p.Dir())+1:]+"/")
			}
		case err != nil:
			return made, err
		case !st.IsDir() && !st.IsSymlink():
			return made, fmt.Errorf("%s is not a folder", d.path)
		}
	}
	return made, nil
}
