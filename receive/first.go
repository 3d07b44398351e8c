package receive

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/store"
	"corpus-git/project"
)

// File is one file of a first commit: its path with slashes, its content, and whether it is executable.
type File struct {
	Name string
	Data []byte
	Mode fs.FileMode
}

// FirstCommit stores a commit of files without parents. No ref is moved; a deployment does that. It is durable on return; maintenance
// removes it if it is never deployed.
func (r *Repository) FirstCommit(ctx context.Context, files []File, by, message string, at time.Time) (c project.Commit, err error) {
	err = r.change(ctx, func(o *opened) error {
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		tree, err := putTree(db, files)
		if err != nil {
			return err
		}
		// git ends a name at these characters.
		by = strings.Join(strings.FieldsFunc(by, func(r rune) bool { return r < ' ' || r == '<' || r == '>' }), " ")
		by = cmp.Or(by, "corpus-git")
		who := fmt.Sprintf("%s <%s@localhost> %d +0000", by, strings.ReplaceAll(by, " ", "-"), at.Unix())
		h, err := db.Put(plumbing.CommitObject, fmt.Appendf(nil, "tree %s\nauthor %s\ncommitter %[2]s\n\n%s\n", tree, who, message))
		c = commitOf(h)
		return err
	})
	return c, err
}

// putTree stores a tree of files, whose names contain slashes between folders.
func putTree(db *store.DB, files []File) (plumbing.Hash, error) {
	type entry struct {
		name string
		mode uint32
		hash plumbing.Hash
	}
	var entries []entry
	folders := map[string][]File{}
	for _, f := range files {
		if dir, rest, ok := strings.Cut(f.Name, "/"); ok {
			folders[dir] = append(folders[dir], File{rest, f.Data, f.Mode})
			continue
		}
		h, err := db.Put(plumbing.BlobObject, f.Data)
		if err != nil {
			return h, err
		}
		mode := uint32(object.ModeFile)
		if f.Mode&0o111 != 0 {
			mode = object.ModeExecutable
		}
		entries = append(entries, entry{f.Name, mode, h})
	}
	for dir, in := range folders {
		h, err := putTree(db, in)
		if err != nil {
			return h, err
		}
		entries = append(entries, entry{dir, object.ModeTree, h})
	}
	slices.SortFunc(entries, func(a, b entry) int { return object.CompareNames(a.name, a.mode, b.name, b.mode) })
	var tree bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&tree, "%o %s\x00", e.mode, e.name)
		tree.Write(e.hash[:])
	}
	return db.Put(plumbing.TreeObject, tree.Bytes())
}
