package part

import (
	"context"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/store"
	"corpus-git/git/tree"
)

// Needed returns the share of a commit that reading a folder of it needs: the folder, and what its symbolic links lead to within the commit, with the links on the
// way. A link to the top needs nothing more. A missing folder needs nothing.
func Needed(ctx context.Context, objs store.Reader, of plumbing.Hash, folder string) (func(path string) Share, error) {
	c, err := tree.ReadCommit(objs, of)
	if err != nil {
		return nil, err
	}
	n := &needs{ctx: ctx, objs: objs, whole: map[string]bool{}, some: map[string]bool{}, folders: map[string]bool{}, known: map[plumbing.Hash]map[string]tree.Item{}}
	if err := n.follow([]place{{"", tree.Item{Mode: object.ModeTree, Hash: c.Tree}}}, folder); err != nil {
		return nil, err
	}
	return func(p string) Share {
		switch {
		case n.covered(p):
			return Whole
		case n.folders[p]:
			return Folder
		case n.some[p]:
			return Some
		}
		return None
	}, nil
}

type needs struct {
	ctx  context.Context //nolint:containedctx // of one Needed
	objs store.Reader
	// whole are the paths that are included with all below them, some their parents, folders those that a link leads through.
	whole, some, folders map[string]bool
	// known are the entries of the folders that links lead through, each read once: there may be as many links as entries.
	known map[plumbing.Hash]map[string]tree.Item
}

// entry returns an entry of a folder; ok is false if it has none of that name.
func (n *needs) entry(of plumbing.Hash, name string) (i tree.Item, ok bool, err error) {
	if n.known[of] == nil {
		items, err := tree.Read(n.objs, of)
		if err != nil {
			return i, false, err
		}
		n.known[of] = make(map[string]tree.Item, len(items))
		for _, i := range items {
			n.known[of][i.Name] = i
		}
	}
	i, ok = n.known[of][name]
	return i, ok, nil
}

// place is an entry on the way from the top.
type place struct {
	path string
	tree.Item
}

// covered reports whether a path, or a folder above it, is included as a whole.
func (n *needs) covered(p string) bool {
	for ; p != "." && p != ""; p = path.Dir(p) {
		if n.whole[p] {
			return true
		}
	}
	return false
}

func (n *needs) parents(p string) {
	for p = path.Dir(p); p != "."; p = path.Dir(p) {
		n.some[p] = true
	}
}

// follow includes what a path leads to, from the last of the folders in stack: as tree.FS finds it. What leads nowhere includes only the links on the way.
func (n *needs) follow(stack []place, target string) error {
	rest := strings.Split(target, "/")
	for links := 0; len(rest) > 0; {
		if err := n.ctx.Err(); err != nil {
			return err
		}
		elem := rest[0]
		rest = rest[1:]
		here := stack[len(stack)-1]
		switch elem {
		case "", ".":
			continue
		case "..":
			if len(stack) == 1 {
				return nil
			}
			n.folders[here.path] = true
			n.parents(here.path)
			stack = stack[:len(stack)-1]
			continue
		}
		if here.Mode != object.ModeTree {
			return nil
		}
		item, ok, err := n.entry(here.Hash, elem)
		if err != nil || !ok {
			return err
		}
		next := place{path.Join(here.path, elem), item}
		switch next.Mode {
		case object.ModeSymlink:
			if links++; links > tree.MaxLinks {
				return nil
			}
			to, err := n.link(next)
			if err != nil || strings.HasPrefix(to, "/") {
				return err
			}
			rest = append(strings.Split(to, "/"), rest...)
		default:
			stack = append(stack[:len(stack):len(stack)], next)
		}
	}
	end := stack[len(stack)-1]
	if end.path == "" || n.covered(end.path) {
		return nil
	}
	n.whole[end.path] = true
	n.parents(end.path)
	return n.below(stack)
}

// link includes a link, and returns its target.
func (n *needs) link(at place) (string, error) {
	if !n.covered(at.path) {
		n.whole[at.path] = true
		n.parents(at.path)
	}
	text, err := tree.Get(n.objs, at.Hash, plumbing.BlobObject)
	return string(text), err
}

// below follows the links in a folder that is included.
func (n *needs) below(stack []place) error {
	at := stack[len(stack)-1]
	if at.Mode != object.ModeTree {
		return nil
	}
	items, err := tree.Read(n.objs, at.Hash)
	if err != nil {
		return err
	}
	for _, i := range items {
		next := place{path.Join(at.path, i.Name), i}
		switch i.Mode {
		case object.ModeTree:
			if err := n.below(append(stack[:len(stack):len(stack)], next)); err != nil {
				return err
			}
		case object.ModeSymlink:
			to, err := n.link(next)
			if err != nil {
				return err
			}
			if strings.HasPrefix(to, "/") {
				continue
			}
			if err := n.follow(stack, to); err != nil {
				return err
			}
		}
	}
	return nil
}
