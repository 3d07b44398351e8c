package examined

import (
	"iter"
	"reflect"
	"slices"
	"sync"

	"corpus-git/internal/vfs/changed"
	"corpus-git/layout"
	"corpus-git/procedures/permissions"
)

// Known is which trees satisfied their rules, and what has changed in them since. It belongs to one deployment. nil knows nothing.
type Known struct {
	notifier *changed.Notifier
	watch    *changed.Watch
	trees    map[string]found
	beside   sync.WaitGroup // a BeginBeside
}

// found is a tree in which everything satisfied its rule, and the inodes that were in it.
type found struct {
	tree   permissions.Tree
	inodes iter.Seq[uint64]
}

// New returns a Known that knows nothing yet; without a notifier it never will.
func New(n *changed.Notifier) *Known {
	if n == nil {
		return nil
	}
	return &Known{notifier: n}
}

// Begin begins to watch a project's trees, if they are not watched already and this is possible. What is looked at from now on may be added.
func (k *Known) Begin(at layout.Project) {
	k.BeginBeside(at)
	k.wait()
}

// BeginBeside is Begin beside what follows: it has ended when the next method returns.
func (k *Known) BeginBeside(at layout.Project) {
	if k.wait(); k == nil || k.watch != nil {
		return
	}
	k.beside.Go(func() {
		if w, err := k.notifier.Begin(at.Live(), at.Data(), at.Pillar()); err == nil {
			k.watch, k.trees = w, map[string]found{}
		}
	})
}

// wait returns when a BeginBeside has ended.
func (k *Known) wait() {
	if k != nil {
		k.beside.Wait()
	}
}

// Wants reports whether Add needs the inodes that a walk of a tree, or of a part of it, finds.
func (k *Known) Wants(part *permissions.Part) bool {
	k.wait()
	return k != nil && k.watch != nil && part == nil
}

// Add records that every entry of a tree was looked at since Begin, and satisfied its rule or was changed to: by a walk, or by the walk of the part
// that s.PartOf returned.
func (k *Known) Add(t permissions.Tree, s *Synced, part *permissions.Part, w permissions.WalkResult) {
	if k.wait(); k == nil || k.watch == nil {
		return
	}
	delete(k.trees, t.Dir)
	if w.Unsure {
		return
	}
	f := found{tree: t, inodes: slices.Values(w.Inodes)}
	if part != nil {
		f.inodes = func(yield func(uint64) bool) {
			for _, e := range s.Scan.Tree(t.Name) {
				if !yield(e.Live.Ino) {
					return
				}
			}
		}
	}
	k.trees[t.Dir] = f
}

// Changed ends the watch and returns, by the folders of trees, the part of each that must be walked; a tree that is missing must be walked as a
// whole. The rules must be those of today: trees whose rules are no longer the same are missing, too.
func (k *Known) Changed(trees []permissions.Tree) map[string]*permissions.Part {
	if k.wait(); k == nil || k.watch == nil {
		return nil
	}
	defer k.Close()
	if err := k.watch.End(); err != nil {
		return nil
	}
	out := map[string]*permissions.Part{}
	for _, t := range trees {
		f, ok := k.trees[t.Dir]
		if !ok || !reflect.DeepEqual(f.tree, t) {
			continue
		}
		paths, err := k.watch.In(t.Dir, f.inodes)
		if err != nil || slices.Contains(paths, ".") {
			continue
		}
		part := &permissions.Part{}
		for _, p := range paths {
			part.Add(p)
		}
		out[t.Dir] = part
	}
	return out
}

// Close ends the watch, if there is one. What was added is forgotten.
func (k *Known) Close() {
	if k.wait(); k == nil || k.watch == nil {
		return
	}
	k.watch.Close()
	k.watch, k.trees = nil, nil
}
