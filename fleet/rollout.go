package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// Procedure is the name of the rollout among a deployment's procedures.
const Procedure = "rollout"

// Order is an order to a node.
type Order struct {
	// Deployment has the commits and settings. Its ID is that of the first deployment on each node, and of the only one if it runs once.
	Deployment project.Deployment `json:"deployment"`
	Node       Member             `json:"node"`
	// Run counts the deployments on the node, from 1.
	Run int `json:"run,omitempty"`
	// Exports are what the nodes of earlier stages wrote: a JSON object by role, node and name.
	Exports json.RawMessage `json:"exports,omitempty"`
	// Leader is the token of the leader's election, if the node leads; 0 if it does not.
	Leader int64 `json:"leader,omitempty"`
	// KV are the keys that the project sees, with their values, as a JSON object: those at the beginning of the rollout, or when its last wait ended.
	KV json.RawMessage `json:"kv,omitempty"`
}

// ID returns the ID of a deployment on the node: the hub's own for the first run, and one derived from it for later ones.
func (o Order) ID(run int) project.ID {
	if run <= 1 {
		return o.Deployment.ID
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%s run %d", o.Deployment.ID, run))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // RFC 9562, UUIDv8
	return project.ID(fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16]))
}

// Outcome is how a deployment on a node ended.
type Outcome struct {
	project.Result
	// Changed counts the states that changed something.
	Changed int
}

// Nodes contacts machines. Every call may be repeated: what was already done is not done again.
type Nodes interface {
	// Fetch sends a deployment to a node and begins it there, until its archive is made: nothing live changes before Apply. The error wraps
	// an *Unsure if it may have begun.
	Fetch(ctx context.Context, n Node, o Order) error
	// Apply deploys it there and passes on the events. The node's own failure is in the outcome; the error means that it could not be
	// reached.
	Apply(ctx context.Context, n Node, o Order, show func(event.Event)) (Outcome, error)
	// Back ends what is running of the deployment there, restores what was live before it, and reports what it did.
	Back(ctx context.Context, n Node, o Order) (string, error)
	// Check runs the project's checks there; reason says which failed; "" means that all succeeded.
	Check(ctx context.Context, n Node, o Order) (reason string, err error)
	// Converge applies again there what is live, or compares it, under the order's ID. fault.Busy reports that something else runs in the project
	// there; any other error that it failed, that the node could not be reached, or that another release is live there than the order's.
	Converge(ctx context.Context, n Node, o Order, run project.ConvergeRun) (Outcome, error)
	// Undeploy undeploys the project there, under the order's ID. A node that does not have it has nothing to undo.
	Undeploy(ctx context.Context, n Node, o Order) error
	// Look asks a node what would keep it from Fetch, which is the error, and changes nothing there. brings counts what a checkout would write where a commit is live.
	Look(ctx context.Context, n Node, o Order, brings Brings) (Looked, error)
	// Close ends the connections; the next call opens them again.
	Close() error
}

// Hub is the machine that deploys to the nodes.
type Hub interface {
	// Ask checks once for what is waited for, and takes no longer than within; reason says in its first line what is missing, and further lines are what was answered; "" means that it is
	// available. It is not called for checks.
	Ask(ctx context.Context, w Wait, within time.Duration) (reason string, err error)
	// Step runs a task of the project. It may be run again after a crash.
	Step(ctx context.Context, task string, b Batch) error
}

// Batch is what a step on the hub is run for.
type Batch struct {
	Stage string
	Nodes []Member
}

// Rollout deploys one plan. Its methods are safe for concurrent use.
type Rollout struct {
	Plan  *Plan
	Known map[string]Node
	Nodes Nodes
	Hub   Hub
	Order Order
	// AllowMissing skips nodes that are not ready.
	AllowMissing bool
	// Path is the file of its progress.
	Path string
	FS   vfs.FS
	// Saved is called after each write of the progress, before what it announces; nil does nothing.
	Saved func()
	// Elect elects the leader; nil elects none.
	Elect Elect
	// Leads returns the node that leads, "" if none was elected yet.
	Leads func(ctx context.Context, name project.Name) (string, error)
	// Again reads those of the named nodes that there are, as Known; nil means that they don't change.
	Again func(ctx context.Context, names []string) (map[string]Node, error)
	// Rests is called when the rollout begins to wait while it is paused or for what a stage waits for, and when that has ended: meanwhile ctx may be cancelled, for a later
	// process to continue it. nil does nothing.
	Rests func(bool)
	// KV returns the keys that the project sees, with their values; nil means none.
	KV func(ctx context.Context) (map[string]string, error)
	// Emit is called with lines for the pusher.
	Emit func(event.Event)
	Now  func() time.Time

	mu sync.Mutex
	p  *Progress
	// knowsOwn: Known is not the caller's map any more.
	knowsOwn bool
	// unsure are nodes that are waiting, as far as is known here, and may have begun.
	unsure map[string]bool
	// changes counts the changes of p. fixed is the part of the file that rarely changes, nil if it is not known. due reports that a timer writes what note changed.
	changes int
	fixed   []byte
	due     bool
	// writing is held while the file is written, and taken before mu. written is the number of changes in the file.
	writing sync.Mutex
	written int
	// pausing is held by Pause. wake is closed when the rollout is no longer paused.
	pausing sync.Mutex
	wake    chan struct{}
}

