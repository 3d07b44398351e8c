package changes

import (
	"context"
	"sync"

	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/pipeline"
	"corpus-git/project"
	"corpus-git/receive"
	"corpus-git/receive/session"
)

// Gate is the lock of all changes of a server. The zero value is ready.
type Gate struct {
	mu sync.RWMutex
	// After is called after a change of the files of a project outside of a deployment, without the lock; nil does nothing.
	After func(project.Name)
}

// after calls After, unless the change failed.
func (g *Gate) after(name project.Name, err error) {
	if err == nil && g.After != nil {
		g.After(name)
	}
}

// share makes a change without a condition.
func (g *Gate) share(change func() error) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return change()
}

// Backend returns b with every change behind the gate. check is the condition of the request, nil for none: it is called right before the first change of the request, with no other change between
// them, and its error is returned instead of making the change. A Backend with a condition is for one request.
func (g *Gate) Backend(b *verbs.Backend, check func() error) *verbs.Backend {
	r := &request{gate: g, check: check}
	out := *b
	out.Projects = projects{b.Projects, r}
	out.Runs = runs{b.Runs, r}
	out.Access = principals{b.Access, r}
	out.Archives = archives{b.Archives, r}
	out.Units = units{b.Units, r}
	out.Signals = signals{b.Signals, r}
	out.Approvals = votes{b.Approvals, r}
	out.KV = keys{b.KV, r}
	out.Fleet = machines{b.Fleet, r}
	out.Jobs = stored{b.Jobs, r}
	out.Notifications = notifications{b.Notifications, r}
	return &out
}

// request is one run of a verb.
type request struct {
	gate  *Gate
	check func() error
	// met: the first change was made; what the request itself changed does not count.
	met bool
}

// do makes a change.
func (r *request) do(change func() error) error {
	if r.check == nil || r.met {
		return r.gate.share(change)
	}
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	if err := r.check(); err != nil {
		return err
	}
	r.met = true
	return change()
}

// long makes a change that takes long, and that the project's queue excludes from others without a condition: only with one it takes the lock.
func (r *request) long(change func() error) error {
	if r.check == nil || r.met {
		return change()
	}
	return r.do(change)
}

// with makes a change that returns a value.
func with[T any](r *request, change func() (T, error)) (out T, err error) {
	err = r.do(func() (err error) {
		out, err = change()
		return err
	})
	return out, err
}

// Deployer returns a pipeline for pushes.
func (g *Gate) Deployer(d session.Deployer) session.Deployer { return deployer{d, g} }

type deployer struct {
	session.Deployer
	gate *Gate
}

func (d deployer) Start(ctx context.Context, x project.Deployment, in project.Incoming) (id project.ID, err error) {
	err = d.gate.share(func() (err error) {
		id, err = d.Deployer.Start(ctx, x, in)
		return err
	})
	return id, err
}

// Lookup returns a registry for pushes, which create projects.
func (g *Gate) Lookup(p receive.Projects) receive.Projects { return lookup{p, g} }

// Repository returns a repository for deployments, which move branches. Other refs, which no document shows, do not count.
func (g *Gate) Repository(r pipeline.Repository) pipeline.Repository { return repository{r, g} }

type repository struct {
	pipeline.Repository
	gate *Gate
}

func (r repository) CompareAndSwap(ctx context.Context, c project.Change) error {
	return r.gate.share(func() error { return r.Repository.CompareAndSwap(ctx, c) })
}
