// Package local makes bundles of this machine's projects, and deployments of received bundles.
//
// It owns which project a bundle is for, whether it is created, and which deployment results. It never runs a deployment, and reads and
// writes repositories only through Repository.
//
// A crash leaves what package bundle describes, and at most a project without commits, which the next bundle of it fills.
package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/registry"
)

// Repository is one repository of a project of this machine.
type Repository interface {
	bundle.Repository
	// Head returns the deployed branch, Live the branch and its commit: "" before the first push.
	Head(ctx context.Context) (branch string, err error)
	Live(ctx context.Context) (branch string, commit project.Commit, err error)
	Exists() (bool, error)
	// StoredSubmodules lists the commits of submodules that are stored, and those of them that came in bundles.
	StoredSubmodules() (all, came []project.Commit, err error)
	// RecipesCame reports whether the recipes of the release of a commit are recorded here, and whether they came in a bundle.
	RecipesCame(of project.Commit) (recorded, came bool, err error)
	// TakenRecipes lists the parts of recipes that came in bundles.
	TakenRecipes() ([]project.Commit, error)
	Create(ctx context.Context) (bool, error)
}

// Projects are the projects of this machine.
type Projects interface {
	Get(ctx context.Context, name project.Name) (registry.Project, error)
	Create(ctx context.Context, name project.Name, s registry.Settings) (registry.Created, error)
}

// Deployments are the recorded deployments.
type Deployments interface {
	// Begun reports whether the deployment has already begun.
	Begun(ctx context.Context, d project.Deployment) (bool, error)
	// LastLive returns the deployments that went live last, by project.
	LastLive(ctx context.Context, names []project.Name) (map[project.Name]project.Record, error)
	// Find returns a deployment of a project; an unknown one is fault.Usage.
	Find(ctx context.Context, name project.Name, id string) (project.Record, error)
	// Undeployed reports whether a project was undeployed, and nothing has gone live since.
	Undeployed(ctx context.Context, name project.Name) (bool, error)
}

// Machine is this machine. Its fields are set before use; all methods are safe for concurrent use.
type Machine struct {
	Projects    Projects
	Repository  func(name project.Name, r project.Repo) Repository
	Deployments Deployments
	// Fences refuses the order of a hub whose lease is older than one already seen here, and records a newer one; 0 means no hub.
	Fences func(ctx context.Context, name project.Name, lease int64) error
	// Fenced is Fences, and records nothing.
	Fenced func(ctx context.Context, name project.Name, lease int64) error
	// Restorable returns the name of the archive that restores what a deployment replaced, "" for none.
	Restorable func(name project.Name, replaced project.ID) (archive string, err error)
	// Signer signs bundles made here.
	Signer func() (ssh.Signer, error)
	// Name is this machine's name, Program the release of corpus-git, both for people.
	Name    func() string
	Program string
	// Signers is the path of the trusted keys (bundle.Signers), Temp the folder where packs are made.
	Signers, Temp string
	Now           func() time.Time
}

// Request describes what a bundle is for.
type Request struct {
	// ID is the ID of the deployment; "" creates a new one.
	ID project.ID
	// Have is what the other machine already has.
	Have bundle.Tips
	// Task is a task to run in place of a deployment, "" for none.
	Task   string
	Select project.Selection
	Set    []project.Setting
	By     project.Pusher
}

func (b *Machine) of(name project.Name) bundle.Repositories {
	return func(r project.Repo) bundle.Repository { return b.Repository(name, r) }
}

// Release returns what a deployment of given commits pins.
func (b *Machine) Release(ctx context.Context, name project.Name, code, pillar project.Commit) (bundle.Release, error) {
	p, err := b.Projects.Get(ctx, name)
	if err != nil {
		return bundle.Release{}, err
	}
	r := bundle.Release{Project: name, Environment: p.Env, Code: code, Pillar: pillar}
	if r.CodeBranch, err = b.Repository(name, project.Code).Head(ctx); err != nil {
		return r, err
	}
	if pillar != "" {
		r.PillarBranch, err = b.Repository(name, project.PillarRepo).Head(ctx)
	}
	return r, err
}

