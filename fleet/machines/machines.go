package machines

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/fleet"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/remote"
)

// Bundles is this machine's side of bundles.
type Bundles interface {
	// Release returns what a deployment of given commits pins.
	Release(ctx context.Context, name project.Name, code, pillar project.Commit) (bundle.Release, error)
	// Part returns the part of a commit of the pillar that a node sees. own reports that it depends on the node's name: otherwise it is the same for all nodes with the same roles.
	Part(ctx context.Context, name project.Name, pillar project.Commit, m fleet.Member) (part project.Commit, own bool, err error)
	// Write signs and writes a bundle for a machine that has some commits. packs keeps its packs for others.
	Write(ctx context.Context, m bundle.Manifest, have bundle.Tips, packs *bundle.Packs, w io.Writer) (bundle.Manifest, error)
	// Key returns the public key that signs.
	Key() (string, error)
}

// Fleet makes rollouts over the nodes of the table. Its fields are set before use; its methods are safe for concurrent use.
type Fleet struct {
	*fleet.Store
	Hosts *remote.Hosts
	// Bundles is asked when a node is reached.
	Bundles func() Bundles
	State   layout.State
	// Saved is called after each write of a rollout's progress, before what it announces; nil does nothing.
	Saved func(project.Name)
	// Required: every project must have nodes.
	Required bool
	// Elect elects the leaders of projects.
	Elect fleet.Elect
	// Leads returns the leader that was elected last, "" if there is none.
	Leads func(ctx context.Context, name project.Name) (string, error)
	// Facts keeps the facts of a node where steps can read them, none to delete them.
	Facts func(ctx context.Context, node string, facts map[string]string) error
	// Signer signs programs for agents.
	Signer func() (ssh.Signer, error)
	// Keys returns the keys of this hub; nil where it tells nobody of them.
	Keys func() (HubKeys, error)
	// Offer, where it is not nil, has ssh(1) find the private keys that its options name, before a node is reached with these options.
	Offer func(options []string) error
	Log   zerolog.Logger
	// Started is when the server was started; zero where none runs.
	Started time.Time

	telling sync.WaitGroup
	mu      sync.Mutex
	active  map[project.Name]*fleet.Rollout
	// busy counts what is deployed to each node that has slots; freed is closed when one of them ends. held are those counted that nobody has asked for yet (Hold).
	busy  map[string]int
	freed chan struct{}
	held  map[held]bool
	links map[string]*pool
	// reports keeps facts from being set for a node that is being removed. recorded are the last reports that were recorded by this process, whose facts are kept.
	reports  sync.Mutex
	recorded map[string]recorded
	// leased is the revision of this process's lease, 0 before its first order.
	leased int64
	// stopped: Detach was called.
	stopped bool
}

// NodeOf returns the node on which a project without a nodes.yaml runs, "" if none. If nodes are Required and one is needed, that is fault.Refused.
func (f *Fleet) NodeOf(ctx context.Context, of project.Name, needed bool) (node string, err error) {
	node, err = f.Assigned(ctx, of)
	if err == nil && node == "" && needed && f.Required {
		err = fault.New(fault.Refused, fleet.NodesFile, "this server is one of several hubs, which deploy to nodes only, and %s has none", of).
			WithHint("add  nodes.yaml  to its pillar, and push that first; or  corpus-git node assign NODE %s", of)
	}
	return node, err
}

// Rollout prepares the deployment of a plan; with a nil plan, its rollback. This program is read once for all nodes.
func (f *Fleet) Rollout(d project.Deployment, p *fleet.Plan, known map[string]fleet.Node) *fleet.Rollout {
	m := &machines{Fleet: f, bundles: sync.OnceValue(f.Bundles), release: sync.OnceValues(thisProgram), by: map[string]*remote.Node{}, parts: map[string]project.Commit{}, shared: map[string]project.Commit{}}
	r := &fleet.Rollout{
		Plan: p, Known: known, Nodes: m, Order: fleet.Order{Deployment: d}, Path: f.State.Rollout(string(d.ID)), FS: vfs.OS{}, Now: time.Now, Elect: f.Elect, Leads: f.Leads,
	}
	if p != nil {
		r.Again, m.noSubmodules = f.KnownOf, p.NoSubmodules
	}
	if f.Saved != nil {
		r.Saved = func() { f.Saved(d.Project) }
	}
	m.end = func() { f.forget(d.Project, r) }
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active == nil {
		f.active = map[project.Name]*fleet.Rollout{}
	}
	f.active[d.Project] = r
	return r
}

// lease is this process's lease as a hub, taken at its first order.
func (f *Fleet) lease(ctx context.Context) (revision int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leased == 0 {
		f.leased, err = f.Lease(ctx, time.Now())
	}
	return f.leased, err
}

