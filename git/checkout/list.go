package checkout

import (
	"corpus-git/git/attributes"
	"corpus-git/git/index"
	"corpus-git/git/object"
	"corpus-git/git/tree"
)

// entry is a path of a list that a checkout compares.
type entry struct {
	index.Entry
	// maybe marks an entry of an interrupted checkout: the file is ours only if it has this content.
	maybe bool
	// attrs marks a .gitattributes, so that lists of them need not check every path.
	attrs bool
	// was is one more than the entry's position in the index that was read; 0 for one from a tree object.
	was int32
}

// pathList is a list of paths in the order of an index: that of an index, or of a commit.
type pathList struct {
	entries []entry
	tree    *index.Tree
	// raw is the index that was read, from which unchanged entries are copied.
	raw []byte
	// id is that of the index that write made.
	id index.ID
}

// readList returns the list of an index; known means that its bytes need no verification.
func readList(data []byte, known bool) (*pathList, error) {
	x := &pathList{raw: data}
	n, tree, err := index.Parse(data, known, func(n int) func(int) *index.Entry {
		x.entries = make([]entry, n)
		return func(i int) *index.Entry { return &x.entries[i].Entry }
	})
	if err != nil {
		return nil, err
	}
	x.entries, x.tree = x.entries[:n], tree
	for i := range x.entries {
		e := &x.entries[i]
		e.attrs, e.was = attributes.IsFile(e.Path), int32(i+1)
	}
	return x, nil
}

// write returns the list as the parts of an index file, and sets id.
func (x *pathList) write(put func(parts [][]byte) error) (err error) {
	c := index.Content{Count: len(x.entries), Entry: func(i int) *index.Entry { return &x.entries[i].Entry }, Tree: x.tree, Raw: x.raw}
	x.id, err = c.Write(put)
	return err
}

// attributesOf reads the .gitattributes of a list. One that is a link is not followed, as in git.
func attributesOf(objs tree.Objects, entries []entry) (*attributes.Attributes, error) {
	var from []attributes.File
	for i := range entries {
		if e := &entries[i]; e.attrs && object.SameType(e.Mode, object.ModeFile) {
			from = append(from, attributes.File{Path: e.Path, Hash: e.Hash})
		}
	}
	return attributes.Load(objs, from)
}
