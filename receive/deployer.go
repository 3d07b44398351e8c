package receive

import (
	"context"
	"iter"

	"corpus-git/internal/event"
	"corpus-git/project"
)

// Deployer runs deployments; the pipeline satisfies it.
type Deployer interface {
	// Start takes the project's next place in line for d and returns at once with the ID under which
	// it can be followed. d.ID, d.At and the Live commits are filled in by the Deployer; d.Code and
	// d.Pillar too, but for the repository that d.Change updates. in may be nil when nothing was sent.
	// From here on the Deployer owns in: it migrates or discards it. A push of the very commit that
	// runs or waits joins that deployment and gets its ID; its in is discarded.
	// An error means that nothing was started and in is still the caller's: the branch is not at
	// d.Change.Old (fault.Refused, "fetch first"), shutting down (fault.Busy).
	Start(ctx context.Context, d project.Deployment, in project.Incoming) (project.ID, error)
	// Follow yields the events of a deployment after seq, old ones first, until it has ended.
	Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error]
	// Wait returns when the deployment has ended. A failed deployment is a Result, not an error.
	// When ctx ends the deployment goes on.
	Wait(ctx context.Context, id project.ID) (project.Result, error)
}
