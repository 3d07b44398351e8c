package archive

import (
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"corpus-git/archive/tree"
)

const (
	// recentEach and recentAll bound the entries of manifests that are kept in memory, of a store and of all that share a Background: about 200 bytes each. recentCount is how
	// many a store keeps: of the newest archive, of the spare tree, and of the archive that an incremental one shares its base with.
	recentEach  = 50_000
	recentAll   = 100_000
	recentCount = 3
)

// recent keeps the manifests that were written last, for as long as deployments follow each other: reading one takes longer than all else that is done with it. A
// manifest is known by its file, which is never written to again. What proves a tree reads the disk (Store.manifest).
type recent struct {
	mu      sync.Mutex
	all     []recentManifest // the last one last
	entries int64
}

type recentManifest struct {
	file tree.Ident
	size int64
	m    *tree.Manifest
}

// get gives a copy, nil where there is none.
func (r *recent) get(file tree.Ident, size int64) *tree.Manifest {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, x := range r.all {
		if x.file == file && x.size == size {
			r.all = append(slices.Delete(r.all, i, i+1), x)
			return &tree.Manifest{ID: x.m.ID, Scanned: x.m.Scanned, Entries: slices.Clone(x.m.Entries)}
		}
	}
	return nil
}

// put keeps a manifest, which nobody changes any more, while all stores together keep no more than recentAll.
func (r *recent) put(file tree.Ident, size int64, m *tree.Manifest, total *atomic.Int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := int64(len(m.Entries))
	r.all = slices.DeleteFunc(r.all, func(x recentManifest) bool {
		if x.file == file {
			r.count(x, -1, total)
		}
		return x.file == file
	})
	for len(r.all) > 0 && (len(r.all) >= recentCount || r.entries+n > recentEach) {
		r.count(r.all[0], -1, total)
		r.all = slices.Delete(r.all, 0, 1)
	}
	if r.entries+n > recentEach || total.Load()+n > recentAll {
		return
	}
	x := recentManifest{file, size, m}
	r.count(x, 1, total)
	r.all = append(r.all, x)
}

func (r *recent) count(x recentManifest, sign int64, total *atomic.Int64) {
	r.entries += sign * int64(len(x.m.Entries))
	total.Add(sign * int64(len(x.m.Entries)))
}

// drop forgets all.
func (r *recent) drop(total *atomic.Int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.all {
		r.count(x, -1, total)
	}
	r.all = nil
}

// recentManifest is manifest for what only saves work: it may come from memory.
func (s *Store) recentManifest(dir string) (*tree.Manifest, error) {
	st, err := s.fs.Lstat(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	if m := s.recent.get(tree.IdentOf(st), st.Size); m != nil {
		return m, nil
	}
	return s.manifest(dir)
}

// remember keeps a manifest that was just written to a folder, as it would be read from there.
func (s *Store) remember(dir string, m *tree.Manifest) {
	if s.cfg.NoSpare || len(m.Entries) > recentEach {
		return
	}
	if st, err := s.fs.Lstat(filepath.Join(dir, manifestFile)); err == nil {
		s.recent.put(tree.IdentOf(st), st.Size, &tree.Manifest{ID: m.ID, Scanned: m.Scanned, Entries: tree.AsRead(m.Entries)}, &s.cfg.Background.recent)
	}
}