// Unsure is the error of a node that may have begun a deployment, and waits for the order to continue.
type Unsure struct{ Err error }

// Error returns the text of Err.
func (u *Unsure) Error() string { return u.Err.Error() }

// Unwrap returns Err.
func (u *Unsure) Unwrap() error { return u.Err }

// Failure is the error of a rollout in which more nodes failed than the stage allows.
type Failure struct {
	Stage string
	Nodes []string
	// Reason is the reason of the first failure.
	Reason string
}

// Error names the nodes.
func (f *Failure) Error() string {
	if len(f.Nodes) == 0 {
		return fmt.Sprintf("stage %s: %s", f.Stage, f.Reason)
	}
	more := ""
	if len(f.Nodes) > 1 {
		more = " and " + Shortened(f.Nodes[1:])
	}
	return fmt.Sprintf("node %s%s: %s", f.Nodes[0], more, f.Reason)
}

// open reads the progress of a rollout that a dead server began, or begins it.
func (r *Rollout) open(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.p != nil {
		return nil
	}
	p, ok, err := ReadProgress(r.Path)
	if err != nil {
		return err
	}
	if !ok {
		p = &Progress{Deployment: r.Order.Deployment, Plan: r.Plan, State: Running, Started: r.Now()}
		for _, s := range r.Plan.Stages {
			p.Stages = append(p.Stages, StageProgress{Name: s.Name, Of: len(Batches(s, s.Nodes))})
			for _, m := range s.Nodes {
				p.Nodes = append(p.Nodes, NodeProgress{Member: m, Stage: s.Name, State: Waiting})
			}
		}
		if len(r.Plan.Left)+len(r.Plan.Skipped) > 0 {
			before, err := History(filepath.Dir(r.Path), p.Deployment.Project)
			if err != nil {
				return err
			}
			p.Others = others(slices.Concat(r.Plan.Left, r.Plan.Skipped), before)
		}
		if err := p.elect(ctx, r.Elect); err != nil {
			return err
		}
		if p.KV, err = r.keys(ctx); err != nil {
			return err
		}
		if err := p.write(r.FS, r.Path); err != nil {
			return err
		}
		r.saved()
	}
	p.keepBatches()
	r.p, r.fixed, r.Plan, r.wake, r.unsure = p, nil, p.Plan, make(chan struct{}), map[string]bool{}
	for _, n := range p.Nodes {
		r.unsure[n.Name] = ok && n.State == Waiting // a dead server may have sent it the order
	}
	if !p.Paused {
		close(r.wake)
	}
	return nil
}

// node returns what is known about a node.
func (r *Rollout) node(name string) NodeProgress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.p.node(name)
}

// node finds a node of the plan. The first call must not run concurrently with another one.
func (p *Progress) node(name string) *NodeProgress {
	if p.at == nil {
		p.at = make(map[string]int, len(p.Nodes))
		for i, n := range p.Nodes {
			p.at[n.Name] = i
		}
	}
	return &p.Nodes[p.at[name]]
}

func (r *Rollout) stage(i int) StageProgress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.p.Stages[i]
}

// Needs reports whether a node belongs to the rollout, while it runs or is rolled back. One that was left out does not.
func (r *Rollout) Needs(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.p == nil {
		return r.Plan != nil && slices.ContainsFunc(r.Plan.Nodes(), func(m Member) bool { return m.Name == node })
	}
	return r.p.Ended.IsZero() && slices.ContainsFunc(r.p.Nodes, func(n NodeProgress) bool { return n.Name == node && n.State != Missing })
}

// Pause begins no further node until Pause(false). It is durable on return; changed reports whether the state changed.
func (r *Rollout) Pause(paused bool) (changed bool, err error) {
	r.pausing.Lock()
	defer r.pausing.Unlock()
	r.mu.Lock()
	running := r.p != nil && r.p.State == Running
	changed = running && r.p.Paused != paused
	r.mu.Unlock()
	if !running {
		return false, fault.New(fault.Refused, Procedure, "it is not deploying any more")
	}
	if !changed {
		return false, nil
	}
	if err := r.change(func(p *Progress) { p.Paused = paused && p.State == Running }); err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if paused {
		r.wake = make(chan struct{})
	} else {
		close(r.wake)
	}
	return true, nil
}

