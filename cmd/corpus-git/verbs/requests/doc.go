// Package requests answers the requests of another corpus-git: a hub, or a machine that runs remote deploy.
//
// It owns the order of calls that a request needs. It decides nothing about deployments or trust itself, and keeps nothing: what a crash leaves is what the packages behind its interfaces leave.
package requests

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"

	"corpus-git/bundle"
	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/remote"
)

// Bundles stores bundles, and knows whose are trusted.
type Bundles interface {
	// Tips returns the commits that this machine has of a project; none of one that it does not know.
	Tips(ctx context.Context, name project.Name) (bundle.Tips, error)
	// Take stores what a bundle brings, and returns its deployment. A project that is not known is created.
	Take(ctx context.Context, in io.Reader, by project.Pusher) (d project.Deployment, created bool, err error)
	// Fence refuses the order of a hub whose lease is older than the newest seen here.
	Fence(ctx context.Context, name project.Name, lease int64) error
	// Plan says whether a bundle would be deployed here, but for what runs, and changes nothing.
	Plan(ctx context.Context, name project.Name, q remote.PlanRequest) (remote.Planned, error)
	// Trust lets the bundles that a key signed be deployed here. changed reports that it was not trusted before. Durable on return.
	Trust(ctx context.Context, key string) (fingerprint string, changed bool, err error)
	// Untrust undoes that.
	Untrust(ctx context.Context, key string) (fingerprint string, changed bool, err error)
}

// Runs starts and follows deployments.
type Runs interface {
	Start(ctx context.Context, d project.Deployment, in project.Incoming) (project.ID, error)
	Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error]
	Wait(ctx context.Context, id project.ID) (project.Result, error)
	// Cancel ends a deployment, for "" the one that runs, and removes a waiting one from the queue. It returns at once.
	Cancel(ctx context.Context, name project.Name, id project.ID, by project.Pusher) (project.ID, error)
	// Held returns when a deployment with Hold waits; ended reports that it has ended instead.
	Held(ctx context.Context, id project.ID) (ended bool, err error)
	// Supersede ends the deployments of a project that wait because of Hold, except this one, and returns when they have ended.
	Supersede(ctx context.Context, name project.Name, by project.ID) error
	// Release lets such a deployment continue, with the outputs of the nodes of earlier stages.
	Release(id project.ID, exports json.RawMessage)
	Queue(ctx context.Context, name project.Name) (project.Queue, error)
}

// Handler implements remote.Handler.
type Handler struct {
	Bundles Bundles
	Runs    Runs
	// Pusher is who made the requests.
	Pusher project.Pusher
	// Audited records what a request did.
	Audited func(e audit.Entry, err error) error
	// Upgrader replaces the program of this machine's agent; nil if no agent dials in.
	Upgrader func(ctx context.Context, in *bufio.Reader) error
	// HubKeys keeps by which keys this machine's agent knows its hub; nil if no agent dials in.
	HubKeys func(bundle.Succession) error
	// ExitStatus is the exit status of a deployment's result.
	ExitStatus func(project.Result) int
}

// NothingToRollBack is the message for a bundle that reverts a deployment which is not the last that went live.
const NothingToRollBack = "nothing to roll back: the deployment is not what went live last"
