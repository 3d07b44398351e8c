package procedures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"corpus-git/fleet"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
)

// NameRollout is the name of the procedure that deploys on the project's nodes.
const NameRollout = fleet.Procedure

// Rollout deploys on the nodes of the project, stage by stage, what the deployment brings: each node by its own pipeline. It stands where Install
// stands on a machine of one's own. What it changed UndoRollout takes back.
type Rollout struct{}

// Name implements Procedure.
func (Rollout) Name() string { return NameRollout }

// Run implements Procedure. Where nodes failed the error wraps a *fleet.Failure and is of kind Failed.
func (Rollout) Run(ctx context.Context, e *Env) error {
	r, err := e.rollout(ctx)
	if err != nil {
		return err
	}
	defer r.Nodes.Close()
	nodes := e.Prepared.Rollout.Nodes()
	e.Report.Append(event.Event{Kind: event.ProcedureStart, Procedure: NameRollout, Text: fmt.Sprintf("%s in %s",
		humanize.Plural(len(nodes), "node"), humanize.Plural(len(e.Prepared.Rollout.Stages), "stage"))})
	if err := r.Fetch(ctx); err != nil {
		return err
	}
	if err := r.Run(ctx); err != nil {
		return fault.New(fault.Failed, "", "%w", err)
	}
	e.Summarize(nil, "live on %s", humanize.Plural(len(nodes), "node"))
	return nil
}

func (e *Env) rollout(ctx context.Context) (*fleet.Rollout, error) {
	known, err := e.Tools.Fleet.Known(ctx)
	if err != nil {
		return nil, err
	}
	r := e.Tools.Fleet.Rollout(e.Deployment, e.Prepared.Rollout, known)
	r.Tell = func(ev event.Event) { e.Report.Append(ev) }
	return r, nil
}

// UndoRollout rolls back the nodes that the deployment reached, and names those that could not be. Where it reached none it does nothing. It can be run
// again.
func (e *Env) UndoRollout(ctx context.Context) (left []string, err error) {
	// Not by the plan: a recovery knows what is live, and not what the deployment brought.
	if _, err := e.Tools.FS.Lstat(e.Tools.State.Rollout(string(e.Deployment.ID))); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r, err := e.rollout(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Nodes.Close()
	return r.Undo(ctx)
}

// EndRollout forgets which nodes the deployment reached: it stands.
func (e *Env) EndRollout() error {
	if e.Prepared.Rollout == nil {
		return nil
	}
	return fleet.Forget(e.Tools.FS, e.Tools.State.Rollout(string(e.Deployment.ID)))
}
