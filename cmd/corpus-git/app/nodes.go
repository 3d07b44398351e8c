package app

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"corpus-git/bundle"
	"corpus-git/fleet"
	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/remote"
)

// nodes implements procedures.Fleet: nodes are reached by ssh, as the server's user.
type nodes struct{ *core }

var _ procedures.Fleet = nodes{}

// Known implements procedures.Fleet.
func (n nodes) Known(ctx context.Context) (map[string]fleet.Node, error) { return n.fleet.Known(ctx) }

// Rollout implements procedures.Fleet.
func (n nodes) Rollout(d project.Deployment, p *fleet.Plan, known map[string]fleet.Node) *fleet.Rollout {
	return &fleet.Rollout{
		Plan: p, Known: known, Nodes: &reach{core: n.core, by: map[string]*remote.Node{}}, Order: fleet.Order{Deployment: d},
		Path: n.state.Rollout(string(d.ID)), FS: vfs.OS{}, Now: time.Now,
	}
}

// reach implements fleet.Nodes for one rollout: a connection to each node, kept until Close.
type reach struct {
	*core
	mu sync.Mutex
	by map[string]*remote.Node
}

// patience with a node that does not answer.
const nodePatience = 2 * time.Minute

// node connects to a node and sees to it that the program is there, once.
func (r *reach) node(ctx context.Context, n fleet.Node) (*remote.Node, error) {
	r.mu.Lock()
	known := r.by[n.Name]
	r.mu.Unlock()
	if known != nil {
		return known, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &remote.Host{Target: n.Target, Options: append([]string{"-oConnectTimeout=20"}, n.Options...), Exec: execx.OS{}, Env: r.env, Dir: r.state.Path()}
	out := &remote.Node{Host: h, Root: n.Root}
	if out.Program, _, err = h.Install(ctx, program); err == nil {
		var key string
		if key, err = (bundles{r.core}).Key(); err == nil {
			err = out.Start(ctx, key)
		}
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[n.Name] = out
	return out, nil
}

// Close ends the connections.
func (r *reach) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for name, n := range r.by {
		errs = append(errs, n.Host.Close())
		delete(r.by, name)
	}
	return errors.Join(errs...)
}

// manifest is what a node gets: the release, with the node's own name and roles for its steps.
func (r *reach) manifest(ctx context.Context, o fleet.Order) (bundle.Manifest, error) {
	d := o.Deployment
	rel, err := (bundles{r.core}).release(ctx, d.Project, d.Code, d.Pillar)
	if err != nil {
		return bundle.Manifest{}, err
	}
	rel.Set = d.Set
	return bundle.Manifest{Release: rel, Deployment: d.ID, Select: d.Select, By: d.Pusher, Node: bundle.Node{Name: o.Node.Name, Roles: o.Node.Roles}}, nil
}

func (r *reach) apply(ctx context.Context, n fleet.Node, o fleet.Order, how remote.Apply, change func(*bundle.Manifest)) (remote.Frame, error) {
	node, err := r.node(ctx, n)
	if err != nil {
		return remote.Frame{}, err
	}
	m, err := r.manifest(ctx, o)
	if err != nil {
		return remote.Frame{}, err
	}
	if change != nil {
		change(&m)
	}
	how.Project, how.Patience = o.Deployment.Project, nodePatience
	how.Send = func(ctx context.Context, have []project.Commit, w io.Writer) error {
		_, err := bundles{r.core}.write(ctx, m, have, w)
		return err
	}
	how.Lost = func(err error, again time.Duration) {
		r.log.Warn().Err(err).Str("node", n.Name).Str("deployment", string(o.Deployment.ID)).Dur("again", again).Msg("connection to a node lost")
	}
	if how.Show == nil {
		how.Show = func(event.Event) error { return nil }
	}
	return node.Apply(ctx, how)
}

// Fetch implements fleet.Nodes.
func (r *reach) Fetch(ctx context.Context, n fleet.Node, o fleet.Order) error {
	_, err := r.apply(ctx, n, o, remote.Apply{StoreOnly: true}, nil)
	return err
}

// Apply implements fleet.Nodes.
func (r *reach) Apply(ctx context.Context, n fleet.Node, o fleet.Order, show func(event.Event)) (project.Result, error) {
	f, err := r.apply(ctx, n, o, remote.Apply{Show: func(e event.Event) error { show(e); return nil }}, nil)
	return resultOf(f), err
}

// Back implements fleet.Nodes.
func (r *reach) Back(ctx context.Context, n fleet.Node, o fleet.Order) (string, error) {
	f, err := r.apply(ctx, n, o, remote.Apply{}, func(m *bundle.Manifest) { m.Restore, m.Deployment = o.Deployment.ID, project.NewID() })
	if err != nil {
		return "", err
	}
	res := resultOf(f)
	switch {
	case !res.Good():
		return "", fault.New(fault.Failed, "", "%s", cmp.Or(res.Unhealthy, res.Reason, string(res.State)))
	case res.State == project.Live:
		return "is " + res.Code.Short() + " again", nil
	case res.Reason == "nothing to roll back":
		return "had nothing to roll back", nil
	}
	return "is undeployed: nothing was live there before", nil
}

func resultOf(f remote.Frame) project.Result {
	if f.Result == nil {
		return project.Result{}
	}
	return *f.Result
}
