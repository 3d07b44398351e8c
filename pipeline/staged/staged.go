// Package staged changes refs of the two repositories of a project together: locked and written first, made visible later.
//
// It owns nothing but the order of these steps; the repositories own the refs. A crash leaves locks that the repositories remove.
package staged

import (
	"context"
	"errors"
	"sync"

	"corpus-git/pipeline/journal"
	"corpus-git/project"
)

// Repository stages changes of refs.
type Repository interface {
	Stage(ctx context.Context, changes []project.Change) (project.StagedRefs, error)
}

// Refs are the staged refs of several repositories.
type Refs []project.StagedRefs

// Stage locks and writes changes of refs. After an error nothing is locked.
func Stage(ctx context.Context, changes []journal.RefChange, open func(project.Repo) Repository) (out Refs, err error) {
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		var list []project.Change
		for _, c := range changes {
			if c.Repo == repo {
				list = append(list, c.Change)
			}
		}
		if len(list) == 0 {
			continue
		}
		s, err := open(repo).Stage(ctx, list)
		if err != nil {
			out.Abort()
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (l Refs) each(f func(project.StagedRefs) error) error {
	for _, s := range l {
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// Abort releases those that were not published.
func (l Refs) Abort() {
	for _, s := range l {
		s.Abort()
	}
}

// Sync makes the new values durable; see project.StagedRefs.
func (l Refs) Sync(covered uint64) error {
	return l.each(func(s project.StagedRefs) error { return s.Sync(covered) })
}

// Publish makes the new values visible; they are durable after Settle.
func (l Refs) Publish() error { return l.each(project.StagedRefs.Publish) }

// Settle makes durable that they are visible; see project.StagedRefs.
func (l Refs) Settle(covered uint64) error {
	return l.each(func(s project.StagedRefs) error { return s.Settle(covered) })
}

// Together begins all of fs, and returns a function that waits for them and joins their errors; it may be called more than once. Syncs that
// are under way together share a commit of the file system.
func Together(fs ...func() error) (wait func() error) {
	errs := make([]error, len(fs))
	var all sync.WaitGroup
	for i, f := range fs {
		all.Go(func() { errs[i] = f() })
	}
	return func() error {
		all.Wait()
		return errors.Join(errs...)
	}
}
