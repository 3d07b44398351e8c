package project

import (
	"context"
	"time"
)

// Incoming are pushed objects that are not visible yet: git's quarantine.
type Incoming interface {
	// Migrate publishes the objects into the repository's own store. Idempotent; durable on return.
	Migrate(ctx context.Context) error
	// Stage is the invisible part of Migrate: the content is durable on return. Idempotent. covered is the device number of a file system
	// that has been synced since the objects were received, 0 for none.
	Stage(ctx context.Context, covered uint64) error
	// Publish is Migrate except that settle makes durable what is visible then, and that Discard must follow, which removes what is left.
	// settle may run beside other work, covered is as in Stage, since Publish; both are idempotent.
	Publish(ctx context.Context) (settle func(covered uint64) error, err error)
	// Discard removes what was not migrated. It is idempotent, and safe after Migrate.
	Discard() error
}

// StagedRefs are ref changes of one repository that were checked and locked. Each method is called at most once, in this order; Abort may
// be called instead of the remaining ones, and does nothing after Publish.
type StagedRefs interface {
	// Sync makes the new values durable, still invisible; covered is the device number of a file system that was synced since they were
	// staged, 0 for none.
	Sync(covered uint64) error
	// Publish makes them visible; Settle makes that durable, covered is as in Sync, since Publish.
	Publish() error
	Settle(covered uint64) error
	Abort()
}

// Queue is a project's queue: what is running, and what is waiting, in order of arrival.
type Queue struct {
	Running *Record  `json:"running,omitempty"`
	Waiting []Record `json:"waiting,omitempty"`
}

// Record is a deployment and its progress.
type Record struct {
	Deployment
	State  State   `json:"state"`
	Result *Result `json:"result,omitempty"`
	// Procedure and Step are what is running now, Since is when that began, and Waits says which signals it waits for: "NAME: 1 of 2 signals, missing: 2".
	Procedure string    `json:"now_procedure,omitempty"`
	Step      string    `json:"now_step,omitempty"`
	Waits     string    `json:"now_waits,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// Estimate is the duration estimated from past deployments, while it is waiting or running; nil if there is none.
	Estimate *Estimate `json:"estimate,omitempty"`
}

// What says in a word or two what requested the deployment.
func (r Record) What() string {
	switch {
	case r.Trigger == TriggerTask:
		return "task " + r.Task
	case r.Trigger == TriggerPush && r.Repo == PillarRepo:
		return "pillar push"
	case r.Trigger == TriggerPush && r.Forced:
		return "forced push"
	}
	return string(r.Trigger)
}
