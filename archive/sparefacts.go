package archive

import (
	"path"
	"path/filepath"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// spareFacts is what making an archive needs to know of a spare tree. It is cached, because its manifest is long, and reading it each time
// took longer than the rest of the preparation.
type spareFacts struct {
	file    tree.Ident // of the manifest that was read
	size    int64
	scanned int64
	disk    int64
	roots   []string // the trees
}

// spareFacts returns the facts of the spare tree; false if there is none to use. The manifest is read again only if its file has
// changed.
func (s *Store) spareFacts() (spareFacts, bool) {
	st, err := s.fs.Lstat(filepath.Join(s.sparePath(), manifestFile))
	if err != nil {
		return spareFacts{}, false
	}
	f := s.spareRead.Load()
	if f == nil || f.file != tree.IdentOf(st) || f.size != st.Size {
		m, err := s.recentManifest(s.sparePath())
		if err != nil {
			return spareFacts{}, false
		}
		f = factsOf(m)
		f.file, f.size = tree.IdentOf(st), st.Size
		s.spareRead.Store(f)
	}
	return *f, s.holds(f.roots)
}

func factsOf(m *tree.Manifest) *spareFacts {
	f := &spareFacts{scanned: m.Scanned, disk: count(m.Entries).Disk}
	for i := range m.Entries {
		if p := m.Entries[i].Path; path.Dir(p) == "." {
			f.roots = append(f.roots, p)
		}
	}
	return f
}

// holds reports whether all trees of the spare one exist.
func (s *Store) holds(roots []string) bool {
	for _, r := range roots {
		if ok, err := vfs.Exists(s.fs, filepath.Join(s.sparePath(), r)); err != nil || !ok {
			return false
		}
	}
	return true
}

// hasSpare reports whether there is a spare tree to build from.
func (s *Store) hasSpare() bool {
	if s.cfg.NoSpare {
		return false
	}
	_, ok := s.spareFacts()
	return ok
}

// loadSpare returns the manifest of the spare tree, or nil if there is none to use.
func (s *Store) loadSpare() *tree.Manifest {
	if s.cfg.NoSpare {
		return nil
	}
	m, err := s.recentManifest(s.sparePath())
	if err != nil || !s.holds(factsOf(m).roots) {
		s.spareRead.Store(nil) // what can't be read is not used
		return nil
	}
	return m
}
