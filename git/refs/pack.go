package refs

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Packing are the options of Pack.
type Packing struct {
	// More is the number of loose refs up to which they are not packed.
	More int
	// Hidden, if set, is the prefix of refs that stay loose.
	Hidden string
	// Peel returns the peeled target of a tag, and zero for an object that is not a tag. It is required: packed-refs records it for each ref.
	Peel func(plumbing.Hash) (plumbing.Hash, error)
	// DryRun only counts.
	DryRun bool
}

// Pack moves loose refs to packed-refs, as git pack-refs --all does, and returns their number: a listing then reads one file instead of
// thousands. Symbolic refs and locked refs stay. packed-refs is durable before a file is removed, and a file is removed under its
// lock and only if packed-refs has its value: a crash leaves a ref in both places, with one value.
func (s *Store) Pack(o Packing) (int, error) {
	loose, err := s.packable(o)
	if err != nil || len(loose) <= o.More || o.DryRun {
		if len(loose) <= o.More {
			loose = nil
		}
		return len(loose), err
	}
	s.packing.Lock()
	defer s.packing.Unlock()
	l, err := s.lock("packed-refs")
	if err != nil {
		return 0, err
	}
	defer l.unlock()
	p, err := s.packedRefs()
	if err != nil {
		return 0, err
	}
	// Read again under the lock, which a delete holds until the ref is gone.
	if loose, err = s.packable(o); err != nil {
		return 0, err
	}
	next := &packed{complete: p.complete}
	rest := p.refs
	for _, r := range loose {
		for len(rest) > 0 && rest[0].Name < r.Name {
			next.refs, rest = append(next.refs, rest[0]), rest[1:]
		}
		if len(rest) > 0 && rest[0].Name == r.Name {
			rest = rest[1:]
		}
		if r.Peeled, err = o.Peel(r.Hash); err != nil {
			return 0, err
		}
		next.refs = append(next.refs, r)
	}
	next.refs = append(next.refs, rest...)
	if err := l.commit(next.format()); err != nil {
		return 0, err
	}
	n := 0
	for _, r := range loose {
		if ok, err := s.removeLoose(r); err != nil {
			return n, err
		} else if ok {
			n++
		}
	}
	return n, nil
}

func (s *Store) packable(o Packing) ([]Ref, error) {
	loose, err := s.walk("refs/", nil)
	if err != nil {
		return nil, err
	}
	loose = slices.DeleteFunc(loose, func(r Ref) bool {
		return r.Symbolic != "" || o.Hidden != "" && strings.HasPrefix(r.Name, o.Hidden)
	})
	slices.SortFunc(loose, func(a, b Ref) int { return cmp.Compare(a.Name, b.Name) })
	return loose, nil
}

// removeLoose removes the file of a ref that packed-refs holds with the same value.
func (s *Store) removeLoose(r Ref) (bool, error) {
	l, err := s.lockFor(r.Name, -1)
	var locked *LockedError
	if errors.As(err, &locked) {
		return false, nil // locked: its file will be newer
	}
	if err != nil {
		return false, err
	}
	defer func() {
		l.unlock()
		s.prune(r.Name)
	}()
	now, ok, err := s.loose(r.Name)
	if err != nil || !ok || now.Symbolic != "" || now.Hash != r.Hash {
		return false, err
	}
	if err := s.fs().Remove(s.path(r.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}
