package pipeline

import (
	"context"
	"io/fs"

	"corpus-git/project"
)

// Repository is what the pipeline needs of one repository of a project; receive's satisfies it.
type Repository interface {
	// Get returns the commit that a ref points to, "" if it does not exist.
	Get(ctx context.Context, ref string) (project.Commit, error)
	// CompareAndSwap moves one ref if it is still at c.Old; c.Old "" creates and c.New "" deletes. A ref with another value is
	// fault.Refused. It is durable on return.
	CompareAndSwap(ctx context.Context, c project.Change) error
	// Stage checks, locks and writes changes of refs, as CompareAndSwap does before it moves them; see project.StagedRefs.
	Stage(ctx context.Context, changes []project.Change) (project.StagedRefs, error)
	// Deployed returns the deployed ref: refs/heads/master or refs/heads/main, "" before the first push.
	Deployed(ctx context.Context) (ref string, err error)
	// Head returns the deployed ref, or the one that will be: refs/heads/master before the first push, and the previously deployed one after a
	// rollback to before it.
	Head(ctx context.Context) (ref string, err error)
	// SetDeployed makes ref the deployed one (the repository's HEAD). It is durable on return.
	SetDeployed(ctx context.Context, ref string) error
	// List returns the refs below prefix, hidden ones included.
	List(ctx context.Context, prefix string) (map[string]project.Commit, error)
	// Create creates the bare repository if it is missing, and repairs it. It is idempotent, and reports whether it created one.
	Create(ctx context.Context) (made bool, err error)
	// Tree returns a commit's files; objects of in (which may be nil) are used too.
	Tree(ctx context.Context, c project.Commit, in project.Incoming) (fs.FS, error)
	// Submodules finds and fetches a commit's submodules, and returns its files with those of the submodules at their paths; nil if the commit
	// has none with a source.
	Submodules(ctx context.Context, c project.Commit, in project.Incoming, want project.SubmoduleRequest) (fs.FS, error)
	// RefuseLFS returns fault.Refused if a file of a commit is a git-lfs pointer.
	RefuseLFS(ctx context.Context, c project.Commit, in project.Incoming) error
	// Checkout checks out a published commit into a working copy; see project.CheckoutStats. It can be repeated, and is durable on return.
	Checkout(ctx context.Context, req project.Checkout) (project.CheckoutStats, error)
	// TryCheckout returns the error that Checkout would return because of changes in the working copy, and these changes; it writes nothing.
	TryCheckout(ctx context.Context, req project.Checkout, in project.Incoming) (project.CheckoutStats, error)
	// Describe compares two commits; old may be "".
	Describe(ctx context.Context, old, new project.Commit, in project.Incoming) (project.Description, error)
}
