package tree

import (
	"context"
	"io/fs"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pack"
	"corpus-git/git/store"
)

// Submodule is a submodule of a commit whose own commit is available.
type Submodule struct {
	// Path is its place in the commit, Name its name in .gitmodules.
	Path, Name string
	// Commit is what the gitlink names, and Objects has it and its tree.
	Commit  plumbing.Hash
	Objects Objects
	// Repo is the bare repository of those objects. An absolute path.
	Repo string
	// Modules are its own submodules.
	Modules []Submodule
}

// FSWith is FS with the files of submodules in their places.
func FSWith(ctx context.Context, objs Objects, commit plumbing.Hash, sub string, modules []Submodule) (fs.FS, error) {
	if len(modules) == 0 {
		return FS(ctx, objs, commit, sub)
	}
	u := &union{Objects: objs}
	links := map[plumbing.Hash]plumbing.Hash{}
	if err := u.add(modules, links); err != nil {
		return nil, err
	}
	return treeWith(ctx, u, commit, sub, links)
}

// union reads from several stores: an object is the same wherever it is.
type union struct {
	Objects
	more []Objects
}

func (u *union) add(modules []Submodule, links map[plumbing.Hash]plumbing.Hash) error {
	for _, m := range modules {
		c, err := ReadCommit(m.Objects, m.Commit)
		if err != nil {
			return err
		}
		links[m.Commit] = c.Tree
		if !slices.Contains(u.more, m.Objects) {
			u.more = append(u.more, m.Objects)
		}
		if err := u.add(m.Modules, links); err != nil {
			return err
		}
	}
	return nil
}

// in returns the first store that has an object, or the project's own.
func (u *union) in(h plumbing.Hash) Objects {
	if ok, err := u.Objects.Has(h); ok || err != nil {
		return u.Objects
	}
	for _, o := range u.more {
		if ok, err := o.Has(h); ok || err != nil {
			return o
		}
	}
	return u.Objects
}

func (u *union) Has(h plumbing.Hash) (bool, error) { return u.in(h).Has(h) }
func (u *union) Header(h plumbing.Hash) (plumbing.ObjectType, int64, error) {
	return u.in(h).Header(h)
}
func (u *union) Get(h plumbing.Hash) (plumbing.ObjectType, []byte, error) { return u.in(h).Get(h) }
func (u *union) Stream(h plumbing.Hash) (*store.Object, error)            { return u.in(h).Stream(h) }
func (u *union) Locate(h plumbing.Hash) (*pack.Pack, int64, bool, error)  { return u.in(h).Locate(h) }
