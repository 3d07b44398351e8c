package tree

import (
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/internal/fault"
)

// findEntry walks from a commit's top to the entry at name; ok is false if there is none.
func findEntry(objs Objects, commit plumbing.Hash, name string) (Item, bool, error) {
	c, err := ReadCommit(objs, commit)
	if err != nil {
		return Item{}, false, err
	}
	at := Item{Mode: object.ModeTree, Hash: c.Tree}
	for elem := range strings.SplitSeq(name, "/") {
		if at.Mode != object.ModeTree {
			return Item{}, false, nil
		}
		items, err := Read(objs, at.Hash)
		if err != nil {
			return Item{}, false, err
		}
		found := false
		for _, it := range items {
			if it.Name == elem {
				at, found = it, true
				break
			}
		}
		if !found {
			return Item{}, false, nil
		}
	}
	return at, true, nil
}

// File returns a regular file of a commit, nil if there is none of that name. A file over 10 MiB is fault.Refused.
func File(objs Objects, commit plumbing.Hash, name string) ([]byte, error) {
	it, ok, err := findEntry(objs, commit, path.Clean(name))
	if err != nil || !ok || !object.SameType(it.Mode, object.ModeFile) {
		return nil, err
	}
	if _, size, err := objs.Header(it.Hash); err != nil {
		return nil, err
	} else if size > 10<<20 {
		return nil, fault.New(fault.Refused, name, "%d bytes are too many", size)
	}
	return Get(objs, it.Hash, plumbing.BlobObject)
}

// Gitlink returns the commit of the gitlink at a path, zero if there is none.
func Gitlink(objs Objects, commit plumbing.Hash, name string) (plumbing.Hash, error) {
	it, ok, err := findEntry(objs, commit, path.Clean(name))
	if err != nil || !ok || it.Mode != object.ModeGitlink {
		return plumbing.ZeroHash, err
	}
	return it.Hash, nil
}