// Write signs and writes a bundle for a machine that has some commits. packs keeps its packs for others; it may be nil.
func (b *Machine) Write(ctx context.Context, m bundle.Manifest, have bundle.Tips, packs *bundle.Packs, w io.Writer) (bundle.Manifest, error) {
	signer, err := b.Signer()
	if err != nil {
		return m, err
	}
	m.At, m.From, m.Program = b.Now().UTC().Truncate(time.Second), b.Name(), b.Program
	return bundle.Make(ctx, w, m, b.of(m.Release.Project), have, packs, signer, b.Temp)
}

// Create writes a bundle of what both branches of a project hold.
func (b *Machine) Create(ctx context.Context, name project.Name, q Request, w io.Writer) (bundle.Manifest, error) {
	p, err := b.Projects.Get(ctx, name)
	if err != nil {
		return bundle.Manifest{}, err
	}
	if p.RemoteLess {
		return bundle.Manifest{}, fault.New(fault.Refused, "bundle", "%s is remote-less: it has no commits that another machine could get", name)
	}
	m := bundle.Manifest{
		Release:    bundle.Release{Project: name, Environment: p.Env, Set: q.Set},
		Deployment: q.ID, Task: q.Task, Select: q.Select, By: q.By,
	}
	if m.Deployment == "" {
		m.Deployment = project.NewID()
	}
	r := &m.Release
	if r.CodeBranch, r.Code, err = b.Repository(name, project.Code).Live(ctx); err != nil {
		return m, err
	}
	if r.Code == "" {
		return m, fault.New(fault.Refused, "bundle", "%s has no code yet", name).WithHint("push a branch  master  or  main  first")
	}
	if r.PillarBranch, r.Pillar, err = b.Repository(name, project.PillarRepo).Live(ctx); err != nil {
		return m, err
	}
	return b.Write(ctx, m, q.Have, nil, w)
}

// Tips returns what this machine has of a project: nothing of an unknown one.
func (b *Machine) Tips(ctx context.Context, name project.Name) (t bundle.Tips, err error) {
	for _, x := range []struct {
		repo  project.Repo
		to    *[]project.Commit
		links **bundle.Submodules
	}{{project.Code, &t.Code, &t.Submodules}, {project.PillarRepo, &t.Pillar, &t.PillarSubmodules}} {
		repo := b.Repository(name, x.repo)
		there, err := repo.Exists()
		if err != nil {
			return t, err
		}
		*x.links = &bundle.Submodules{}
		if !there {
			continue
		}
		if *x.to, err = repo.Tips(ctx); err != nil {
			return t, err
		}
		if (*x.links).Commits, (*x.links).Bundled, err = repo.StoredSubmodules(); err != nil {
			return t, err
		}
	}
	t.Recipes = &bundle.Parts{}
	if t.Recipes.Commits, err = b.Repository(name, project.Code).TakenRecipes(); err != nil {
		return t, err
	}
	if p, err := b.Projects.Get(ctx, name); err == nil {
		t.KV, err = keysDigest(p.Node)
		return t, err
	} else if fault.KindOf(err) != fault.Refused {
		return t, err
	}
	return t, nil
}

// keysDigest returns the digest of the keys that a project received with its last bundle, "" for none.
func keysDigest(n *project.Node) (string, error) {
	if n == nil || len(n.KV) == 0 {
		return "", nil
	}
	text, err := json.Marshal(n.KV)
	return bundle.KeysDigest(text), err
}

// keys returns the keys of a bundle, which may leave out those that the project has already.
func keys(m bundle.Manifest, has *project.Node) (out map[string]string, err error) {
	if len(m.KV) > 0 {
		if err := json.Unmarshal(m.KV, &out); err != nil {
			return nil, fault.New(fault.Refused, "", "the bundle's keys: %w", err)
		}
		return out, nil
	}
	if m.KVDigest == "" {
		return nil, nil
	}
	switch own, err := keysDigest(has); {
	case err != nil:
		return nil, err
	case own != m.KVDigest:
		return nil, fault.New(fault.Busy, "", "the bundle leaves out keys that %s does not have here any more", m.Release.Project).WithHint("deploy again")
	}
	return has.KV, nil
}

// Trust adds a key whose bundles are deployed here: see bundle.Signers.
func (b *Machine) Trust(_ context.Context, text string) (fingerprint string, changed bool, err error) {
	s, err := b.signers()
	if err != nil {
		return "", false, err
	}
	return s.Trust(text)
}

