package checkout

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/attributes"
	"corpus-git/git/index"
	"corpus-git/git/object"
)

// A folder of the old index that is to have the tree that it has, and whose files all lie on the disk as the index says, needs no list of
// what is in it: it is collapsed, one entry with its path and tree, as in a sparse index of git's. What a checkout then goes through is as
// long as what it has to do, and the bytes of the rest are compared where they lie and copied as they are.

// folder makes such a list.
type folder struct {
	from  *index.Unparsed
	trees *treeLister
	// dirty are the entries that must be seen, in order.
	dirty []int32

	read  *index.EntryReader
	out   []entry
	reads int
	// dirtyOut are the same entries by their places in out.
	dirtyOut []int32
}

const (
	// collapseReads is how many trees collapse reads one after the other. A commit that changes more folders has other things to wait for, and
	// flatten reads them beside each other.
	collapseReads = 256
	// collapseShare is how many entries a list may have, of eight times as many, for collapsing to pay; or collapseAnyway.
	collapseShare  = 8
	collapseAnyway = 64
)

// collapse lists an index for a checkout of the tree root. ok is false where that is not worth it or cannot be done: then all is to be listed.
func collapse(from *index.Unparsed, trees *treeLister, dirty []int32, root plumbing.Hash) (x *pathList, dirtyOut []int32, ok bool) {
	f := &folder{from: from, trees: trees, dirty: dirty, read: from.Entries()}
	x = &pathList{raw: from.Raw(), tree: from.Tree()}
	n := from.Count()
	if x.tree == nil || !f.dir("", x.tree, root, 0, n) {
		return nil, nil, false
	}
	x.entries = f.out
	return x, f.dirtyOut, true
}

// dir lists the entries from lo up to hi, which are all that is below path (with its slash). node is what the index knows of its tree, nil
// for nothing, and to the tree that it is to have, zero where it is to be no folder.
func (f *folder) dir(path string, node *index.Tree, to plumbing.Hash, lo, hi int) bool {
	var trees map[string]plumbing.Hash
	same := node.Is(to, hi-lo)
	if !same && !to.IsZero() {
		items, err := f.trees.read(to)
		if f.reads++; err != nil || f.reads > collapseReads {
			return false
		}
		trees = make(map[string]plumbing.Hash, len(items))
		for _, it := range items {
			if it.Mode == object.ModeTree {
				trees[it.Name] = it.Hash
			}
		}
	}
	for i := lo; i < hi; {
		if len(f.out) > max(f.from.Count()/collapseShare, collapseAnyway) {
			return false
		}
		name := f.from.Path(i)[len(path):]
		n := strings.IndexByte(name, '/')
		if n < 0 {
			if !f.file(i) {
				return false
			}
			i++
			continue
		}
		below := f.from.Path(i)[:len(path)+n+1]
		end := f.from.Search(below[:len(below)-1]+"0", i, hi) // '0' follows '/'
		sub := node.Sub(name[:n])
		to := trees[name[:n]]
		if same && sub != nil {
			to = sub.Hash
		}
		if sub.Is(to, end-i) && !anyIn(f.dirty, i, end) {
			f.out = append(f.out, entry{Entry: f.from.Folder(below, to, i, end), was: int32(i + 1)})
		} else if !f.dir(below, sub, to, i, end) {
			return false
		}
		i = end
	}
	return true
}

// file lists one entry.
func (f *folder) file(i int) bool {
	e, ok := f.read.Get(i)
	if !ok {
		return false
	}
	if anyIn(f.dirty, i, i+1) {
		f.dirtyOut = append(f.dirtyOut, int32(len(f.out)))
	}
	f.out = append(f.out, entry{Entry: e, attrs: attributes.IsFile(e.Path), was: int32(i + 1)})
	return true
}

// begin lists the old index, collapsed where that can be.
func (p *planner) begin(g *gitFolder, in *indexFile, trees *treeLister, root plumbing.Hash) *pathList {
	if p.snapshot != nil && g.resumed == "" {
		if from := in.plain(); from != nil {
			p.fromSnapshot, p.snapshotDirty = true, changedSince(from, p.snapshot, in.counts.at, &in.written)
			if x, dirty, ok := collapse(from, trees, p.snapshotDirty, root); ok {
				p.collapsed, p.dirty, p.written, p.counted = true, dirty, in.written, in.counts
				return x
			}
		}
	}
	return p.expand(g, in)
}

// expand lists all of the old index, nil for none.
func (p *planner) expand(g *gitFolder, in *indexFile) *pathList {
	x := g.parse(in)
	p.collapsed, p.dirty, p.written, p.counted = false, p.snapshotDirty, in.written, in.counts
	return x
}

// lists fills in both sides, and gives the new one as an index.
func (p *planner) lists(trees *treeLister, old *pathList, root plumbing.Hash) (next *pathList, err error) {
	if next, err = trees.list(root, old); err != nil {
		return nil, err
	}
	p.new = next.entries
	if p.newEOL, err = attributesOf(p.objs, p.new); err != nil || old == nil {
		return next, err
	}
	p.old, p.oldEOL = old.entries, p.newEOL
	if !sameAttributes(p.old, p.new) {
		// An old file that is gone from the store only costs a comparison.
		p.oldEOL, _ = attributesOf(p.objs, p.old)
	}
	return next, nil
}

// mayCollapse reports whether nothing has to be said of files in what is collapsed: no change of line ends, no note.
func (p *planner) mayCollapse() bool {
	return p.maySkip() && !slices.ContainsFunc(p.new, func(e entry) bool { return e.Mode == object.ModeTree && p.newEOL.MayNote(e.Path) })
}
