package checkout

import (
	"context"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/attributes"
	"corpus-git/git/index"
	"corpus-git/git/object"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
)

// treeLister lists a tree in index order. If the old index has a folder's tree, its entries are copied from there and no object is read.
type treeLister struct {
	ctx   context.Context
	objs  tree.Objects
	limit int
	seen  atomic.Int64 // entries of all folders
	sem   chan struct{}

	mu    sync.Mutex
	trees map[plumbing.Hash][]tree.Item // trees that were read: a tree may be in several places
}

// flat is a folder's list: entries in index order and its node for the TREE extension.
type flat struct {
	entries []entry
	tree    *index.Tree
	// shared reports that entries are part of the old list and must not be changed.
	shared bool
}

// newTreeLister lists with up to workers readers. More than limit entries are an error.
func newTreeLister(ctx context.Context, objs tree.Objects, workers, limit int) *treeLister {
	if limit <= 0 {
		limit = tree.DefaultFiles
	}
	return &treeLister{ctx: ctx, objs: objs, limit: limit, trees: map[plumbing.Hash][]tree.Item{}, sem: make(chan struct{}, max(workers-1, 0))}
}

// list lists the tree root. old may be nil. It may be called again after it returned, and reads no tree twice.
func (f *treeLister) list(root plumbing.Hash, old *pathList) (*pathList, error) {
	f.seen.Store(0)
	var known []entry
	var tree *index.Tree
	if old != nil && old.tree != nil {
		known, tree = old.entries, old.tree
	}
	out, err := f.dir(root, "", "", tree, known, 0)
	if err != nil {
		return nil, err
	}
	next := &pathList{entries: out.entries, tree: out.tree}
	if old != nil {
		next.raw = old.raw
	}
	if out.shared {
		// Updates of the new entries must not change the old ones.
		next.entries = slices.Clone(out.entries)
	}
	return next, nil
}

// dir lists the tree h at path (with its slash). known are old entries, those below path in one run; cached is the old node of path.
func (f *treeLister) dir(h plumbing.Hash, name, path string, cached *index.Tree, known []entry, depth int) (flat, error) {
	if depth > tree.MaxDepth {
		return flat{}, fault.New(fault.Refused, "tree "+h.String(), "more than %d folders deep", tree.MaxDepth)
	}
	if err := f.ctx.Err(); err != nil {
		return flat{}, err
	}
	if cached != nil {
		lo, hi := under(known, path)
		known = known[lo:hi]
		if cached.Is(h, files(known)) {
			return flat{entries: known, tree: cached, shared: true}, nil
		}
	}
	items, err := f.read(h)
	if err != nil {
		return flat{}, tree.InFolder(path, err)
	}
	if f.seen.Add(int64(len(items))) > int64(f.limit) {
		return flat{}, fault.New(fault.Refused, "tree "+h.String(), "the commit has more than %d files and folders", f.limit)
	}
	for _, it := range items {
		if len(path)+len(it.Name) > tree.MaxPath {
			return flat{}, fault.New(fault.Refused, "tree "+h.String(), "a path is longer than %d bytes", tree.MaxPath)
		}
	}
	parts := make([]flat, len(items))
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	for i, it := range items {
		if it.Mode != object.ModeTree {
			continue
		}
		sub := cached.Sub(it.Name)
		one := func() { parts[i], errs[i] = f.dir(it.Hash, it.Name, path+it.Name+"/", sub, known, depth+1) }
		select {
		case f.sem <- struct{}{}:
			wg.Go(func() { one(); <-f.sem })
		default:
			one()
		}
	}
	wg.Wait()
	n := 0
	for i := range items {
		if errs[i] != nil {
			return flat{}, errs[i]
		}
		n += max(1, len(parts[i].entries))
	}
	out := flat{entries: make([]entry, 0, n), tree: &index.Tree{Name: name, Hash: h}}
	for i, it := range items {
		if it.Mode == object.ModeTree {
			out.entries = append(out.entries, parts[i].entries...)
			out.tree.Add(parts[i].tree)
			continue
		}
		out.entries = append(out.entries, entry{Entry: index.Entry{Path: path + it.Name, Mode: it.Mode, Hash: it.Hash}, attrs: it.Name == attributes.FileName})
		out.tree.Count++
	}
	return out, nil
}

func (f *treeLister) read(h plumbing.Hash) ([]tree.Item, error) {
	f.mu.Lock()
	items, ok := f.trees[h]
	f.mu.Unlock()
	if ok {
		return items, nil
	}
	items, err := tree.Read(f.objs, h)
	if err == nil {
		f.mu.Lock()
		f.trees[h] = items
		f.mu.Unlock()
	}
	return items, err
}

// under returns the run of a sorted list that is below a folder, given with its slash; "" is all of it.
func under(list []entry, dir string) (lo, hi int) {
	if dir == "" {
		return 0, len(list)
	}
	lo = sort.Search(len(list), func(i int) bool { return list[i].Path >= dir })
	// '0' follows '/'.
	end := dir[:len(dir)-1] + "0"
	return lo, lo + sort.Search(len(list)-lo, func(i int) bool { return list[lo+i].Path >= end })
}

// files returns how many files a list represents, including those in collapsed folders.
func files(list []entry) int {
	n := 0
	for i := range list {
		n += list[i].Count()
	}
	return n
}
