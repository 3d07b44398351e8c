package receive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/checkout"
	"corpus-git/git/pack"
	"corpus-git/git/tree"
	"corpus-git/git/upload"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/receive/submodule"
)

// SubmoduleSettings is what fetching submodules needs to know about the server.
type SubmoduleSettings struct {
	// Hosts are the hosts that may be contacted, empty for all; Timeout limits each fetch.
	Hosts   []string
	Timeout time.Duration
	// Mirrors are tried first: see submodule.Resolver.
	Mirrors []string
	// Limits limits each pack.
	Limits pack.Limits
	// HTTP is used for web servers.
	HTTP http.Client
	// Agent is our name and version.
	Agent string
	// MayRead reports whether a pusher may read a repository of this server. nil means that nobody may.
	MayRead func(ctx context.Context, who project.Pusher, name project.Name, repo project.Repo) (bool, error)
	// Home returns the home folder of a system user, which holds the ssh key for other servers; "" if there is none. nil means none.
	Home func(user string) string
	// Here reports whether host:port is this server's own address. nil means that none is.
	Here func(hostport string) bool
}

// modulesDir returns the folder of the repositories of submodules, and its mode: those of the pillar are accessible to its owner only.
func (r *Repository) modulesDir() (string, uint32) {
	p := r.all.Root.Project(string(r.name))
	if r.repo == project.PillarRepo {
		return p.PillarModules(), 0o700
	}
	return p.Modules(), 0o755
}

// Submodules finds the submodules of a commit, fetches missing ones, and returns the commit's files with those of the submodules at their paths; nil if no
// submodule of the commit has a URL. Objects in in, which may be nil, are used too. The error names the submodule: fault.Busy if trying again may help,
// otherwise fault.Refused. What was fetched is durable. The file system is valid until ctx ends. Only one call may run at a time for each
// project, except for offline ones.
func (r *Repository) Submodules(ctx context.Context, c project.Commit, in project.Incoming, want project.SubmoduleRequest) (fs.FS, error) {
	o, err := r.acquire()
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() {
		if !keep {
			r.all.release(o)
		}
	}()
	rd, err := r.all.reader(o, in)
	if err != nil {
		return nil, err
	}
	id, _, err := peelCommit(rd, hashOf(c))
	if err != nil {
		return nil, err
	}
	if text, err := tree.File(rd, id, submodule.File); err != nil || text == nil {
		return nil, err
	}
	dir, mode := r.modulesDir()
	s, set, err := r.resolver(dir, mode, want)
	if err != nil {
		return nil, err
	}
	s.Local = func(ctx context.Context, path string) (*submodule.Project, error) {
		return r.all.local(ctx, path, want.Pusher, set)
	}
	if s.Bases, err = bases(r.name, r.repo, want.Base); err != nil {
		return nil, err
	}
	found, err := s.Resolve(ctx, rd, id)
	if err != nil {
		return nil, err
	}
	tree, err := tree.FSWith(ctx, rd, id, "", found.Modules)
	if err != nil {
		return nil, errors.Join(err, found.Close())
	}
	keep = true
	context.AfterFunc(ctx, func() {
		if err := found.Close(); err != nil {
			r.all.Log.Warn().Err(err).Str("project", string(r.name)).Msg("closing the repositories of submodules")
		}
		r.all.release(o)
	})
	return tree, nil
}

// resolver returns a Resolver that fetches into a folder of repositories.
func (r *Repository) resolver(dir string, mode uint32, want project.SubmoduleRequest) (*submodule.Resolver, SubmoduleSettings, error) {
	var set SubmoduleSettings
	if r.all.Submodule != nil {
		set = r.all.Submodule()
	}
	dir, err := filepath.Abs(dir)
	s := &submodule.Resolver{
		Dir: dir, Mode: mode, Offline: want.Offline || !want.Fetch, Here: set.Here, Hosts: set.Hosts, Mirrors: set.Mirrors, Timeout: set.Timeout, Limits: set.Limits, MaxFiles: r.all.MaxFiles,
		HTTP: set.HTTP, Agent: set.Agent, ID: func() string { return string(project.NewID()) }, Say: want.Say, Hide: want.Hide, Now: r.all.Now,
	}
	if set.Home != nil {
		s.Home = set.Home(want.User)
	}
	return s, set, err
}

// bases returns the addresses that relative URLs are relative to: what the project sets, or its own address on this server.
func bases(name project.Name, repo project.Repo, base string) ([]submodule.Address, error) {
	if base == "" {
		return submodule.LocalBases(fmt.Sprintf("/%s/%s.git", name, repo)), nil
	}
	a, err := submodule.ParseAddress(base)
	if err == nil && a.Kind == submodule.Relative {
		err = errors.New("it is relative itself")
	}
	if err != nil {
		return nil, fault.New(fault.Refused, "", "submodules_base of the project's configuration: %w", err).WithHint("%s", fault.HintOf(err))
	}
	return []submodule.Address{a}, nil
}

