package archive

import (
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"corpus-git/archive/tree"
)

const (
	// recentEach and recentAll limit the entries of manifests kept in memory, for one store and for all that share a Background: about 200
	// bytes each. recentCount is how many manifests a store keeps: those of the newest archive, the spare tree, and the archive whose base
	// an incremental one shares.
	recentEach  = 50_000
	recentAll   = 100_000
	recentCount = 3
)

// recent caches the newest manifests, because reading one takes longer than everything else that is done with it. The key is the file, which
// is never changed. Code that compares trees reads the disk instead (Store.manifest).
type recent struct {
	mu      sync.Mutex
	all     []recentManifest // newest last
	entries int64
}

type recentManifest struct {
	file tree.Ident
	size int64
	m    *tree.Manifest
}

// get returns a manifest that the caller must not change, or nil.
func (r *recent) get(file tree.Ident, size int64) *tree.Manifest {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, x := range r.all {
		if x.file == file && x.size == size {
			r.all = append(slices.Delete(r.all, i, i+1), x)
			return x.m
		}
	}
	return nil
}

// put caches a manifest, which the caller must not change any more, as long as all stores together keep at most recentAll.
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

// drop removes all manifests.
func (r *recent) drop(total *atomic.Int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.all {
		r.count(x, -1, total)
	}
	r.all = nil
}

// recentManifest is manifest, possibly from memory, for callers that only save work by it. Others share the result, so it must not be changed.
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

// remember caches a manifest that was just written to a folder, as reading it would return it.
func (s *Store) remember(dir string, m *tree.Manifest) {
	if s.cfg.NoSpare || len(m.Entries) > recentEach {
		return
	}
	if st, err := s.fs.Lstat(filepath.Join(dir, manifestFile)); err == nil {
		s.recent.put(tree.IdentOf(st), st.Size, &tree.Manifest{ID: m.ID, Scanned: m.Scanned, Entries: tree.AsRead(m.Entries)}, &s.cfg.Background.recent)
	}
}
