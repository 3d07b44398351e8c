package receive

import (
	"context"
	"errors"
	"strings"
	"sync"

	"corpus-git/git/refs"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Get returns the commit that a ref points to, "" if it does not exist.
func (r *Repository) Get(ctx context.Context, ref string) (c project.Commit, err error) {
	err = r.with(ctx, func(o *opened) error {
		h, err := o.refs.Get(ref)
		c = commitOf(h)
		return err
	})
	return c, err
}

// CompareAndSwap moves one ref if it is still at c.Old; c.Old "" creates and c.New "" deletes. A ref with another value is fault.Refused, a
// locked one fault.Busy. It is durable on return.
func (r *Repository) CompareAndSwap(ctx context.Context, c project.Change) error {
	return r.change(ctx, func(o *opened) error {
		return explainRef(o.refs.CompareAndSwap(c.Ref, hashOf(c.Old), hashOf(c.New)))
	})
}

// explainRef classifies an error from changing a ref.
func explainRef(err error) error {
	var moved *refs.ConflictError
	var locked *refs.LockedError
	switch {
	case errors.As(err, &moved):
		return fault.New(fault.Refused, "", "%w", err).WithHint("another push moved it:  git fetch  first, then push again")
	case errors.As(err, &locked):
		return fault.New(fault.Busy, "", "%w", err).WithHint("try again later")
	}
	return err
}

// Stage checks, locks and writes changes; see project.StagedRefs. Errors are those of CompareAndSwap. The repository stays in use until
// they are settled or aborted.
func (r *Repository) Stage(ctx context.Context, changes []project.Change) (project.StagedRefs, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	over, err := r.all.Underway.Begin(r.name)
	if err != nil {
		return nil, err
	}
	o, err := r.acquire()
	if err != nil {
		over()
		return nil, err
	}
	end := sync.OnceFunc(func() {
		r.all.release(o)
		over()
	})
	list := make([]refs.Change, len(changes))
	for i, c := range changes {
		list[i] = refs.Change{Name: c.Ref, Old: hashOf(c.Old), New: hashOf(c.New)}
	}
	p, err := o.refs.Stage(list)
	if err != nil {
		end()
		return nil, explainRef(err)
	}
	return &staged{Prepared: p, end: end}, nil
}

// staged holds the repository in use until the changes have ended.
type staged struct {
	*refs.Prepared
	end func()
}

// Settle implements project.StagedRefs.
func (s *staged) Settle(covered uint64) error {
	defer s.end()
	return s.Prepared.Settle(covered)
}

// Abort implements project.StagedRefs.
func (s *staged) Abort() {
	s.Prepared.Abort()
	s.end()
}

// Deployed returns the deployed ref: the one that HEAD names, once it exists; "" before the first deployment.
func (r *Repository) Deployed(ctx context.Context) (ref string, err error) {
	err = r.with(ctx, func(o *opened) (err error) {
		ref, err = o.deployed()
		return err
	})
	return ref, err
}

// Head returns the ref that HEAD names, whether it exists or not; refs/heads/master if it names none.
func (r *Repository) Head(ctx context.Context) (ref string, err error) {
	err = r.with(ctx, func(o *opened) (err error) {
		if ref, err = o.refs.Head(); err == nil && ref == "" {
			ref = "refs/heads/master"
		}
		return err
	})
	return ref, err
}

// Live returns the deployed ref and its commit, "" and "" before the first deployment. It only reads two small files, without opening the
// repository, so that thousands can be listed.
func (r *Repository) Live(ctx context.Context) (ref string, c project.Commit, err error) {
	if err := ctx.Err(); err != nil {
		return "", "", err
	}
	if _, err := project.ParseName(string(r.name)); err != nil {
		return "", "", err
	}
	k := key{r.name, r.repo}
	r.all.mu.Lock()
	s := &refs.Store{Dir: r.Dir(), FS: r.all.FS}
	if o := r.all.open[k]; o != nil && !o.stale {
		s = o.refs // packed-refs may be cached
	}
	r.all.mu.Unlock()
	ref, err = s.Head()
	if err != nil {
		if there, serr := r.Exists(); serr == nil && !there {
			err = noRepository(r.name, r.repo)
		}
		return "", "", err
	}
	if ref == "" {
		return "", "", nil
	}
	h, err := s.Get(ref)
	if err != nil || h.IsZero() {
		return "", "", err
	}
	return ref, commitOf(h), nil
}

func noRepository(name project.Name, repo project.Repo) error {
	return fault.New(fault.Refused, "", "there is no repository %s.git of %s", repo, name).WithHint("corpus-git project create %s  creates what is missing", name)
}

func (o *opened) deployed() (string, error) {
	head, err := o.refs.Head()
	if err != nil || head == "" {
		return "", err
	}
	h, err := o.refs.Get(head)
	if err != nil || h.IsZero() {
		return "", err
	}
	return head, nil
}

// SetDeployed makes ref the deployed one: the repository's HEAD. It is durable on return.
func (r *Repository) SetDeployed(ctx context.Context, ref string) error {
	return r.change(ctx, func(o *opened) error {
		if head, err := o.refs.Head(); err == nil && head == ref {
			return nil
		}
		return o.refs.SetHead(ref)
	})
}

// List returns the refs below prefix, hidden ones included, without broken ones (see BrokenRefs).
func (r *Repository) List(ctx context.Context, prefix string) (map[string]project.Commit, error) {
	out := map[string]project.Commit{}
	err := r.with(ctx, func(o *opened) error {
		if !strings.HasPrefix(prefix, "refs/") {
			prefix = "refs/"
		}
		list, _, err := o.refs.ListReadable(prefix)
		for _, ref := range list {
			out[ref.Name] = commitOf(ref.Hash)
		}
		return err
	})
	return out, err
}
