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
	// changes counts how often packs appeared or disappeared.
	changes atomic.Uint64
	last    atomic.Pointer[pack.Pack] // where the last object was found

	mu    sync.Mutex // of rescan
	mtime time.Time
	seen  time.Time
	dates map[*pack.Pack]time.Time // of the open packs, when they were opened
}

// settled is the age from which a folder's modification time proves that nothing was added after it.
const settled = 2 * time.Second

func newSource(dir string, cache *pack.Cache) (*source, error) {
	s := &source{dir: dir, cache: cache}
	s.packs.Store(&[]*pack.Pack{})
	return s, s.rescan()
}

// rescan opens new packs and closes removed ones.
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
	names := make(map[string]bool, len(list))
	for _, e := range list {
		names[e.Name()] = true
	}
	type dated struct {
		p *pack.Pack
		t time.Time
	}
	var next []dated
	dates := make(map[*pack.Pack]time.Time, len(list)/2)
	for _, e := range list {
		base, ok := strings.CutSuffix(e.Name(), ".idx")
		if !ok || !strings.HasPrefix(base, "pack-") {
			continue
		}
		if !names[base+".pack"] {
			continue // an index without its pack, which git skips too
		}
		path := filepath.Join(dir, base+".pack")
		p := have[path]
		date := s.dates[p]
		if p == nil { // looking at each one that is open already would take longer than a small push has
			st, err := os.Stat(path)
			if err != nil {
				continue
			}
			if p, err = pack.Open(path, s.cache); err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				return err
			}
			date = st.ModTime()
		}
		dates[p] = date
		next = append(next, dated{p, date})
	}
	// Newest first: recently pushed objects are read most.
	slices.SortStableFunc(next, func(a, b dated) int { return b.t.Compare(a.t) })
	packs := make([]*pack.Pack, len(next))
	for i, d := range next {
		packs[i] = d.p
	}
	s.mtime, s.seen, s.dates = st.ModTime(), now, dates
	s.replace(packs)
	return nil
}

// replace sets the list of packs, closes those that are gone, and counts a change.
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
