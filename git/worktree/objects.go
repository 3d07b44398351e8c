package worktree

import (
	"bytes"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/fsck"
	"corpus-git/git/object"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
)

// Objects is an object store: a repository's own, or that and a quarantine in front of it.
type Objects = store.Reader

// treeItem is one entry of a tree object.
type treeItem struct {
	name string
	mode uint32
	oid  plumbing.Hash
}

// parseTree decodes a tree object and refuses what must not reach a file system: names that CheckName refuses, entries
// out of order or twice, unknown modes, a .gitmodules that is a symbolic link. of names the tree in errors.
func parseTree(of plumbing.Hash, data []byte) ([]treeItem, error) {
	refuse := func(format string, args ...any) error {
		return fault.New(fault.Refused, "tree "+of.String(), format, args...)
	}
	items := make([]treeItem, 0, bytes.Count(data, []byte{0})/2+1)
	text := string(data) // names are parts of it, which costs one allocation for all
	for len(data) > 0 {
		e, rest, ok := object.NextEntry(data)
		if !ok {
			return nil, refuse("entry %d cannot be read", len(items)+1)
		}
		data = rest
		end := len(text) - len(rest) - len(e.Hash) - 1
		it := treeItem{name: text[end-len(e.Name) : end], mode: object.Canonical(e.Mode), oid: e.Hash}
		if err := CheckName(it.name); err != nil {
			return nil, refuse("%w", err)
		}
		switch {
		case it.mode != object.ModeTree && !object.IsBlobMode(it.mode):
			return nil, refuse("entry %q has mode %o, which git does not know", it.name, e.Mode)
		case it.mode == object.ModeSymlink && fsck.IsDotGitmodules([]byte(it.name)):
			return nil, refuse("entry %q is a symbolic link: git's configuration files must be files", it.name)
		case len(items) > 0 && !before(&items[len(items)-1], &it):
			return nil, refuse("entries %q and %q are out of order or double", items[len(items)-1].name, it.name)
		}
		// A file "a" and a folder "a" need not be neighbours.
		if it.mode == object.ModeTree {
			for i := len(items) - 1; i >= 0 && len(items[i].name) >= len(it.name) && items[i].name[:len(it.name)] == it.name; i-- {
				if items[i].name == it.name {
					return nil, refuse("entry %q is a file and a folder at once", it.name)
				}
			}
		}
		items = append(items, it)
	}
	return items, nil
}

// before reports whether a comes before b in a tree.
func before(a, b *treeItem) bool { return object.CompareNames(a.name, a.mode, b.name, b.mode) < 0 }

func readTree(objs Objects, h plumbing.Hash) ([]treeItem, error) {
	data, err := get(objs, h, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	return parseTree(h, data)
}

func get(objs Objects, h plumbing.Hash, want plumbing.ObjectType) ([]byte, error) {
	t, data, err := objs.Get(h)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "read "+want.String()+" "+h.String(), "%w", err)
	}
	if t != want {
		return nil, fault.New(fault.Refused, "read object", "%s is a %s where a %s is needed", h, t, want)
	}
	return data, nil
}

// peel follows tags to a commit, and gives its name and bytes.
func peel(objs Objects, h plumbing.Hash) (plumbing.Hash, []byte, error) {
	id, t, err := object.Peel(objs, h)
	switch {
	case errors.Is(err, object.ErrCorrupt):
		return h, nil, fault.New(fault.Refused, "read "+h.String(), "%w", err)
	case err != nil:
		return h, nil, fault.New(fault.KindOf(err), "read "+h.String(), "%w", err)
	case t != plumbing.CommitObject:
		return h, nil, fault.New(fault.Refused, "read object", "%s is a %s where a commit is needed", id, t)
	}
	data, err := get(objs, id, plumbing.CommitObject)
	return id, data, err
}

func readCommit(objs Objects, h plumbing.Hash) (*object.Commit, error) {
	data, err := get(objs, h, plumbing.CommitObject)
	if err != nil {
		return nil, err
	}
	return parseCommit(h, data)
}

// parseCommit reads a commit; one that cannot be read is refused.
func parseCommit(h plumbing.Hash, data []byte) (*object.Commit, error) {
	c, err := object.ParseCommit(h, data)
	if err != nil {
		return nil, fault.New(fault.Refused, "read commit", "%w", err)
	}
	return c, nil
}