func (f *Fleet) forget(name project.Name, r *fleet.Rollout) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active[name] == r {
		delete(f.active, name)
	}
}

// Pause begins no further node of the project's rollout until Pause(false). A project without one is fault.Refused.
func (f *Fleet) Pause(_ context.Context, name project.Name, paused bool) (changed bool, err error) {
	f.mu.Lock()
	r := f.active[name]
	f.mu.Unlock()
	if r == nil {
		return false, fault.New(fault.Refused, "rollout", "no rollout of %s is running", name).WithHint("corpus-git rollout list %s", name)
	}
	return r.Pause(paused)
}

// History returns the rollouts of a project, of all for "", the newest first.
func (f *Fleet) History(ctx context.Context, name project.Name) ([]*fleet.Progress, error) {
	return f.Store.History(ctx, f.rollouts(), name)
}

func (f *Fleet) rollouts() string { return filepath.Dir(f.State.Rollout("x")) }

// Uses returns the projects of a node, of each for "", by the names of the nodes.
func (f *Fleet) Uses(ctx context.Context, node string) (map[string][]fleet.Use, error) {
	return f.Store.Uses(ctx, f.rollouts(), node)
}

// Behind returns the nodes of a project, of all for "", that have another release than the live one.
func (f *Fleet) Behind(ctx context.Context, of project.Name) (map[project.Name][]fleet.Behind, error) {
	return f.Store.Behind(ctx, f.rollouts(), of)
}

// machines implements fleet.Nodes for one rollout: a connection to each node, kept until Close.
type machines struct {
	*Fleet
	// bundles is Fleet.Bundles, asked once.
	bundles func() Bundles
	// release is this program, read once for all nodes that need it.
	release func() (remote.Release, error)
	// packs are those of the rollout: most nodes lack the same.
	packs        bundle.Packs
	noSubmodules bool // fleet.Plan.NoSubmodules
	// end forgets the rollout.
	end func()
	mu  sync.Mutex
	by  map[string]*remote.Node
	// pins is what the deployment pins, with the whole pillar; parts are the parts of that by the names of nodes, and shared by their roles.
	pins          *bundle.Release
	parts, shared map[string]project.Commit
	// keysDigest is the digest of keys.
	keys       json.RawMessage
	keysDigest string
}

// nodeTimeout is how long an unreachable node is retried.
const nodeTimeout = 2 * time.Minute

// node connects to a node, to deploy a project, and installs the program there if needed, once.
func (r *machines) node(ctx context.Context, n fleet.Node, of project.Name) (*remote.Node, error) {
	r.mu.Lock()
	known := r.by[n.Name]
	r.mu.Unlock()
	if known != nil {
		return known, nil
	}
	key, err := r.bundles().Key()
	if err != nil {
		return nil, err
	}
	out := r.reach(n)
	out.Project = of
	if r.Keys != nil {
		keys, err := r.Keys()
		if err != nil {
			return nil, err
		}
		out.Untrust = keys.Retired
	}
	if !n.Agent {
		if out.Release, err = r.release(); err != nil {
			return nil, err
		}
	}
	if _, err := out.Open(ctx, key); err != nil {
		return nil, err
	}
	if err := r.RecordReport(ctx, n.Name, reportOf(out.Hello)); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[n.Name] = out
	return out, nil
}

// reach returns the connection to a node.
func (f *Fleet) reach(n fleet.Node) *remote.Node {
	out := &remote.Node{Root: n.Root}
	if n.Agent {
		out.Host, out.Dial = &remote.Host{Target: n.Name}, func(ctx context.Context) (io.ReadWriteCloser, error) { return f.dial(ctx, n.Name) }
	} else {
		if f.Offer != nil {
			if err := f.Offer(n.Options); err != nil {
				f.Log.Err(err).Str("node", n.Name).Msg("the keys of nodes are not offered to ssh")
			}
		}
		out.Host = f.Hosts.Get(n.Target, append([]string{"-oConnectTimeout=20"}, n.Options...))
	}
	return out
}

// Close ends the rollout's use of its sessions: see remote.Node.Keep.
func (r *machines) Close() error {
	r.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for name, n := range r.by {
		errs = append(errs, n.Keep())
		delete(r.by, name)
	}
	return errors.Join(append(errs, r.packs.Close())...)
}

