package tree

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/internal/fault"
)

// Change is one path in which two commits differ.
type Change struct {
	// Status is 'A' added, 'M' content or executable bit changed, 'T' type changed, 'D' removed, as git diff --name-status prints.
	Status byte
	Path   string
}

// Changes are the differences of two commits.
type Changes struct {
	Added, Changed, Removed int
	// Bytes is the disk space of the contents of added and changed files, in blocks of 4 KiB.
	Bytes int64
	// Paths are in byte order, at most the limit of Diff; Files counts all.
	Paths []Change
	// Links are the submodules among them, all of them.
	Links []LinkChange
}

// LinkChange is a path at which one of two commits, or both, have a submodule, and not the same. Zero means none.
type LinkChange struct {
	Path     string
	Old, New plumbing.Hash
}

// Files returns the number of files in which the commits differ.
func (c *Changes) Files() int { return c.Added + c.Changed + c.Removed }

// Diff compares the trees of two commits, reading only folders that differ. A zero old is the empty tree, and so is a zero
// next. At most limit paths are listed; 0 lists all. Renames are a removal and an addition.
func Diff(ctx context.Context, objs Objects, old, next plumbing.Hash, limit int) (*Changes, error) {
	tree := func(h plumbing.Hash) (plumbing.Hash, error) {
		if h.IsZero() {
			return h, nil
		}
		id, data, err := Peel(objs, h)
		if err != nil {
			return h, err
		}
		c, err := ParseCommit(id, data)
		if err != nil {
			return h, err
		}
		return c.Tree, nil
	}
	a, err := tree(old)
	if err != nil {
		return nil, err
	}
	b, err := tree(next)
	if err != nil {
		return nil, err
	}
	d := &differ{ctx: ctx, objs: objs, limit: limit}
	return &d.out, d.dir(a, b, "", 0)
}

type differ struct {
	ctx   context.Context
	objs  Objects
	limit int
	seen  int
	out   Changes
}

func (d *differ) dir(a, b plumbing.Hash, path string, depth int) error {
	if a == b {
		return nil
	}
	if err := d.ctx.Err(); err != nil {
		return err
	}
	list := func(h plumbing.Hash) ([]Item, error) {
		if h.IsZero() {
			return nil, nil
		}
		return Read(d.objs, h)
	}
	x, err := list(a)
	if err != nil {
		return InFolder(path, err)
	}
	y, err := list(b)
	if err != nil {
		return InFolder(path, err)
	}
	if d.seen += len(x) + len(y); depth > MaxDepth || d.seen > 4*DefaultFiles {
		return fault.New(fault.Refused, "compare", "the commits have too many files and folders")
	}
	for len(x) > 0 || len(y) > 0 {
		var old, next Item
		switch {
		case len(x) > 0 && len(y) > 0 && x[0].Name == y[0].Name && (x[0].Mode == object.ModeTree) == (y[0].Mode == object.ModeTree):
			old, next, x, y = x[0], y[0], x[1:], y[1:]
		case len(y) == 0 || len(x) > 0 && before(&x[0], &y[0]):
			old, x = x[0], x[1:]
		default:
			next, y = y[0], y[1:]
		}
		name := path + old.Name
		if old.Name == "" {
			name = path + next.Name
		}
		if old.Mode == object.ModeTree || next.Mode == object.ModeTree {
			if err := d.dir(old.Hash, next.Hash, name+"/", depth+1); err != nil {
				return err
			}
			continue
		}
		if l := (LinkChange{Path: name, Old: link(&old), New: link(&next)}); l.Old != l.New {
			d.out.Links = append(d.out.Links, l)
		}
		if next.Name != "" && next.Hash != old.Hash {
			if err := d.addSize(&next); err != nil {
				return InFolder(path, err)
			}
		}
		switch {
		case old.Name == "":
			d.add('A', name)
		case next.Name == "":
			d.add('D', name)
		case !object.SameType(old.Mode, next.Mode):
			d.add('T', name)
		case old.Hash != next.Hash || old.Mode != next.Mode:
			d.add('M', name)
		}
	}
	return nil
}

// link returns the commit that a gitlink names, zero for anything else.
func link(it *Item) plumbing.Hash {
	if it.Mode != object.ModeGitlink {
		return plumbing.ZeroHash
	}
	return it.Hash
}

// addSize counts the disk space that a file will take.
func (d *differ) addSize(it *Item) error {
	if it.Mode != object.ModeFile && it.Mode != object.ModeExecutable {
		return nil // a link is in its inode, a submodule is not fetched
	}
	_, size, err := d.objs.Header(it.Hash)
	d.out.Bytes += (size + blockSize - 1) / blockSize * blockSize
	return err
}

// blockSize is the least that nearly every file system allocates.
const blockSize = 4096

func (d *differ) add(status byte, path string) {
	switch status {
	case 'A':
		d.out.Added++
	case 'D':
		d.out.Removed++
	default:
		d.out.Changed++
	}
	if d.limit <= 0 || len(d.out.Paths) < d.limit {
		d.out.Paths = append(d.out.Paths, Change{status, path})
	}
}
