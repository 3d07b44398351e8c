package checkout

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/attributes"
	"corpus-git/git/index"
	"corpus-git/git/object"
)

// A folder of the old index whose tree does not change, and whose files on the disk all match the index, needs no list of its
// content: it is collapsed into one entry with its path and tree, as in git's sparse index. The list that a checkout works on is then as
// long as its changes; the bytes of the rest are compared in place and copied.

// folder builds such a list.
type folder struct {
	from  *index.Unparsed
	trees *treeLister
	// dirty are the entries that must be compared, in order.
	dirty []int32

	read  *index.EntryReader
	out   []entry
	reads int
	// dirtyOut are the same entries by their indexes in out.
	dirtyOut []int32
}

const (
	// collapseReads is how many trees collapse reads in sequence. For a commit that changes more folders flatten is faster, which reads
	// them in parallel.
	collapseReads = 256
	// Collapsing is worthwhile if the list is at most a share of 1/collapseShare of the entries, or at most collapseAnyway long.
	collapseShare  = 8
	collapseAnyway = 64
)

// collapse lists an index for a checkout of the tree root. ok is false if that is not worthwhile or not possible: then everything must be
// listed.
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

// dir lists the entries from lo to hi, which are all that is below path (with its slash). node is what the index knows of its tree, nil if
// nothing, and to the tree that it will have, zero if it will not be a folder.
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

// begin lists the old index, collapsed if possible.
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

// lists fills in both sides, and returns the new one as an index.
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
		// A missing old object only costs a comparison.
		p.oldEOL, _ = attributesOf(p.objs, p.old)
	}
	return next, nil
}

// mayCollapse reports whether collapsed folders need no check of their files: no change of line ends, no note.
func (p *planner) mayCollapse() bool {
	return p.maySkip() && !slices.ContainsFunc(p.new, func(e entry) bool { return e.Mode == object.ModeTree && p.newEOL.MayNote(e.Path) })
}
