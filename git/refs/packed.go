package refs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"corpus-git/git/object"
	"corpus-git/internal/vfs"

	"github.com/go-git/go-git/v5/plumbing"
)

// Ref is a ref and where it points to.
type Ref struct {
	Name string
	Hash plumbing.Hash
	// Peeled is the peeled target of an annotated tag, if packed-refs has it; zero if it is not known.
	Peeled plumbing.Hash
	// Symbolic is the ref that this one points to, "" for a plain one.
	Symbolic string
}

// packed is the content of packed-refs, in byte order of the names. It is replaced, never changed.
type packed struct {
	refs []Ref
	// complete reports that refs without Peeled are known to have none.
	complete bool
}

const packedHeader = "# pack-refs with: peeled fully-peeled sorted \n"

// ErrCorrupt is wrapped by errors about an invalid file of refs.
var ErrCorrupt = errors.New("corrupt ref")

// parsePacked reads packed-refs: a header line that begins with #, lines "<hash> <name>", each possibly followed by "^<hash>".
func parsePacked(data []byte) (*packed, error) {
	p := &packed{}
	sorted := true
	for n := 1; len(data) > 0; n++ {
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		data = rest
		fail := func(what string) (*packed, error) {
			return nil, fmt.Errorf("%w: packed-refs:%d: %s", ErrCorrupt, n, what)
		}
		switch {
		case !ok:
			return fail("the last line does not end")
		case n == 1 && bytes.HasPrefix(line, []byte("# pack-refs with:")):
			p.complete = slices.Contains(strings.Fields(string(line)), "fully-peeled")
		case len(line) > 0 && line[0] == '#':
		case len(line) == 41 && line[0] == '^':
			h, ok := object.ParseHash(line[1:])
			if !ok || len(p.refs) == 0 || !p.refs[len(p.refs)-1].Peeled.IsZero() {
				return fail("a peeled line that belongs to no ref")
			}
			p.refs[len(p.refs)-1].Peeled = h
		default:
			if len(line) < 42 || line[40] != ' ' {
				return fail("no ref")
			}
			h, ok := object.ParseHash(line[:40])
			name := string(line[41:])
			if !ok || h.IsZero() || !wellFormed(name) {
				return fail("no ref")
			}
			if k := len(p.refs); k > 0 && p.refs[k-1].Name >= name {
				sorted = false
			}
			p.refs = append(p.refs, Ref{Name: name, Hash: h})
		}
	}
	if !sorted {
		slices.SortStableFunc(p.refs, func(a, b Ref) int { return cmp.Compare(a.Name, b.Name) })
		for i := 1; i < len(p.refs); i++ {
			if p.refs[i].Name == p.refs[i-1].Name {
				return nil, fmt.Errorf("%w: packed-refs: %s is listed twice", ErrCorrupt, p.refs[i].Name)
			}
		}
	}
	return p, nil
}

func (p *packed) find(name string) (Ref, bool) {
	i, ok := slices.BinarySearchFunc(p.refs, name, func(r Ref, n string) int { return cmp.Compare(r.Name, n) })
	if !ok {
		return Ref{}, false
	}
	return p.refs[i], true
}

// from returns the index of the first name that has prefix or sorts after it.
func (p *packed) from(prefix string) int {
	i, _ := slices.BinarySearchFunc(p.refs, prefix, func(r Ref, n string) int { return cmp.Compare(r.Name, n) })
	return i
}

// format writes the file. Peeled values are kept; the header claims only what is known.
func (p *packed) format() []byte {
	var b bytes.Buffer
	if p.complete {
		b.WriteString(packedHeader)
	} else {
		b.WriteString("# pack-refs with: sorted \n")
	}
	for _, r := range p.refs {
		fmt.Fprintf(&b, "%s %s\n", r.Hash, r.Name)
		if !r.Peeled.IsZero() {
			fmt.Fprintf(&b, "^%s\n", r.Peeled)
		}
	}
	return b.Bytes()
}

// packedCache keeps the parsed file while it is unchanged.
type packedCache struct {
	mu   sync.Mutex
	stat vfs.Stat
	refs *packed
}

// packedRefs reads packed-refs, or takes it from the cache.
func (s *Store) packedRefs() (*packed, error) {
	path := filepath.Join(s.Dir, "packed-refs")
	s.packed.mu.Lock()
	defer s.packed.mu.Unlock()
	for {
		st, err := s.fs().Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			s.packed.refs = nil
			return &packed{complete: true}, nil
		}
		if err != nil {
			return nil, err
		}
		if s.packed.refs != nil && sameFile(st, s.packed.stat) {
			return s.packed.refs, nil
		}
		data, err := vfs.ReadFile(s.fs(), path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// The file is replaced as a whole: the content read is the old or the new one. Check again.
		again, err := s.fs().Lstat(path)
		if err != nil || !sameFile(st, again) {
			continue
		}
		p, err := parsePacked(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Dir, err)
		}
		s.packed.refs, s.packed.stat = p, st
		return p, nil
	}
}

func sameFile(a, b vfs.Stat) bool {
	return a.Ino == b.Ino && a.Dev == b.Dev && a.Size == b.Size && a.Mtime == b.Mtime && a.Ctime == b.Ctime
}
