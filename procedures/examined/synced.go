package examined

import (
	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/permissions"
)

// Synced is what is known about the trees right after release-sync: the archive's scan, and which files were written since. With it the
// following fixperms need not lstat each file again (ADR 13). nil knows nothing.
type Synced struct {
	Scan *tree.Snapshot
	// Touched are the paths that were written in each tree, by the tree's name.
	Touched map[string][]string
}

// PartOf returns the part of a tree that has to be walked, and the number of entries outside that part that satisfy their rules. It is nil,
// and the whole tree must be walked, if anything is wrong or unknown.
func (s *Synced) PartOf(t permissions.Tree) (part *permissions.Part, right int64) {
	if s == nil || (t.Name != layout.ArchivedTree && t.Name != layout.ArchivedPillar) {
		return nil, 0
	}
	touched, told := s.Touched[t.Name]
	if !told {
		return nil, 0
	}
	part = &permissions.Part{}
	part.Add(".git") // the checkout may write anything there
	for _, p := range touched {
		part.Add(p)
	}
	for path, e := range s.Scan.Tree(t.Name) {
		if (!e.IsDir() && !e.IsRegular()) || part.Has(path) {
			continue
		}
		if !t.Satisfied(path, vfs.Stat{Mode: e.Mode, UID: e.UID, GID: e.GID}) {
			return nil, 0
		}
		right++
	}
	return part, right
}