// Untrust removes a key whose bundles are deployed here: see bundle.Signers.Forget.
func (b *Machine) Untrust(_ context.Context, text string) (fingerprint string, changed bool, err error) {
	s, err := b.signers()
	if err != nil {
		return "", false, err
	}
	return s.Forget(text)
}

// TrustedKeys returns the keys whose bundles are deployed here besides this machine's own, as lines of authorized_keys.
func (b *Machine) TrustedKeys(context.Context) ([]string, error) {
	s, err := b.signers()
	if err != nil {
		return nil, err
	}
	return s.Keys()
}

// Key returns the public key that signs this machine's bundles.
func (b *Machine) Key() (string, error) {
	signer, err := b.Signer()
	if err != nil {
		return "", err
	}
	return bundle.KeyLine(signer.PublicKey(), b.Name()), nil
}

func (b *Machine) signers() (bundle.Signers, error) {
	signer, err := b.Signer()
	if err != nil {
		return bundle.Signers{}, err
	}
	return bundle.Signers{Path: b.Signers, Own: signer.PublicKey()}, nil
}

// Take stores the content of a bundle, and returns its deployment. An unknown project is created. pin names the ref that keeps the commits
// until the deployment has pinned them.
func (b *Machine) Take(ctx context.Context, in io.Reader, by project.Pusher, pin func(project.ID) string) (d project.Deployment, created bool, err error) {
	s, err := b.signers()
	if err != nil {
		return d, false, err
	}
	r, err := bundle.Open(in, s.Trusted)
	if err != nil {
		return d, false, err
	}
	m := r.Manifest
	if err := b.Fences(ctx, m.Release.Project, m.Lease); err != nil {
		return d, false, err
	}
	if m.Undeploy {
		return b.leave(ctx, r, by)
	}
	brings := m.Task == "" && m.Restore == ""
	if created, err = b.known(ctx, m, brings); err != nil {
		return d, false, err
	}
	switch {
	case m.Restore != "":
		d, err = b.before(ctx, m, by)
		return d, false, errors.Join(err, r.Skip())
	case m.Task != "":
		d = project.Deployment{ID: m.Deployment, Project: m.Release.Project, Trigger: project.TriggerTask, Pusher: by, Task: m.Task, Select: m.Select, Set: m.Release.Set}
	default:
		d = deployment(m, by)
	}
	if known, err := b.Deployments.Begun(ctx, d); known || err != nil {
		return d, created, errors.Join(err, r.Skip())
	}
	if !brings {
		return d, created, r.Skip()
	}
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		if _, err := b.Repository(d.Project, repo).Create(ctx); err != nil {
			return d, created, err
		}
	}
	return d, created, r.Take(ctx, b.of(d.Project), pin(m.Deployment))
}

// leave returns the undeploy of a bundle; none, without a trigger, if the project is unknown here.
func (b *Machine) leave(ctx context.Context, r *bundle.Reader, by project.Pusher) (project.Deployment, bool, error) {
	d := project.Deployment{ID: r.Manifest.Deployment, Project: r.Manifest.Release.Project, Pusher: by}
	_, err := b.Projects.Get(ctx, d.Project)
	switch {
	case err == nil:
		d.Trigger = project.TriggerUndeploy
		_, err = b.Deployments.Begun(ctx, d)
	case fault.KindOf(err) == fault.Refused:
		err = nil
	}
	return d, false, errors.Join(err, r.Skip())
}

// LastLive returns the deployment that went live last, "" if there is none, or the project was undeployed since.
func (b *Machine) LastLive(ctx context.Context, name project.Name) (project.ID, error) {
	if gone, err := b.Deployments.Undeployed(ctx, name); err != nil || gone {
		return "", err
	}
	last, err := b.Deployments.LastLive(ctx, []project.Name{name})
	return last[name].ID, err
}

// Fence refuses the order of a hub whose lease is older than one already seen here.
func (b *Machine) Fence(ctx context.Context, name project.Name, lease int64) error {
	return b.Fences(ctx, name, lease)
}

