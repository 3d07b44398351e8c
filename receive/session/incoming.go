package session

import (
	"context"
	"sync"

	"corpus-git/git/store"
)

// Incoming is a quarantine with two owners: the session, which may store tags from it after a successful deployment, and the Deployer, for
// which it is a project.Incoming. What was not migrated is removed once both have released it.
type Incoming struct {
	q     *store.Quarantine
	dir   string
	ended func() // called once, after both have released it

	mu       sync.Mutex
	session  bool // the session holds it
	deployer bool // the Deployer holds it
	migrated bool
}

// NewIncoming returns an Incoming owned by the session alone; db is the database that q belongs to. ended, which may be nil, is called
// once, when it no longer has an owner.
func NewIncoming(db *store.DB, q *store.Quarantine, ended func()) *Incoming {
	return &Incoming{q: q, dir: db.Dir(), ended: ended, session: true}
}

// Dir returns the repository that the objects were pushed to.
func (in *Incoming) Dir() string { return in.dir }

// Reader returns a reader of the pushed objects and those of the repository.
func (in *Incoming) Reader() store.Reader { return in.q }

// Stage performs the invisible part of Migrate. The content is durable on return.
func (in *Incoming) Stage(_ context.Context, covered uint64) error { return in.q.Stage(covered) }

// Migrate publishes the objects. It is idempotent, and durable on return.
func (in *Incoming) Migrate(ctx context.Context) error {
	settle, err := in.Publish(ctx)
	if err != nil {
		return err
	}
	return settle(0)
}

// Publish makes the objects visible, and settle makes that durable. Both are idempotent.
func (in *Incoming) Publish(context.Context) (settle func(covered uint64) error, err error) {
	end, err := in.q.Publish()
	return func(covered uint64) error {
		err := end(covered)
		if err == nil {
			in.mu.Lock()
			in.migrated = true
			in.mu.Unlock()
		}
		return err
	}, err
}

// Discard is the Deployer's release. It is idempotent, and safe after Migrate.
func (in *Incoming) Discard() error { return in.giveUp(&in.deployer) }

// release is the session's release.
func (in *Incoming) release() error { return in.giveUp(&in.session) }

// hand makes the Deployer an owner, before Start.
func (in *Incoming) hand(on bool) {
	in.mu.Lock()
	in.deployer = on
	in.mu.Unlock()
}

func (in *Incoming) giveUp(who *bool) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	*who = false
	// A Deployer that migrated need not call Discard: what Publish left goes with the session's release.
	if in.session || in.deployer && !in.migrated {
		return nil
	}
	err := in.q.Discard()
	if in.ended != nil {
		in.ended()
		in.ended = nil
	}
	return err
}
