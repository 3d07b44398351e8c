package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// Procedure is the name of what a rollout is to a deployment.
const Procedure = "rollout"

// Order is what a node is to do.
type Order struct {
	// Deployment has the commits and what was set. Its ID is that of the deployment on each node, where it runs once.
	Deployment project.Deployment `json:"deployment"`
	Node       Member             `json:"node"`
}

// Nodes reaches machines. Every call may be made again: what is done already is done.
type Nodes interface {
	// Fetch makes a node ready and stores there what the deployment pins; nothing that is live changes.
	Fetch(ctx context.Context, n Node, o Order) error
	// Apply deploys it there and hands over the events. The node's own failure is in the result, what kept it from being reached the error.
	Apply(ctx context.Context, n Node, o Order, show func(event.Event)) (project.Result, error)
	// Back makes live again there what was live before the deployment, and says what it did.
	Back(ctx context.Context, n Node, o Order) (string, error)
	// Close ends what Nodes keeps open; the next call opens it again.
	Close() error
}

// What the notes say of a node.
const (
	applying = "applying"
	applied  = "live"
	gone     = "rolled back"
	refused  = "failed" // it has rolled itself back, or never began
)

// notes are a rollout as its file holds it.
type notes struct {
	Deployment project.Deployment `json:"deployment"`
	Nodes      []noted            `json:"nodes"`
}

type noted struct {
	Member
	State string `json:"state"`
}

// Rollout deploys one plan.
type Rollout struct {
	Plan  *Plan
	Known map[string]Node
	Nodes Nodes
	Order Order
	// Path is the file of its notes.
	Path string
	FS   vfs.FS
	// Tell takes the lines for the pusher.
	Tell func(event.Event)
	Now  func() time.Time

	mu    sync.Mutex
	notes notes
}

// Failure is the error of a rollout in which more nodes failed than the stage allows.
type Failure struct {
	Stage string
	Nodes []string
	// Reason is the first one's.
	Reason string
}

// Error names the nodes.
func (f *Failure) Error() string {
	more := ""
	if len(f.Nodes) > 1 {
		more = " and " + strings.Join(f.Nodes[1:], ", ")
	}
	return fmt.Sprintf("node %s%s: %s", f.Nodes[0], more, f.Reason)
}

// Fetch makes all nodes ready, before any is deployed: those that are not are named in one fault.Refused.
func (r *Rollout) Fetch(ctx context.Context) error {
	begun := r.Now()
	all := r.Plan.Nodes()
	errs := make([]error, len(all))
	together(len(all), maxAtOnce, func(i int) { errs[i] = r.Nodes.Fetch(ctx, r.Known[all[i].Name], r.order(all[i])) })
	var lines []string
	for i, err := range errs {
		if err != nil {
			lines = append(lines, all[i].Name+": "+err.Error())
		}
	}
	if len(lines) > 0 {
		r.Tell(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Text: fmt.Sprintf("%d of %d nodes are not ready", len(lines), len(all)), Lines: lines})
		return fault.New(fault.Refused, Procedure, "%d of %d nodes are not ready", len(lines), len(all)).
			WithHint("leave a node out with  corpus-git node drain NAME")
	}
	text := fmt.Sprintf("%d ready after %s", len(all), r.Now().Sub(begun).Round(100*time.Millisecond))
	if len(r.Plan.Skipped) > 0 {
		text += "; drained: " + strings.Join(r.Plan.Skipped, ", ")
	}
	r.Tell(event.Event{Kind: event.Note, Text: text})
	return nil
}

// maxAtOnce bounds how many machines are reached at once.
const maxAtOnce = 32

func (r *Rollout) order(m Member) Order {
	o := r.Order
	o.Node = m
	return o
}

// Run deploys the stages in their order, and ends at the first that fails with a *Failure. Nothing is rolled back by it; see Undo.
func (r *Rollout) Run(ctx context.Context) error {
	r.notes = notes{Deployment: r.Order.Deployment}
	n, of := 0, len(r.Plan.Nodes())
	for _, s := range r.Plan.Stages {
		names := make([]string, len(s.Nodes))
		for i, m := range s.Nodes {
			names[i] = m.Name
		}
		r.Tell(event.Event{Kind: event.Note, Text: fmt.Sprintf("stage %s: %s", s.Name, list(names))})
		var failed []string
		var reason string
		for i, batch := range s.Batches() {
			canary := i == 0 && s.Canary > 0 && s.Canary < len(s.Nodes)
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := r.note(batch, applying); err != nil {
				return err
			}
			results := make([]error, len(batch))
			together(len(batch), maxAtOnce, func(i int) {
				err := r.apply(ctx, batch[i], of, func() int { r.mu.Lock(); defer r.mu.Unlock(); n++; return n })
				results[i] = err
			})
			for k, err := range results {
				if err != nil {
					failed = append(failed, batch[k].Name)
					if reason == "" {
						reason = err.Error()
					}
				}
			}
			if len(failed) > s.MaxFailures || len(failed) > 0 && canary {
				return &Failure{Stage: s.Name, Nodes: failed, Reason: reason}
			}
		}
		if len(failed) > 0 {
			r.Tell(event.Event{Kind: event.Note, Text: fmt.Sprintf("stage %s: %s failed, as many as max_failures allows", s.Name, list(failed))})
		}
	}
	return nil
}

