package tree

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Fits reports whether a commit can be checked out over old, which may be zero: it finds what Sync would refuse because of the commit's
// tree alone, before anything is stopped for it. Only folders that differ from old's are read, each once, however often it occurs in the
// tree. maxFiles is Request.MaxFiles; it limits what is new. Errors are fault.Refused.
func Fits(ctx context.Context, objs Objects, old, new plumbing.Hash, maxFiles int) error {
	if maxFiles <= 0 {
		maxFiles = DefaultFiles
	}
	c, err := ReadCommit(objs, new)
	if err != nil {
		return err
	}
	f := newFitter(ctx, objs, maxFiles)
	before := plumbing.ZeroHash
	if !old.IsZero() {
		// The live commit was checked out, so it fits. A missing old commit counts as none.
		if o, err := ReadCommit(objs, old); err == nil {
			before = o.Tree
		}
	}
	x, err := f.dir(before, c.Tree, 0, 0)
	if err != nil {
		return err
	}
	return f.check(x)
}

// maxCommitPath is the longest path in a commit: joined to that of a working copy or an archive it is still below PATH_MAX.
const maxCommitPath = MaxPath - 255

// extent describes a folder's content: files and folders below it, and the length of its longest path.
type extent struct {
	files int64
	path  int
}

type fitter struct {
	ctx   context.Context
	objs  Objects
	limit int64
	known map[plumbing.Hash]extent
	links map[plumbing.Hash]bool // valid entries
}

func newFitter(ctx context.Context, objs Objects, maxFiles int) *fitter {
	return &fitter{ctx: ctx, objs: objs, limit: int64(maxFiles), known: map[plumbing.Hash]extent{}, links: map[plumbing.Hash]bool{}}
}

func (f *fitter) check(x extent) error {
	switch {
	case x.files > f.limit:
		return fault.New(fault.Refused, "", "the commit has more than %d files and folders", f.limit).
			WithHint("an administrator can raise  limits.max_files  in the server's configuration")
	case x.path > maxCommitPath:
		return fault.New(fault.Refused, "", "the commit has a path longer than %d bytes", maxCommitPath).
			WithHint("git ls-tree -r -t --name-only COMMIT | awk 'length > %d'  shows it; rewrite the commit that added it (git rebase), then push again", maxCommitPath)
	}
	return nil
}

// link refuses a symbolic link that no file system can store: with an empty target, one that is too long, or one that contains NUL
// (symlink(2)).
func (f *fitter) link(it Item) error {
	if !object.SameType(it.Mode, object.ModeSymlink) || f.links[it.Hash] {
		return nil
	}
	t, size, err := f.objs.Header(it.Hash)
	if err != nil {
		return err
	}
	var to []byte
	if t == plumbing.BlobObject && size > 0 && size <= MaxPath {
		if to, err = Get(f.objs, it.Hash, plumbing.BlobObject); err != nil {
			return err
		}
	}
	if why := noTarget(size, to); why != "" {
		return fault.New(fault.Refused, "", "the commit has a symbolic link that cannot be made: %s points to %s", printable.Line(it.Name), why)
	}
	f.links[it.Hash] = true
	return nil
}

// noTarget returns why a target of size bytes is invalid, "" if it is valid.
func noTarget(size int64, to []byte) string {
	switch {
	case size == 0:
		return "nothing"
	case size > MaxPath:
		return fmt.Sprintf("a name of %d bytes, and a path has at most %d", size, MaxPath)
	case bytes.IndexByte(to, 0) >= 0:
		return "a name with a NUL in it"
	}
	return ""
}

// dir returns the extent of the folder b, without what is the same in a. depth is its depth, length that of its own path.
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
	if depth > MaxDepth {
		return x, fault.New(fault.Refused, "", "the commit has more than %d folders inside each other", MaxDepth)
	}
	if err := f.ctx.Err(); err != nil {
		return x, err
	}
	items, err := Read(f.objs, b)
	if err != nil {
		return x, err
	}
	var was []Item
	if !a.IsZero() {
		if was, err = Read(f.objs, a); err != nil {
			was = nil
		}
	}
	before := make(map[string]plumbing.Hash, len(was))
	for _, it := range was {
		if it.Mode == object.ModeTree {
			before[it.Name] = it.Hash
		}
	}
	x.files = int64(max(0, len(items)-len(was)))
	for _, it := range items {
		if it.Mode != object.ModeTree {
			x.path = max(x.path, len(it.Name))
			if err := f.link(it); err != nil {
				return x, err
			}
			continue
		}
		sub, err := f.dir(before[it.Name], it.Hash, depth+1, length+len(it.Name)+1)
		if err != nil {
			return x, err
		}
		// Sums are capped at the limit, so that a tree bomb can't overflow them.
		x.files += min(sub.files, f.limit+1)
		x.path = max(x.path, len(it.Name)+1+sub.path)
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

// Files counts the files and folders of a commit that would be below a path of length bytes. It returns fault.Refused for what Fits refuses.
func Files(ctx context.Context, objs Objects, commit plumbing.Hash, length, maxFiles int) (int64, error) {
	c, err := ReadCommit(objs, commit)
	if err != nil {
		return 0, err
	}
	f := newFitter(ctx, objs, maxFiles)
	x, err := f.dir(plumbing.ZeroHash, c.Tree, 0, length)
	if err == nil {
		err = f.check(extent{x.files, length + x.path})
	}
	return x.files, err
}
