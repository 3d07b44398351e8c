package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/bundle"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/pipeline"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/receive"
)

// bundles implements verbs.Bundles.
type bundles struct{ *core }

// bundled is a repository as bundles see it.
type bundled struct {
	*receive.Repository
	c *core
}

// TakePack implements bundle.Repository, under the limits of pushes.
func (b bundled) TakePack(ctx context.Context, in io.Reader, commit project.Commit, ref string, complete func() error) error {
	return b.Repository.TakePack(ctx, in, packLimits(b.c.cfg.Load().Limits, b.c.memory), commit, ref, complete)
}

func (b bundles) of(name project.Name) bundle.Repositories {
	return func(r project.Repo) bundle.Repository { return bundled{b.repos.Open(name, r), b.core} }
}

// release is what a deployment of given commits pins.
func (b bundles) release(ctx context.Context, name project.Name, code, pillar project.Commit) (bundle.Release, error) {
	p, err := b.registry.Get(ctx, name)
	if err != nil {
		return bundle.Release{}, err
	}
	r := bundle.Release{Project: name, Environment: p.Env, Code: code, Pillar: pillar}
	if r.CodeBranch, err = b.repos.Open(name, project.Code).Head(ctx); err != nil {
		return r, err
	}
	if pillar != "" {
		r.PillarBranch, err = b.repos.Open(name, project.PillarRepo).Head(ctx)
	}
	return r, err
}

// write signs and writes a bundle for a machine that has some commits.
func (b bundles) write(ctx context.Context, m bundle.Manifest, have []project.Commit, w io.Writer) (bundle.Manifest, error) {
	keys, err := hostKeys(b.state, b.log)
	if err != nil {
		return m, err
	}
	m.At, m.From, m.Program = time.Now().UTC().Truncate(time.Second), b.hostName(), Build().Release
	return bundle.Make(ctx, w, m, b.of(m.Release.Project), bundle.Tips{Code: have, Pillar: have}, keys[0], b.state.Path())
}

// Create writes a bundle of what both branches of a project hold.
func (b bundles) Create(ctx context.Context, name project.Name, q verbs.BundleRequest, w io.Writer) (bundle.Manifest, error) {
	p, err := b.registry.Get(ctx, name)
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
	if r.CodeBranch, r.Code, err = b.repos.Open(name, project.Code).Live(ctx); err != nil {
		return m, err
	}
	if r.Code == "" {
		return m, fault.New(fault.Refused, "bundle", "%s has no code yet", name).WithHint("push a branch  master  or  main  first")
	}
	if r.PillarBranch, r.Pillar, err = b.repos.Open(name, project.PillarRepo).Live(ctx); err != nil {
		return m, err
	}
	return b.write(ctx, m, q.Have, w)
}

// Tips are what this machine has of a project: nothing of one that it does not know.
func (b bundles) Tips(ctx context.Context, name project.Name) (t bundle.Tips, err error) {
	for _, x := range []struct {
		repo project.Repo
		to   *[]project.Commit
	}{{project.Code, &t.Code}, {project.PillarRepo, &t.Pillar}} {
		repo := b.repos.Open(name, x.repo)
		there, err := repo.Exists()
		if err != nil {
			return t, err
		}
		if !there {
			continue
		}
		if *x.to, err = repo.Tips(ctx); err != nil {
			return t, err
		}
	}
	return t, nil
}

