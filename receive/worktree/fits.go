package worktree

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/internal/fault"
)

// Fits tells whether a commit can be checked out where old, which may be zero, is: it finds what Sync would refuse of the commit's
// tree alone, before anything was stopped for it. Only folders that differ from old's are read, each once, however often
// the tree holds it. maxFiles is Request.MaxFiles; it counts what is new. Errors are fault.Refused.
func Fits(ctx context.Context, objs Objects, old, new plumbing.Hash, maxFiles int) error {
	if maxFiles <= 0 {
		maxFiles = defaultFiles
	}
	c, err := readCommit(objs, new)
	if err != nil {
		return err
	}
	f := &fitter{ctx: ctx, objs: objs, limit: int64(maxFiles), known: map[plumbing.Hash]extent{}}
	before := plumbing.ZeroHash
	if !old.IsZero() {
		// What is live was checked out, so it fits. A commit that is gone is as good as none.
		if o, err := readCommit(objs, old); err == nil {
			before = o.tree
		}
	}
	x, err := f.dir(before, c.tree, 0, 0)
	if err != nil {
		return err
	}
	return f.check(x)
}

// extent is what a folder takes, wherever it lies: files and folders below it, and the length of its longest path.
type extent struct {
	files int64
	path  int
}

type fitter struct {
	ctx   context.Context
	objs  Objects
	limit int64
	known map[plumbing.Hash]extent
}

func (f *fitter) check(x extent) error {
	switch {
	case x.files > f.limit:
		return fault.New(fault.Refused, "", "the commit has more than %d files and folders", f.limit).
			WithHint("an administrator can raise  limits.max_files  in the server's configuration")
	case x.path > maxPath:
		return fault.New(fault.Refused, "", "the commit has a path longer than %d bytes", maxPath)
	}
	return nil
}

// dir gives the extent of the folder b, of which what is the same in a counts nothing. It is at depth, and its own path
// has length bytes.
func (f *fitter) dir(a, b plumbing.Hash, depth, length int) (extent, error) {
	var x extent
	if a == b {
		return x, nil
	}
	if a.IsZero() {
		if x, ok := f.known[b]; ok {
			return x, nil
		}
	}
	if depth > maxDepth {
		return x, fault.New(fault.Refused, "", "the commit has more than %d folders inside each other", maxDepth)
	}
	if err := f.ctx.Err(); err != nil {
		return x, err
	}
	items, err := readTree(f.objs, b)
	if err != nil {
		return x, err
	}
	var was []treeItem
	if !a.IsZero() {
		if was, err = readTree(f.objs, a); err != nil {
			was = nil
		}
	}
	before := make(map[string]plumbing.Hash, len(was))
	for _, it := range was {
		if it.mode == modeDir {
			before[it.name] = it.oid
		}
	}
	x.files = int64(max(0, len(items)-len(was)))
	for _, it := range items {
		if it.mode != modeDir {
			x.path = max(x.path, len(it.name))
			continue
		}
		sub, err := f.dir(before[it.name], it.oid, depth+1, length+len(it.name)+1)
		if err != nil {
			return x, err
		}
		// No more than the limit is ever added, so that the sum of a bomb does not come round.
		x.files += min(sub.files, f.limit+1)
		x.path = max(x.path, len(it.name)+1+sub.path)
		if err := f.check(extent{x.files, length + x.path}); err != nil {
			return x, err
		}
	}
	if err := f.check(extent{x.files, length + x.path}); err != nil {
		return x, err
	}
	if a.IsZero() {
		f.known[b] = x
	}
	return x, nil
}