// local returns a repository of this server as the source of a submodule. Without read permission the answer is the same as for a missing one.
func (r *Repositories) local(ctx context.Context, path string, who project.Pusher, set SubmoduleSettings) (*submodule.Project, error) {
	name, repo, err := ParsePath(r.Root, path)
	if err != nil {
		return nil, err
	}
	may := false
	if set.MayRead != nil {
		if may, err = set.MayRead(ctx, who, name, repo); err != nil {
			return nil, err
		}
	}
	from := r.Open(name, repo)
	there, err := from.Exists()
	if err != nil {
		return nil, err
	}
	if !there || !may {
		want := project.Read
		if repo == project.PillarRepo {
			want = project.Configure
		}
		return nil, fault.New(fault.Refused, "", "no project %s on this server, or %s may not read its %s.git", name, who.Key, repo).
			WithHint("an administrator can grant it:  corpus-git access grant %s %s %s ; if you mean another server, set  submodules_base  in the project's configuration to the project's address there", name, who.Key, want)
	}
	o, err := from.acquire()
	if err != nil {
		return nil, err
	}
	db, err := r.objects(o)
	if err != nil {
		r.release(o)
		return nil, err
	}
	return &submodule.Project{
		Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
			return upload.Serve(ctx, upload.Request{Objects: db, Refs: o.refs, Version: 2, Agent: set.Agent}, in, out)
		},
		Close: func() { r.release(o) },
	}, nil
}

// peelCommit follows tags to a commit.
func peelCommit(rd tree.Objects, h plumbing.Hash) (plumbing.Hash, tree.Facts, error) {
	f, err := tree.Describe(rd, h)
	return f.Commit, f, err
}

// modules finds the submodules of a commit that are stored. The caller closes the set.
func (r *Repository) modules(ctx context.Context, rd tree.Objects, id plumbing.Hash) (*submodule.Set, error) {
	dir, _ := r.modulesDir()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return (&submodule.Resolver{Dir: dir, Offline: true, Now: r.all.Now}).Resolve(ctx, rd, id)
}

// describeLinks adds the changes in stored submodules to the changes of a commit.
func (r *Repository) describeLinks(ctx context.Context, links []tree.LinkChange, d *project.Description) error {
	dir, _ := r.modulesDir()
	return describeLinks(ctx, dir, links, "", d)
}

// describeLinks adds, for each submodule below prefix that is already among the paths, its old and new commit.
func describeLinks(ctx context.Context, dir string, links []tree.LinkChange, prefix string, d *project.Description) error {
	show := func(h plumbing.Hash) string {
		if h.IsZero() {
			return "none"
		}
		return h.String()[:7]
	}
	for _, l := range links {
		at := prefix + l.Path
		for i, p := range d.Paths {
			if p == printable.Line(at) {
				d.Paths[i] = fmt.Sprintf("%s (submodule, %s to %s)", p, show(l.Old), show(l.New))
			}
		}
		if l.New.IsZero() {
			continue
		}
		objs, end, ok, err := submodule.Find(ctx, dir, l.New)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		inner, err := describeLink(ctx, objs, l, at, d)
		if err := errors.Join(err, end()); err != nil {
			return err
		}
		if err := describeLinks(ctx, dir, inner, at+"/", d); err != nil {
			return err
		}
	}
	return nil
}

// describeLink adds the changes in one submodule, and returns the changes of its own submodules.
func describeLink(ctx context.Context, objs tree.Objects, l tree.LinkChange, at string, d *project.Description) ([]tree.LinkChange, error) {
	from := l.Old
	if ok, err := objs.Has(from); err != nil {
		return nil, err
	} else if !ok {
		from = plumbing.ZeroHash
	}
	diff, err := tree.Diff(ctx, objs, from, l.New, maxPaths)
	if err != nil {
		return nil, err
	}
	d.Files += diff.Files()
	d.Bytes += diff.Bytes
	for _, p := range diff.Paths {
		if len(d.Paths) < maxPaths {
			d.Paths = append(d.Paths, printable.Line(at+"/"+p.Path))
		}
	}
	return diff.Links, nil
}

// RefuseLFS returns fault.Refused if a file of a commit, or of its stored submodules, is a git-lfs pointer. Objects in in, which may be nil, are visible.
func (r *Repository) RefuseLFS(ctx context.Context, c project.Commit, in project.Incoming) error {
	return r.with(ctx, func(o *opened) error {
		rd, err := r.all.reader(o, in)
		if err != nil {
			return err
		}
		id, _, err := peelCommit(rd, hashOf(c))
		if err != nil {
			return err
		}
		set, err := r.modules(ctx, rd, id)
		if err != nil {
			return err
		}
		defer set.Close()
		return checkout.RefuseLFS(ctx, rd, id, set.Modules)
	})
}
