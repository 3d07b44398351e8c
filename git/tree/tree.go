package tree

import (
	"bytes"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/fsck"
	"corpus-git/git/object"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Objects is an object store: a repository's own, or that and a quarantine in front of it.
type Objects = store.Reader

// Item is one entry of a tree object.
type Item struct {
	Name string
	Mode uint32
	Hash plumbing.Hash
}

// Parse parses a tree object and refuses what must not reach a file system: names that CheckName refuses, entries out of order or duplicate,
// unknown modes, a .gitmodules that is a symbolic link. of names the tree in errors.
func Parse(of plumbing.Hash, data []byte) ([]Item, error) {
	refuse := func(format string, args ...any) error {
		return fault.New(fault.Refused, "tree "+of.String(), format, args...)
	}
	items := make([]Item, 0, bytes.Count(data, []byte{0})/2+1)
	text := string(data) // names are parts of it, which costs one allocation for all
	for len(data) > 0 {
		e, rest, ok := object.NextEntry(data)
		if !ok {
			return nil, refuse("entry %d cannot be read", len(items)+1)
		}
		data = rest
		end := len(text) - len(rest) - len(e.Hash) - 1
		it := Item{Name: text[end-len(e.Name) : end], Mode: object.Canonical(e.Mode), Hash: e.Hash}
		if err := CheckName(it.Name); err != nil {
			return nil, refuse("%w", err)
		}
		switch {
		case it.Mode != object.ModeTree && !object.IsBlobMode(it.Mode):
			return nil, refuse("entry %q has mode %o, which git does not know", it.Name, e.Mode)
		case it.Mode == object.ModeSymlink && fsck.IsDotGitmodules([]byte(it.Name)):
			return nil, refuse("entry %q is a symbolic link: git's configuration files must be files", it.Name)
		case len(items) > 0 && !before(&items[len(items)-1], &it):
			return nil, refuse("entries %q and %q are out of order or double", items[len(items)-1].Name, it.Name)
		}
		// A file "a" and a folder "a" need not be adjacent.
		if it.Mode == object.ModeTree {
			for i := len(items) - 1; i >= 0 && len(items[i].Name) >= len(it.Name) && items[i].Name[:len(it.Name)] == it.Name; i-- {
				if items[i].Name == it.Name {
					return nil, refuse("entry %q is a file and a folder at once", it.Name)
				}
			}
		}
		items = append(items, it)
	}
	return items, nil
}

// before reports whether a comes before b in a tree.
func before(a, b *Item) bool { return object.CompareNames(a.Name, a.Mode, b.Name, b.Mode) < 0 }

// Read reads a tree, as Parse does.
func Read(objs Objects, h plumbing.Hash) ([]Item, error) {
	data, err := Get(objs, h, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	return Parse(h, data)
}

// Get reads an object of the wanted type. Another type is fault.Refused.
func Get(objs Objects, h plumbing.Hash, want plumbing.ObjectType) ([]byte, error) {
	t, data, err := objs.Get(h)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "read "+want.String()+" "+h.String(), "%w", err)
	}
	if t != want {
		return nil, fault.New(fault.Refused, "read object", "%s is a %s where a %s is needed", h, t, want)
	}
	return data, nil
}

// Peel follows tags to a commit, and returns its name and bytes.
func Peel(objs Objects, h plumbing.Hash) (plumbing.Hash, []byte, error) {
	id, t, err := object.Peel(objs, h)
	switch {
	case errors.Is(err, object.ErrCorrupt):
		return h, nil, fault.New(fault.Refused, "read "+h.String(), "%w", err)
	case err != nil:
		return h, nil, fault.New(fault.KindOf(err), "read "+h.String(), "%w", err)
	case t != plumbing.CommitObject:
		return h, nil, fault.New(fault.Refused, "read object", "%s is a %s where a commit is needed", id, t)
	}
	data, err := Get(objs, id, plumbing.CommitObject)
	return id, data, err
}

// ReadCommit reads a commit, as ParseCommit does.
func ReadCommit(objs Objects, h plumbing.Hash) (*object.Commit, error) {
	data, err := Get(objs, h, plumbing.CommitObject)
	if err != nil {
		return nil, err
	}
	return ParseCommit(h, data)
}

// ParseCommit reads a commit; a commit that cannot be read is refused.
func ParseCommit(h plumbing.Hash, data []byte) (*object.Commit, error) {
	c, err := object.ParseCommit(h, data)
	if err != nil {
		return nil, fault.New(fault.Refused, "read commit", "%w", err)
	}
	return c, nil
}

// InFolder prefixes the path in an error with that of a folder, "" for the top.
func InFolder(path string, err error) error {
	if path == "" {
		return err
	}
	return fault.New(fault.KindOf(err), "folder "+printable.Line(path), "%w", err)
}