func (r *Rollout) paused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.p.Paused
}

// waitWhilePaused waits while the rollout is paused, and reports whether it was.
func (r *Rollout) waitWhilePaused(ctx context.Context) (waited bool, err error) {
	r.mu.Lock()
	wake := r.wake
	r.mu.Unlock()
	select {
	case <-wake:
		return false, context.Cause(ctx)
	default:
	}
	goes, err := r.rests()
	if err != nil {
		return false, err
	}
	defer goes()
	r.Emit(event.Event{Kind: event.Note, Text: "paused: no further node is begun until  corpus-git rollout resume " + string(r.Order.Deployment.Project)})
	select {
	case <-wake:
		r.Emit(event.Event{Kind: event.Note, Text: "resumed"})
	case <-ctx.Done():
	}
	return true, context.Cause(ctx)
}

// rests records, durably, that the rollout waits for somebody or something, so that a later process continues it. Call goes afterwards.
func (r *Rollout) rests() (goes func(), err error) {
	r.mu.Lock()
	begun := r.p.Begun()
	r.mu.Unlock()
	if !begun {
		if err := r.change(func(p *Progress) { p.Waits = true }); err != nil {
			return nil, err
		}
	}
	if r.Rests == nil {
		return func() {}, nil
	}
	r.Rests(true)
	return func() { r.Rests(false) }, nil
}

// Fetch prepares all nodes, before any is deployed: those that fail are named in one fault.Refused, or skipped if that is allowed.
func (r *Rollout) Fetch(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	begun := r.Now()
	all := slices.DeleteFunc(r.Plan.Nodes(), func(m Member) bool { return r.node(m.Name).State != Waiting })
	errs := make([]error, len(all))
	together(len(all), maxAtOnce, func(i int) {
		var unsure *Unsure
		if errs[i] = r.Nodes.Fetch(ctx, r.known(all[i].Name), r.order(all[i])); errs[i] == nil {
			r.note(func(p *Progress) { p.node(all[i].Name).State = Ready })
		} else if errors.As(errs[i], &unsure) {
			r.mu.Lock()
			r.unsure[all[i].Name] = true
			r.mu.Unlock()
		}
	})
	if err := r.save(); err != nil {
		return err
	}
	v := r.judge(all, errs, r.leader())
	if len(v.names) > 0 && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	total := len(r.Plan.Nodes())
	if v.refused != nil {
		r.Emit(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Text: notReady(len(v.names), total), Lines: v.lines})
		return v.refused
	}
	if len(v.names) > 0 {
		if err := r.leaveOut(v.names, v.reasons); err != nil {
			return err
		}
		r.Emit(event.Event{Kind: event.Note, Text: "left out: " + Shortened(v.names), Lines: v.lines})
	}
	text := fmt.Sprintf("%d ready after %s", total-len(v.names), humanize.Seconds(r.Now().Sub(begun)))
	if len(r.Plan.Skipped) > 0 {
		text += "; drained: " + Shortened(r.Plan.Skipped)
	}
	if len(r.Plan.Empty) > 0 {
		text += "; stages without nodes: " + Shortened(r.Plan.Empty)
	}
	r.Emit(event.Event{Kind: event.Note, Text: text})
	return nil
}

// maxAtOnce limits the number of machines that are contacted at once.
const maxAtOnce = 32

func (r *Rollout) order(m Member) Order {
	o := r.Order
	r.mu.Lock()
	defer r.mu.Unlock()
	o.Node, o.Run, o.KV = m, 1, r.p.KV
	if o.Leader = 0; m.Name == r.p.Leader {
		o.Leader = r.p.Token
	}
	return o
}

// Run deploys the stages in their order, and returns a *Failure after the first that fails. It rolls nothing back; see Undo. It continues a
// rollout that a dead server began: what is done is not repeated.
func (r *Rollout) Run(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	for i, s := range r.Plan.Stages {
		if err := r.runStage(ctx, i, s); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.p.Stages); r.p.Count()[NodeLive] == 0 && n > 0 {
		return &Failure{Stage: r.p.Stages[n-1].Name, Reason: "it is live on no node: all were left out"}
	}
	return nil
}

// Shortened joins names for a line of output: the first ones, and how many more there are.
func Shortened(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// together calls f for 0 to n-1, at most k at once.
func together(n, k int, f func(int)) {
	var wg sync.WaitGroup
	turn := make(chan struct{}, k)
	for i := range n {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			f(i)
		})
	}
	wg.Wait()
}
