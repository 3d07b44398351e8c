// Package part makes commits with a part of another one's files, for machines that may not have the rest.
//
// Such a commit has the same author and dates as the whole one, and no parents, since its history would show the rest. The same files of the same commit
// give the same part. It reads objects, and writes them only through the Put of its caller; Memory keeps them without a repository.
package part

import (
	"bytes"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/store"
)

// Share says how much of a path is included in a part.
type Share int

// Values of Share: nothing, decided for each path below it, the same but also if nothing below it is included, everything.
const (
	None Share = iota
	Some
	Folder
	Whole
)

// Put stores an object.
type Put func(plumbing.ObjectType, []byte) (plumbing.Hash, error)

// Make stores the commit with a part of the files of another one. share decides for each path, with slashes; Some and Folder for a file mean nothing.
func Make(objs store.Reader, of plumbing.Hash, share func(path string) Share, put Put) (plumbing.Hash, error) {
	data, err := object.Get(objs, of, plumbing.CommitObject)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	head, err := object.ParseHead(of, data)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	m := maker{objs, share, put}
	tree, _, err := m.tree(head.Tree, "")
	if err != nil {
		return plumbing.ZeroHash, err
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
	return put(plumbing.CommitObject, text.Bytes())
}

type maker struct {
	objs  store.Reader
	share func(string) Share
	put   Put
}

// tree stores the included part of a tree at a path; left counts its entries.
func (m maker) tree(h plumbing.Hash, at string) (part plumbing.Hash, left int, err error) {
	data, err := object.Get(m.objs, h, plumbing.TreeObject)
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
		switch how := m.share(path); {
		case how == Whole:
			out.Write(entry)
			left++
		case (how == Some || how == Folder) && e.IsTree():
			sub, n, err := m.tree(e.Hash, path+"/")
			if err == nil && n == 0 && how == Folder {
				sub, err = m.put(plumbing.TreeObject, nil)
			}
			if err != nil {
				return part, 0, err
			}
			if n > 0 || how == Folder {
				fmt.Fprintf(&out, "%o %s\x00", e.Mode, e.Name)
				out.Write(sub[:])
				left++
			}
		}
	}
	if left == 0 && at != "" {
		return part, 0, nil
	}
	part, err = m.put(plumbing.TreeObject, out.Bytes())
	return part, left, err
}
