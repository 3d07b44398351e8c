package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// source is one objects folder: the repository's own, a quarantine's, an alternate's.
type source struct {
	dir   string
	cache *pack.Cache

	packs atomic.Pointer[[]*pack.Pack]
	// changes counts how often packs came or went.
	changes atomic.Uint64
	last    atomic.Pointer[pack.Pack] // where the last object was found

	mu    sync.Mutex // of rescan
	mtime time.Time
	seen  time.Time
}

// settled is how old a folder's time must be before it proves that nothing came after it.
const settled = 2 * time.Second

func newSource(dir string, cache *pack.Cache) (*source, error) {
	s := &source{dir: dir, cache: cache}
	s.packs.Store(&[]*pack.Pack{})
	return s, s.rescan()
}

// rescan opens packs that came and closes packs that went.
func (s *source) rescan() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Join(s.dir, "pack")
	st, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		s.replace(nil)
		return nil
	}
	if err != nil {
		return err
	}
	if st.ModTime().Equal(s.mtime) && s.seen.Sub(s.mtime) > settled {
		return nil
	}
	now := time.Now()
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	have := map[string]*pack.Pack{}
	for _, p := range *s.packs.Load() {
		have[p.Path()] = p
	}
	type dated struct {
		p *pack.Pack
		t time.Time
	}
	var next []dated
	for _, e := range list {
		base, ok := strings.CutSuffix(e.Name(), ".idx")
		if !ok || !strings.HasPrefix(base, "pack-") {
			continue
		}
		path := filepath.Join(dir, base+".pack")
		st, err := os.Stat(path)
		if err != nil {
			continue // an index without its pack: git passes over it too
		}
		p := have[path]
		if p == nil {
			if p, err = pack.Open(path, s.cache); err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				return err
			}
		}
		next = append(next, dated{p, st.ModTime()})
	}
	// The newest first: what was pushed last is read most.
	slices.SortStableFunc(next, func(a, b dated) int { return b.t.Compare(a.t) })
	packs := make([]*pack.Pack, len(next))
	for i, d := range next {
		packs[i] = d.p
	}
	s.mtime, s.seen = st.ModTime(), now
	s.replace(packs)
	return nil
}

// replace puts packs in force, closes those that are gone, and counts the change, if it is one.
func (s *source) replace(packs []*pack.Pack) {
	old := *s.packs.Swap(&packs)
	kept := 0
	for _, p := range old {
		if slices.Contains(packs, p) {
			kept++
		} else {
			_ = p.Close()
		}
	}
	if kept < len(old) || kept < len(packs) {
		s.changes.Add(1)
	}
}

func (s *source) close() { s.replace(nil) }

// locate finds h in a pack.
func (s *source) locate(h plumbing.Hash) (*pack.Pack, int64, bool, error) {
	last := s.last.Load()
	if last != nil {
		if off, ok, err := last.Find(h); err == nil && ok {
			return last, off, true, nil
		}
	}
	for _, p := range *s.packs.Load() {
		if p == last {
			continue
		}
		off, ok, err := p.Find(h)
		if errors.Is(err, pack.ErrClosed) {
			continue
		}
		if err != nil {
			return nil, 0, false, err
		}
		if ok {
			s.last.Store(p)
			return p, off, true, nil
		}
	}
	return nil, 0, false, nil
}
