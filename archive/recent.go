package archive

import (
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"corpus-git/archive/frames"
	"corpus-git/archive/tree"
)

const (
	// recentEach and recentAll limit the entries of manifests kept in memory, for one store and for all that share a Background: about 200
	// bytes each. recentCount is how many manifests a store keeps: those of the newest archive, the spare tree, and the archive whose base
	// an incremental one shares.
	recentEach  = 80_000
	recentAll   = 100_000
	recentCount = 3
	// largeEach and largeAll limit the same for the large files of packed archives: their content, and what it was compressed to.
	largeEach = 16 << 20
	largeAll  = 48 << 20
)

// recent caches the newest manifests, because reading one takes longer than everything else that is done with it. The key is the file, which
// is forgotten before it is changed. Code that compares trees reads the disk instead (Store.manifest).
type recent struct {
	mu      sync.Mutex
	all     []recentManifest // newest last
	entries int64
	files   *frames.Known // the large files of the newest archive that was packed at once
	coders  *frames.Coders
}

type recentManifest struct {
	file tree.Ident
	size int64
	m    *tree.Manifest
	// newer are the paths of an archive that was packed at once that are not in the base it shares; nil if it shares none, or they are not known.
	newer map[string]bool
}

// find returns what is cached of a manifest, which the caller must not change; nothing if it is not.
func (r *recent) find(file tree.Ident, size int64) recentManifest {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, x := range r.all {
		if x.file == file && x.size == size {
			r.all = append(slices.Delete(r.all, i, i+1), x)
			return x
		}
	}
	return recentManifest{}
}

// put caches a manifest, which the caller must not change any more, as long as all stores together keep at most recentAll.
func (r *recent) put(file tree.Ident, size int64, m *tree.Manifest, newer map[string]bool, total *atomic.Int64) {
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
	x := recentManifest{file, size, m, newer}
	r.count(x, 1, total)
	r.all = append(r.all, x)
}

// forget removes what is cached of a file that is about to be changed.
func (r *recent) forget(dev, ino uint64, total *atomic.Int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(x recentManifest) bool {
		gone := x.file.Dev == dev && x.file.Ino == ino
		if gone {
			r.count(x, -1, total)
		}
		return gone
	})
}

func (r *recent) count(x recentManifest, sign int64, total *atomic.Int64) {
	r.entries += sign * int64(len(x.m.Entries))
	total.Add(sign * int64(len(x.m.Entries)))
}

// drop removes everything. total and large are those of all stores.
func (r *recent) drop(total, large *atomic.Int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.all {
		r.count(x, -1, total)
	}
	r.all, r.coders = nil, nil
	r.replace(nil, large)
}

// large returns the large files of the newest archive that was packed at once.
func (r *recent) large() *frames.Known {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files
}

// keepLarge replaces them, as long as all stores together keep at most largeAll; total is that of all stores.
func (r *recent) keepLarge(k *frames.Known, total *atomic.Int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(k, total)
}

func (r *recent) replace(k *frames.Known, total *atomic.Int64) {
	total.Add(-r.files.Bytes())
	r.files = nil
	if k.Bytes() > 0 && total.Add(k.Bytes()) > largeAll {
		total.Add(-k.Bytes())
		return
	}
	r.files = k
}

// coders returns what compresses archives that are packed at once, the same until the project is idle.
func (s *Store) coders() (*frames.Coders, error) {
	if s.cfg.NoSpare {
		return frames.NewCoders(s.cfg.Workers)
	}
	s.recent.mu.Lock()
	defer s.recent.mu.Unlock()
	if s.recent.coders == nil {
		c, err := frames.NewCoders(s.cfg.Workers)
		if err != nil {
			return nil, err
		}
		s.recent.coders = c
	}
	return s.recent.coders, nil
}

// newLarge returns what the large files of an archive are added to.
func (s *Store) newLarge() *frames.Known {
	if s.cfg.NoSpare {
		return frames.NewKnown(0)
	}
	return frames.NewKnown(largeEach)
}

// recentManifest is manifest, possibly from memory, for callers that only save work by it. Others share the result, so it must not be changed.
func (s *Store) recentManifest(dir string) (*tree.Manifest, error) {
	m, _, err := s.recentPaths(dir)
	return m, err
}

// recentPaths is recentManifest with the newer paths of the archive; nil if they are not known.
func (s *Store) recentPaths(dir string) (m *tree.Manifest, newer map[string]bool, err error) {
	st, err := s.fs.Lstat(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, nil, err
	}
	if x := s.recent.find(tree.IdentOf(st), st.Size); x.m != nil {
		return x.m, x.newer, nil
	}
	m, err = s.manifest(dir)
	return m, nil, err
}

// remember caches a manifest that was just written to a folder, and the archive's newer paths. Its entries are as reading it would return them
// (tree.AsRead), and the caller must not change them any more.
func (s *Store) remember(dir string, m *tree.Manifest, newer map[string]bool) {
	if s.cfg.NoSpare || len(m.Entries) > recentEach {
		return
	}
	if st, err := s.fs.Lstat(filepath.Join(dir, manifestFile)); err == nil {
		s.recent.put(tree.IdentOf(st), st.Size, m, newer, &s.cfg.Background.recent)
	}
}
