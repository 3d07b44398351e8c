package project

import (
	"context"
	"time"
)

// Incoming is objects that a push brought and that nobody else sees yet: git's quarantine.
type Incoming interface {
	// Migrate publishes the objects into the repository's own store. Idempotent; durable on return.
	Migrate(ctx context.Context) error
	// Stage does that part of Migrate that nobody sees: the content is durable on return. Idempotent. covered is the device number of a file system that was synced since the
	// objects came, 0 for none.
	Stage(ctx context.Context, covered uint64) error
	// Discard removes what was not migrated. Idempotent, and safe after Migrate.
	Discard() error
}

// StagedRefs are changes of refs of one repository that were checked and locked. Each method is called once at most, in this order; Abort instead of
// what is left, and after Publish it changes nothing.
type StagedRefs interface {
	// Sync makes the new values durable, which nobody sees yet; covered is the device number of a file system that was synced since they were staged, 0 for none.
	Sync(covered uint64) error
	// Publish puts them in force; Settle makes that durable.
	Publish() error
	Settle() error
	Abort()
}

// Queue is where a project stands: what runs, and who waits in line, first come first.
type Queue struct {
	Running *Record  `json:"running,omitempty"`
	Waiting []Record `json:"waiting,omitempty"`
}

// Record is a deployment and how far it has come.
type Record struct {
	Deployment
	State  State   `json:"state"`
	Result *Result `json:"result,omitempty"`
	// Procedure and Step say what runs right now, and Since when.
	Procedure string    `json:"now_procedure,omitempty"`
	Step      string    `json:"now_step,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}