// Take stores what a bundle brings, and gives the deployment of it. A project that is not known here is created.
func (b bundles) Take(ctx context.Context, in io.Reader, by project.Pusher) (d project.Deployment, created bool, err error) {
	r, err := bundle.Open(in, b.trusted)
	if err != nil {
		return d, false, err
	}
	m := r.Manifest
	rel := m.Release
	node := &project.Node{Hub: cmp.Or(m.From, "another machine"), Name: m.Node.Name, Roles: m.Node.Roles}
	p, err := b.registry.Get(ctx, rel.Project)
	switch {
	case (err == nil && !p.RemoteLess && !reflect.DeepEqual(p.Node, node) || err != nil && fault.KindOf(err) == fault.Refused) && m.Task == "" && m.Restore == "":
		c, err := b.registry.Create(ctx, rel.Project, registry.Settings{Env: rel.Environment, Node: node})
		if err != nil {
			return d, false, err
		}
		created = c.New
	case err != nil:
		return d, false, err
	case p.RemoteLess:
		return d, false, fault.New(fault.Refused, "bundle", "%s is remote-less here: it takes no bundles", rel.Project)
	}
	d = project.Deployment{
		ID: m.Deployment, Project: rel.Project, Trigger: project.TriggerBundle, Pusher: by, Code: rel.Code, Pillar: rel.Pillar, Select: m.Select, Set: rel.Set,
		Branches: map[project.Repo]string{project.Code: rel.CodeBranch, project.PillarRepo: rel.PillarBranch}, Overwrite: true, Bundle: fmt.Sprintf("%s by %s", printable.Text(m.From), printable.Text(m.By.Key)),
	}
	if m.Task != "" {
		d = project.Deployment{ID: m.Deployment, Project: rel.Project, Trigger: project.TriggerTask, Pusher: by, Task: m.Task, Select: m.Select, Set: rel.Set}
	}
	if m.Restore != "" {
		d, err = b.before(ctx, d, m.Restore)
		return d, false, err
	}
	if known, err := b.pipeline.Begun(ctx, d); known || err != nil {
		return d, created, errors.Join(err, r.Verify())
	}
	if m.Task != "" {
		return d, created, nil
	}
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		if _, err := b.repos.Open(rel.Project, repo).Create(ctx); err != nil {
			return d, created, err
		}
	}
	if err := r.Take(ctx, b.of(rel.Project), pipeline.BundlePin(m.Deployment)); err != nil {
		return d, created, err
	}
	return d, created, nil
}

// before is the deployment that makes live again what was live before another one: none, with no trigger, where that is not what went live last. One
// before which nothing was live is undeployed.
func (b bundles) before(ctx context.Context, d project.Deployment, undone project.ID) (project.Deployment, error) {
	last, err := b.pipeline.LastLive(ctx, []project.Name{d.Project})
	if err != nil {
		return d, err
	}
	if last[d.Project].ID != undone {
		d.Trigger = ""
		return d, nil
	}
	held, err := procedures.HeldTrees(b.tools, d.Project)
	if err != nil {
		return d, err
	}
	out := project.Deployment{ID: d.ID, Project: d.Project, Pusher: d.Pusher, Trigger: project.TriggerUndeploy}
	for _, a := range held {
		if a.ID == undone {
			out.Trigger, out.Restore = project.TriggerRollback, project.ID(a.Name)
		}
	}
	return out, nil
}

// trusted refuses the keys that nobody said to trust; the server's own need none to.
func (b bundles) trusted(key ssh.PublicKey) error {
	own, err := hostKeys(b.state, b.log)
	if err != nil {
		return err
	}
	if bytes.Equal(own[0].PublicKey().Marshal(), key.Marshal()) {
		return nil
	}
	known, err := b.signers()
	if err != nil {
		return err
	}
	for _, k := range known {
		if bytes.Equal(k.Marshal(), key.Marshal()) {
			return nil
		}
	}
	return fault.New(fault.Refused, "bundle", "it is signed by %s, a key that is not trusted here", access.Fingerprint(key)).
		WithHint("if that is the machine that you mean:  corpus-git bundle trust '%s'", strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))))
}

// signers reads the keys whose bundles are deployed here.
func (b bundles) signers() (keys []ssh.PublicKey, err error) {
	text, err := os.ReadFile(b.state.BundleSigners())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", b.state.BundleSigners(), n+1, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Trust lets the bundles that a key signed be deployed here. Durable on return; changed tells that it was not trusted before.
func (b bundles) Trust(_ context.Context, text string) (fingerprint string, changed bool, err error) {
	key, comment, _, rest, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return "", false, fault.New(fault.Usage, "bundle trust", "this is not one public key").WithHint("corpus-git bundle key  prints the key of the machine that makes the bundles")
	}
	if err := b.trusted(key); err == nil {
		return access.Fingerprint(key), false, nil
	}
	old, err := os.ReadFile(b.state.BundleSigners())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	if len(old) > 0 && old[len(old)-1] != '\n' {
		old = append(old, '\n')
	}
	line := strings.TrimSpace(strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " " + comment)
	return access.Fingerprint(key), true, vfs.WriteFileAtomic(vfs.OS{}, b.state.BundleSigners(), append(old, line+"\n"...), 0o600)
}

// Key is the public key that signs this machine's bundles.
func (b bundles) Key() (string, error) {
	keys, err := hostKeys(b.state, b.log)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(keys[0].PublicKey()))) + " " + b.hostName(), nil
}