// manifest returns what a node gets: the release, with the node's own name and roles for its steps.
func (r *machines) manifest(ctx context.Context, o fleet.Order) (bundle.Manifest, error) {
	d := o.Deployment
	rel, err := r.pinned(ctx, o)
	if err != nil {
		return bundle.Manifest{}, err
	}
	lease, err := r.lease(ctx)
	if err != nil {
		return bundle.Manifest{}, err
	}
	rel.Set = slices.Clone(d.Set)
	for i := range rel.Set {
		rel.Set[i].Secret = false // else its value would be left out; the node tells by itself which are secret
	}
	return bundle.Manifest{Release: rel, Deployment: o.ID(o.Run), Lease: lease, Exports: o.Exports, KV: o.KV, KVDigest: r.digest(o.KV), Leader: o.Leader, Select: d.Select, By: d.Pusher, Node: bundle.Node{Name: o.Node.Name, Roles: o.Node.Roles}}, nil
}

// digest returns the digest of the keys that nodes receive, which are the same for most orders.
func (r *machines) digest(keys json.RawMessage) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !bytes.Equal(keys, r.keys) {
		r.keys, r.keysDigest = keys, bundle.KeysDigest(keys)
	}
	return r.keysDigest
}

// pinned returns what the deployment pins for a node: with its part of the pillar.
func (r *machines) pinned(ctx context.Context, o fleet.Order) (bundle.Release, error) {
	d := o.Deployment
	r.mu.Lock()
	pins := r.pins
	roles := strings.Join(o.Node.Roles, " ")
	part, ok := r.parts[o.Node.Name]
	if !ok {
		part, ok = r.shared[roles]
	}
	r.mu.Unlock()
	var err error
	own := true
	if pins == nil {
		rel, rerr := r.bundles().Release(ctx, d.Project, d.Code, d.Pillar)
		pins, err = &rel, rerr
	}
	if err == nil && d.Pillar != "" && !ok {
		part, own, err = r.bundles().Part(ctx, d.Project, d.Pillar, o.Node)
	}
	if err != nil {
		return bundle.Release{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pins, r.parts[o.Node.Name] = pins, part; !own {
		r.shared[roles] = part
	}
	rel := *pins
	rel.Pillar = part
	return rel, nil
}

func (r *machines) apply(ctx context.Context, n fleet.Node, o fleet.Order, how remote.Apply, change func(*bundle.Manifest), has func(bundle.Tips)) (remote.Frame, error) {
	node, err := r.node(ctx, n, o.Deployment.Project)
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
	how.Project, how.ReconnectFor = o.Deployment.Project, nodeTimeout
	how.Brings = bundle.Tips{Code: []project.Commit{m.Release.Code}, KV: m.KVDigest, Recipes: &bundle.Parts{All: true}}
	if m.Release.Pillar != "" {
		how.Brings.Pillar = []project.Commit{m.Release.Pillar}
	}
	itself := false
	how.Send = func(ctx context.Context, have bundle.Tips, w io.Writer) error {
		m := m
		itself = have.Recipes == nil
		if has != nil {
			has(have)
		}
		if m.KVDigest == have.KV || m.Restore != "" || m.Undeploy {
			m.KV = nil
		}
		if r.noSubmodules {
			have.Submodules, have.PillarSubmodules = nil, nil
		}
		_, err := r.bundles().Write(ctx, m, have, &r.packs, w)
		return err
	}
	how.Lost = r.lost(n, o)
	if how.Show == nil {
		how.Show = func(event.Event) error { return nil }
	}
	f, err := node.Apply(ctx, how)
	if f.Result != nil && itself && n.Agent {
		f.Result.Hint = resolvesItself(n.Name, *f.Result)
	}
	return f, err
}

// resolvesItself returns the hint of the result of a node of an older release, which resolves the entries of extends.yaml itself: if it cannot, what to do.
func resolvesItself(node string, res project.Result) string {
	if res.State != project.Refused || !strings.Contains(res.Reason, layout.SaltDir+"/"+recipesFile) {
		return res.Hint
	}
	return fmt.Sprintf("the corpus-git on %s is of an older release, which does not take recipes from this machine:  corpus-git node upgrade %s", node, node)
}

// recipesFile names the recipes that a recipe extends.
const recipesFile = "extends.yaml"

// lost reports a lost connection to a node.
func (r *machines) lost(n fleet.Node, o fleet.Order) func(err error, again time.Duration) {
	return func(err error, again time.Duration) {
		r.Log.Warn().Err(err).Str("node", n.Name).Str("deployment", string(o.Deployment.ID)).Stringer("again", again).Msg("connection to a node lost")
	}
}

// Fetch implements fleet.Nodes.
func (r *machines) Fetch(ctx context.Context, n fleet.Node, o fleet.Order) error {
	if _, err := r.node(ctx, n, o.Deployment.Project); err != nil {
		return err
	}
	f, err := r.apply(ctx, n, o, remote.Apply{Hold: true}, nil, nil)
	if err != nil && (fault.KindOf(err) == fault.Busy || context.Cause(ctx) != nil) {
		return &fleet.Unsure{Err: err}
	}
	if res := resultOf(f); err == nil && f.Result != nil && !res.Good() {
		return fault.New(fault.Refused, "", "%s", cmp.Or(res.Reason, string(res.State))).WithHint("%s", res.Hint)
	}
	return err
}

// Apply implements fleet.Nodes.
func (r *machines) Apply(ctx context.Context, n fleet.Node, o fleet.Order, show func(event.Event)) (fleet.Outcome, error) {
	var out fleet.Outcome
	free, err := r.slot(ctx, o.Deployment.Project, n, func() {
		show(event.Event{Kind: event.Waiting, Procedure: fleet.Procedure, Text: fmt.Sprintf("%s: waiting, as it takes %s at the same time", n.Name, humanize.Plural(n.Slots, "project"))})
	})
	if err != nil {
		return out, err
	}
	defer free()
	f, err := r.apply(ctx, n, o, remote.Apply{Show: func(e event.Event) error { out.Changed += e.Changed; show(e); return nil }}, nil, nil)
	out.Result = resultOf(f)
	return out, err
}

// Check implements fleet.Nodes.
func (r *machines) Check(ctx context.Context, n fleet.Node, o fleet.Order) (string, error) {
	node, err := r.node(ctx, n, o.Deployment.Project)
	if err != nil {
		return "", err
	}
	res, err := node.Check(ctx, o.Deployment.Project)
	switch {
	case err != nil:
		return "", err
	case res.State == project.Refused:
		return "", fault.New(fault.Refused, "", "%s: %s", n.Name, res.Reason)
	case !res.Good():
		return cmp.Or(res.Reason, string(res.State)), nil
	}
	return "", nil
}

// Back implements fleet.Nodes.
func (r *machines) Back(ctx context.Context, n fleet.Node, o fleet.Order) (string, error) {
	node, err := r.node(ctx, n, o.Deployment.Project)
	if err == nil {
		var lease int64
		if lease, err = r.lease(ctx); err != nil {
			return "", err
		}
		// What has begun may go live after the query of what is live.
		err = node.Cancel(ctx, remote.CancelRequest{Project: o.Deployment.Project, Deployment: o.ID(o.Run), Lease: lease}, nodeTimeout, r.lost(n, o))
	}
	if err != nil {
		return "", err
	}
	f, err := r.apply(ctx, n, o, remote.Apply{}, func(m *bundle.Manifest) {
		m.Restore, m.Deployment = o.Deployment.ID, project.NewID()
		for run := 2; run <= o.Run; run++ {
			m.Also = append(m.Also, o.ID(run))
		}
	}, nil)
	if err != nil {
		return "", err
	}
	res := resultOf(f)
	switch {
	case !res.Good():
		return "", fault.New(fault.Failed, "", "%s", cmp.Or(res.Unhealthy, res.Reason, string(res.State)))
	case res.State == project.Live:
		what := "is " + res.Code.Short() + " again"
		if live := o.Deployment.LiveCode; live != "" && live != res.Code { // it was left behind by an earlier rollout
			what += " (" + live.Short() + " is live)"
		}
		return what, nil
	case strings.HasPrefix(res.Reason, nothing):
		return "had nothing to roll back", nil
	}
	return "is undeployed: nothing was live there before", nil
}

// Undeploy implements fleet.Nodes.
func (r *machines) Undeploy(ctx context.Context, n fleet.Node, o fleet.Order) error {
	absent := false
	f, err := r.apply(ctx, n, o, remote.Apply{}, func(m *bundle.Manifest) {
		m.Undeploy, m.Restore = true, m.Deployment // a program that does not know Undeploy has no such deployment to roll back, and does nothing
	}, func(have bundle.Tips) { absent = len(have.Code) == 0 })
	res := resultOf(f)
	switch {
	case absent && (err == nil || fault.KindOf(err) == fault.Refused):
		return nil
	case err != nil:
		return err
	case strings.HasPrefix(res.Reason, nothing):
		return fault.New(fault.Refused, "", "its corpus-git cannot undeploy for another one").WithHint("corpus-git node upgrade %s", n.Name)
	case res.State != project.Done:
		return fault.New(fault.Failed, "", "%s", cmp.Or(res.Reason, string(res.State)))
	}
	return nil
}

// nothing begins the reason of a node that was told to roll back a deployment which is not what went live there last.
const nothing = "nothing to roll back"

func resultOf(f remote.Frame) project.Result {
	if f.Result == nil {
		return project.Result{}
	}
	return *f.Result
}