// list shortens a list of names.
func list(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// apply deploys one node and tells of it.
func (r *Rollout) apply(ctx context.Context, m Member, of int, next func() int) error {
	begun := r.Now()
	var first event.Event
	res, err := r.Nodes.Apply(ctx, r.Known[m.Name], r.order(m), func(e event.Event) {
		if e.Kind == event.Failure && first.Text == "" {
			first = e
		}
	})
	e := event.Event{Kind: event.StepDone, Status: event.OK, Procedure: Procedure, Step: m.Name, N: next(), Of: of, Duration: r.Now().Sub(begun)}
	state := applied
	switch {
	case err != nil:
		state = applying // nobody knows
	case !res.Good():
		state = refused
		err = errors.New(cmp.Or(res.Reason, string(res.State)))
		if res.State == project.Live || res.State == project.Failed {
			state = applied // something of it may be there
		}
	}
	if nerr := r.note([]Member{m}, state); nerr != nil && err == nil {
		err = nerr
	}
	if err == nil {
		e.Text = "live"
		r.Tell(e)
		return nil
	}
	e.Kind, e.Status = event.Failure, event.Bad
	e.Text = fmt.Sprintf("%d/%d %s  %s", e.N, of, m.Name, err)
	if first.Text != "" {
		e.Lines = append([]string{first.Text}, first.Lines...)
	}
	if res.State != "" {
		e.Lines = append(e.Lines, "there: "+string(res.State))
	}
	r.Tell(e)
	return err
}

// note writes the state of nodes durably.
func (r *Rollout) note(members []Member, state string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range members {
		i := slices.IndexFunc(r.notes.Nodes, func(n noted) bool { return n.Name == m.Name })
		if i < 0 {
			r.notes.Nodes = append(r.notes.Nodes, noted{Member: m, State: state})
		} else {
			r.notes.Nodes[i].State = state
		}
	}
	text, err := json.Marshal(r.notes)
	if err != nil {
		return err
	}
	if err := r.FS.Mkdir(filepath.Dir(r.Path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return vfs.WriteFileAtomic(r.FS, r.Path, append(text, '\n'), 0o600)
}

// Undo rolls back the nodes that a rollout's notes name, the last first, and gives the names of those that could not be. A rollout without notes never
// began. It can be run again; the notes go when nothing is left to do.
func (r *Rollout) Undo(ctx context.Context) (left []string, err error) {
	text, err := os.ReadFile(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &r.notes); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Path, err)
	}
	r.Order.Deployment = r.notes.Deployment
	todo := slices.DeleteFunc(slices.Clone(r.notes.Nodes), func(n noted) bool { return n.State == gone || n.State == refused })
	slices.Reverse(todo)
	for _, n := range todo {
		begun := r.Now()
		node, ok := r.Known[n.Name]
		what, err := "", error(fault.New(fault.Refused, "", "the server knows no node of that name any more"))
		if ok {
			what, err = r.Nodes.Back(ctx, node, r.order(n.Member))
		}
		took := r.Now().Sub(begun).Round(100 * time.Millisecond)
		if err != nil {
			left = append(left, n.Name)
			r.Tell(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: Procedure, Text: fmt.Sprintf("%s was not rolled back: %v", n.Name, err)})
			continue
		}
		r.Tell(event.Event{Kind: event.Note, Text: fmt.Sprintf("%s %s in %s", n.Name, what, took)})
		if err := r.note([]Member{n.Member}, gone); err != nil {
			return left, err
		}
	}
	if len(left) > 0 {
		return left, nil
	}
	return nil, Forget(r.FS, r.Path)
}

// Forget removes the notes of a rollout that has ended. Idempotent.
func Forget(f vfs.FS, path string) error {
	err := f.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
