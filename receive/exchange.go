package receive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/pack"
	"corpus-git/git/store"
	"corpus-git/git/upload"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Commit returns the commit that a ref points to, directly or through tags; ""> if there is no such ref, or it points to something else.
func (r *Repository) Commit(ctx context.Context, ref string) (c project.Commit, err error) {
	err = r.with(ctx, func(o *opened) error {
		h, err := o.refs.Get(ref)
		if err != nil || h.IsZero() {
			return err
		}
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		end, t, err := object.Peel(db, h)
		if err == nil && t == plumbing.CommitObject {
			c = commitOf(end)
		}
		return err
	})
	return c, err
}

// Tips returns the commits that the refs of a repository point to, hidden ones included, each once and in byte order: another machine need not
// send these.
func (r *Repository) Tips(ctx context.Context) (out []project.Commit, err error) {
	err = r.with(ctx, func(o *opened) error {
		list, err := o.refs.List("refs/")
		if err != nil {
			return err
		}
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		for _, ref := range list {
			end, t, err := object.Peel(db, ref.Hash)
			if errors.Is(err, store.ErrNotFound) {
				continue // a broken ref, which doctor reports
			}
			if err != nil {
				return err
			}
			if t == plumbing.CommitObject {
				out = append(out, commitOf(end))
			}
		}
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out), err
}

// WritePack writes a pack that adds the commit want to a repository that has the commits have, and returns the number of its objects; see
// upload.Pack.
func (r *Repository) WritePack(ctx context.Context, w io.Writer, want project.Commit, have []project.Commit) (objects int, err error) {
	haves := make([]plumbing.Hash, 0, len(have))
	for _, c := range have {
		haves = append(haves, hashOf(c))
	}
	err = r.with(ctx, func(o *opened) error {
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		objects, err = upload.Pack(ctx, db, []plumbing.Hash{hashOf(want)}, haves, w)
		return err
	})
	return objects, err
}

// TakePack stores a pack from another machine, nil for none, and points ref to commit, which the pack or the repository has. Every object
// is checked like those of a push, and nothing is published before complete, which may be nil, returns nil. It is durable on return; after an
// error nothing of the pack is kept.
func (r *Repository) TakePack(ctx context.Context, in io.Reader, limits pack.Limits, commit project.Commit, ref string, complete func() error) error {
	return r.change(ctx, func(o *opened) error {
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		if in == nil {
			if err := wholeCommit(db, commit); err != nil {
				return err
			}
		} else if err := r.ingest(ctx, o, db, in, limits, commit, complete); err != nil {
			return err
		}
		old, err := o.refs.Get(ref)
		if err != nil || old == hashOf(commit) {
			return err
		}
		return o.refs.CompareAndSwap(ref, old, hashOf(commit))
	})
}

func (r *Repository) ingest(ctx context.Context, o *opened, db *store.DB, in io.Reader, limits pack.Limits, commit project.Commit, complete func() error) (err error) {
	q, err := db.NewQuarantine(string(project.NewID()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Discard()) }()
	if _, err := q.Ingest(ctx, bufio.NewReader(in), store.IngestOptions{Limits: limits}); diskfull.Is(err) {
		return diskfull.Explain(syscall.ENOSPC) // the pack may be good
	} else if err != nil {
		return fault.New(fault.Refused, "", "the pack of %s.git: %w", r.repo, err)
	}
	if complete != nil {
		if err := complete(); err != nil {
			return err
		}
	}
	if err := wholeCommit(q, commit); err != nil {
		return err
	}
	list, err := o.refs.List("refs/")
	if err != nil {
		return err
	}
	refs := make([]plumbing.Hash, 0, len(list))
	for _, ref := range list {
		refs = append(refs, ref.Hash)
	}
	if err := q.Connected(ctx, store.Connect{Tips: []plumbing.Hash{hashOf(commit)}, Refs: refs}); err != nil {
		return fault.New(fault.Refused, "", "the pack of %s.git is incomplete: %w", r.repo, err)
	}
	return q.Migrate()
}

// wholeCommit refuses what does not exist, or is not a commit.
func wholeCommit(objs store.Reader, commit project.Commit) error {
	t, _, err := objs.Header(hashOf(commit))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fault.New(fault.Refused, "", "commit %s is neither in the repository nor in the pack", commit.Short())
	case err != nil:
		return err
	case t != plumbing.CommitObject:
		return fmt.Errorf("%s is a %s, not a commit", commit.Short(), t)
	}
	return nil
}
