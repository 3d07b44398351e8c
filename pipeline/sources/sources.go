// Package sources finds the files and commits that a deployment is made from. It owns no state, and writes nothing.
package sources

import (
	"context"
	"errors"
	"io/fs"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// Incoming returns the pushed objects if they were pushed to this one of the two repositories.
func Incoming(d project.Deployment, in project.Incoming, repo project.Repo) project.Incoming {
	if repo == d.Repo {
		return in
	}
	return nil
}

// TreeWith returns a folder that its owner may change while it is read, nil if it, or the given file in it, is missing.
func TreeWith(dir, file string) (fs.FS, error) {
	tree, err := vfs.Beneath(dir)
	if err == nil {
		_, err = fs.Stat(tree, file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "read the working copy", "%w", err)
	}
	return tree, nil
}

// Refs are the refs of a repository.
type Refs interface {
	Deployed(ctx context.Context) (ref string, err error)
	Get(ctx context.Context, ref string) (project.Commit, error)
}

// Deployed returns the commit of a repository's deployed branch, "" if there is none or it can't be read.
func Deployed(ctx context.Context, r Refs) project.Commit {
	ref, err := r.Deployed(ctx)
	if err != nil || ref == "" {
		return ""
	}
	c, err := r.Get(ctx, ref)
	if err != nil {
		return ""
	}
	return c
}
