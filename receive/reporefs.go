package receive

import (
	"context"
	"errors"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/receive/refs"
)

// Get is the commit a ref points to, "" where it does not exist.
func (r *Repositories) Get(ctx context.Context, name project.Name, repo project.Repo, ref string) (c project.Commit, err error) {
	err = r.with(ctx, name, repo, func(o *repository) error {
		h, err := o.refs.Get(ref)
		c = commitOf(h)
		return err
	})
	return c, err
}

// CompareAndSwap moves one ref if it is still at c.Old; c.Old "" creates and c.New "" deletes. A ref that is elsewhere is
// fault.Refused, one that somebody else is changing fault.Busy. Durable on return.
func (r *Repositories) CompareAndSwap(ctx context.Context, name project.Name, repo project.Repo, c project.Change) error {
	return r.change(ctx, name, repo, func(o *repository) error {
		err := o.refs.CompareAndSwap(c.Ref, hashOf(c.Old), hashOf(c.New))
		var moved *refs.ConflictError
		var locked *refs.LockedError
		switch {
		case errors.As(err, &moved):
			return fault.New(fault.Refused, "", "%w", err).WithHint("somebody else moved it:  git fetch  first, look, and push again")
		case errors.As(err, &locked):
			return fault.New(fault.Busy, "", "%w", err).WithHint("try again in a moment")
		}
		return err
	})
}

// Deployed is the ref that deploys: HEAD's, once it exists; "" before the first deployment.
func (r *Repositories) Deployed(ctx context.Context, name project.Name, repo project.Repo) (ref string, err error) {
	err = r.with(ctx, name, repo, func(o *repository) (err error) {
		ref, err = o.deployed()
		return err
	})
	return ref, err
}

func (o *repository) deployed() (string, error) {
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

// SetDeployed makes ref the one that deploys: the repository's HEAD. Durable on return.
func (r *Repositories) SetDeployed(ctx context.Context, name project.Name, repo project.Repo, ref string) error {
	return r.change(ctx, name, repo, func(o *repository) error {
		if head, err := o.refs.Head(); err == nil && head == ref {
			return nil
		}
		return o.refs.SetHead(ref)
	})
}

// List gives the refs below prefix, hidden ones included.
func (r *Repositories) List(ctx context.Context, name project.Name, repo project.Repo, prefix string) (map[string]project.Commit, error) {
	out := map[string]project.Commit{}
	err := r.with(ctx, name, repo, func(o *repository) error {
		if !strings.HasPrefix(prefix, "refs/") {
			prefix = "refs/"
		}
		list, err := o.refs.List(prefix)
		for _, ref := range list {
			out[ref.Name] = commitOf(ref.Hash)
		}
		return err
	})
	return out, err
}
