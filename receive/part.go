package receive

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/store"
	"corpus-git/project"
)

// Share says how much of a path is included in a part of a commit.
type Share int

// Values of Share: nothing, decided for each path below it, everything.
const (
	None Share = iota
	Some
	Whole
)

// Part stores a commit with a part of another one's files, with the same author and dates, and no parents, since its history would show
// the rest. share decides for each path, with slashes; Some for a file means nothing. The same files of the same commit give the same
// commit. No ref is moved. It is durable on return; maintenance removes it if no ref reaches it.
func (r *Repository) Part(ctx context.Context, of project.Commit, share func(path string) Share) (c project.Commit, err error) {
	err = r.change(ctx, func(o *opened) error {
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		data, err := object.Get(db, hashOf(of), plumbing.CommitObject)
		if err != nil {
			return err
		}
		head, err := object.ParseHead(hashOf(of), data)
		if err != nil {
			return err
		}
		tree, _, err := partOf(db, head.Tree, "", share)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		fmt.Fprintf(&text, "tree %s\n", tree)
		for line := range bytes.Lines(data) {
			if bytes.HasPrefix(line, []byte("author ")) || bytes.HasPrefix(line, []byte("committer ")) {
				text.Write(line)
			}
			if len(line) == 1 {
				break
			}
		}
		fmt.Fprintf(&text, "\nPart of %s\n", of)
		h, err := db.Put(plumbing.CommitObject, text.Bytes())
		c = commitOf(h)
		return err
	})
	return c, err
}

// partOf stores the included part of a tree at a path; left counts its entries.
func partOf(db *store.DB, h plumbing.Hash, at string, share func(string) Share) (part plumbing.Hash, left int, err error) {
	data, err := object.Get(db, h, plumbing.TreeObject)
	if err != nil {
		return part, 0, err
	}
	var out bytes.Buffer
	for len(data) > 0 {
		e, rest, ok := object.NextEntry(data)
		if !ok {
			return part, 0, fmt.Errorf("%w: tree %s", object.ErrCorrupt, h)
		}
		entry, path := data[:len(data)-len(rest)], at+string(e.Name)
		data = rest
		switch how := share(path); {
		case how == Whole:
			out.Write(entry)
			left++
		case how == Some && e.IsTree():
			sub, n, err := partOf(db, e.Hash, path+"/", share)
			if err != nil {
				return part, 0, err
			}
			if n > 0 {
				fmt.Fprintf(&out, "%o %s\x00", e.Mode, e.Name)
				out.Write(sub[:])
				left++
			}
		}
	}
	if left == 0 && at != "" {
		return part, 0, nil
	}
	part, err = db.Put(plumbing.TreeObject, out.Bytes())
	return part, left, err
}