// Standing returns the commit of a project that is live here, "" for none, and the error with which a bundle of a hub with a lease would be refused. It records nothing.
func (b *Machine) Standing(ctx context.Context, name project.Name, lease int64) (live project.Commit, err error) {
	if err := b.Fenced(ctx, name, lease); err != nil {
		return "", err
	}
	p, err := b.Projects.Get(ctx, name)
	if fault.KindOf(err) == fault.Refused {
		return "", nil // it would be created
	}
	if err == nil {
		err = takes(p)
	}
	if err != nil {
		return "", err
	}
	repo := b.Repository(name, project.Code)
	if there, err := repo.Exists(); err != nil || !there {
		return "", err
	}
	_, live, err = repo.Live(ctx)
	return live, err
}

// takes refuses bundles for a project without repositories.
func takes(p registry.Project) error {
	if p.RemoteLess {
		return fault.New(fault.Refused, "bundle", "%s is remote-less here: it takes no bundles", p.Name)
	}
	return nil
}

// known creates the project of a bundle, if the bundle has commits, or updates its node and, on a node, its environment, which is the hub's.
func (b *Machine) known(ctx context.Context, m bundle.Manifest, brings bool) (created bool, err error) {
	name := m.Release.Project
	node := &project.Node{Hub: cmp.Or(m.From, "another machine"), Name: m.Node.Name, Roles: m.Node.Roles}
	p, err := b.Projects.Get(ctx, name)
	if brings && (err == nil || fault.KindOf(err) == fault.Refused) {
		var kerr error
		if node.KV, kerr = keys(m, p.Node); kerr != nil {
			return false, kerr
		}
	}
	if node.Exports = m.Exports; node.Exports == nil && p.Node != nil {
		node.Exports = p.Node.Exports // a bundle that is sent in advance has none yet
	}
	unknown := err != nil && fault.KindOf(err) == fault.Refused
	switch {
	case err != nil && (!unknown || !brings):
		return false, err
	case err == nil && p.RemoteLess:
		return false, takes(p)
	case unknown, brings && !reflect.DeepEqual(p.Node, node):
		c, err := b.Projects.Create(ctx, name, registry.Settings{Env: m.Release.Environment, Node: node})
		return c.New, err
	case m.Node.Name != "" && m.Restore == "" && m.Release.Environment != "" && m.Release.Environment != p.Env:
		_, err := b.Projects.Create(ctx, name, registry.Settings{Env: m.Release.Environment})
		return false, err
	}
	return false, nil
}

// deployment returns the deployment of the commits of a bundle.
func deployment(m bundle.Manifest, by project.Pusher) project.Deployment {
	rel := m.Release
	return project.Deployment{
		ID: m.Deployment, Project: rel.Project, Trigger: project.TriggerBundle, Pusher: by, Code: rel.Code, Pillar: rel.Pillar, Select: m.Select, Set: rel.Set, Exports: m.Exports, Leader: m.Leader,
		Branches: map[project.Repo]string{project.Code: rel.CodeBranch, project.PillarRepo: rel.PillarBranch}, Overwrite: true,
		Bundle: fmt.Sprintf("%s by %s", printable.Text(m.From), printable.Text(m.By.Key)),
	}
}

// before returns the deployment that restores what was live before another one: none, without a trigger, if that was not the last that went
// live. If nothing was live before, it is an undeploy. What was live before and was not archived is fault.Refused.
func (b *Machine) before(ctx context.Context, m bundle.Manifest, by project.Pusher) (project.Deployment, error) {
	d := project.Deployment{ID: m.Deployment, Project: m.Release.Project, Pusher: by}
	last, err := b.Deployments.LastLive(ctx, []project.Name{d.Project})
	if err != nil {
		return d, err
	}
	if id := last[d.Project].ID; id != m.Restore && !slices.Contains(m.Also, id) {
		return d, nil
	}
	archive, err := b.Restorable(d.Project, m.Restore)
	if err != nil {
		return d, err
	}
	if archive != "" {
		d.Trigger, d.Restore = project.TriggerRollback, project.ID(archive)
		return d, nil
	}
	rec, err := b.Deployments.Find(ctx, d.Project, string(m.Restore))
	if err != nil {
		return d, err
	}
	if rec.LiveCode != "" {
		return d, fault.New(fault.Refused, "rollback", "no archive has what was live before the deployment %s: %s", m.Restore.Short(), rec.LiveCode.Short()).WithHint("deploy it again")
	}
	d.Trigger = project.TriggerUndeploy
	return d, nil
}
