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
	"syscall"
	"time"

	"corpus-git/git/object"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"

	"github.com/go-git/go-git/v5/plumbing"
)

// Store is the refs of one repository. Only Dir must be set. Do not copy a Store after use. It remembers durable folders, so only one Store
// may create folders in a repository at a time; any number may read.
type Store struct {
	// Dir is the bare repository.
	Dir string
	// FS is the file system; nil is the machine's.
	FS vfs.FS
	// LockWait is how long to wait for a lock that is held. Default 1 s; negative does not wait.
	LockWait time.Duration
	// Keep are folders that stay when their last ref is deleted: those whose refs change often.
	Keep []string

	packed  packedCache
	folders folders
	// places is held while a name changes between ref and folder.
	places sync.Mutex
	// packing is held with the lock of packed-refs, so that waiting within a process is fair.
	packing sync.Mutex
}

func (s *Store) fs() vfs.FS {
	if s.FS == nil {
		return vfs.OS{}
	}
	return s.FS
}

func (s *Store) path(name string) string { return filepath.Join(s.Dir, filepath.FromSlash(name)) }

// maxSymbolic is the longest chain of symbolic refs that is followed, as in git.
const maxSymbolic = 5

// Get returns the target of a ref; the zero hash if it does not exist. Symbolic refs, such as HEAD, are followed; a dangling one is the zero
// hash too.
func (s *Store) Get(name string) (plumbing.Hash, error) {
	r, err := s.Resolve(name)
	return r.Hash, err
}

// Resolve is Get that also returns the name of the ref that a symbolic one points to, in Name.
func (s *Store) Resolve(name string) (Ref, error) {
	for range maxSymbolic {
		r, ok, err := s.read(name)
		if err != nil || !ok {
			return Ref{Name: name}, err
		}
		if r.Symbolic == "" {
			return r, nil
		}
		name = r.Symbolic
	}
	return Ref{}, fmt.Errorf("%w: %s: more than %d symbolic refs", ErrCorrupt, name, maxSymbolic)
}

// read reads one ref, without following it.
func (s *Store) read(name string) (Ref, bool, error) {
	if name != "HEAD" && !wellFormed(name) {
		return Ref{}, false, CheckName(name)
	}
	r, ok, err := s.loose(name)
	if ok || err != nil || name == "HEAD" {
		return r, ok, err
	}
	p, err := s.packedRefs()
	if err != nil {
		return r, false, err
	}
	r, ok = p.find(name)
	return r, ok, nil
}

// loose reads a ref's own file.
func (s *Store) loose(name string) (Ref, bool, error) {
	data, err := vfs.ReadFile(s.fs(), s.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR):
		return Ref{}, false, nil
	case err != nil:
		return Ref{}, false, err
	}
	r := Ref{Name: name}
	if to, ok := bytes.CutPrefix(data, []byte("ref:")); ok {
		r.Symbolic = string(bytes.TrimSpace(to))
		if !wellFormed(r.Symbolic) {
			return r, false, fmt.Errorf("%w: %s: names %q", ErrCorrupt, name, printable.Shorten(r.Symbolic, 200))
		}
		return r, true, nil
	}
	// git allows anything after the hash and white space.
	ok := len(data) >= 40
	if ok {
		r.Hash, ok = object.ParseHash(data[:40])
		ok = ok && (len(data) == 40 || strings.IndexByte(" \t\n\r", data[40]) >= 0)
	}
	if !ok {
		return r, false, fmt.Errorf("%w: %s: %d bytes that are not an object name", ErrCorrupt, name, len(data))
	}
	return r, !r.Hash.IsZero(), nil
}

// List lists the refs whose names begin with prefix ("" for all below refs/), in byte order. Symbolic refs are resolved; dangling ones are
// omitted. HEAD is not included. A ref that can't be read is an error.
func (s *Store) List(prefix string) ([]Ref, error) { return s.list(prefix, nil) }

// Broken is a ref whose file has no valid content. Err matches ErrCorrupt.
type Broken struct {
	Name string
	Err  error
}

// ListReadable is List without the broken refs, which it returns separately, as git ignores them. Callers that decide by a list what may be
// deleted use List.
func (s *Store) ListReadable(prefix string) (list []Ref, broken []Broken, err error) {
	list, err = s.list(prefix, func(name string, err error) { broken = append(broken, Broken{name, err}) })
	return list, broken, err
}

// list calls broken for each broken ref; if broken is nil, a broken ref is an error.
func (s *Store) list(prefix string, broken func(name string, err error)) ([]Ref, error) {
	// Loose refs first: a ref that is packed meanwhile is found twice rather than never.
	loose, err := s.walk(prefix, broken)
	if err != nil {
		return nil, err
	}
	p, err := s.packedRefs()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(loose, func(a, b Ref) int { return cmp.Compare(a.Name, b.Name) })
	var out []Ref
	rest := p.refs[p.from(prefix):]
	for len(loose) > 0 || len(rest) > 0 && strings.HasPrefix(rest[0].Name, prefix) {
		var r Ref
		c := -1
		switch {
		case len(loose) == 0:
			c = 1
		case len(rest) > 0 && strings.HasPrefix(rest[0].Name, prefix):
			c = cmp.Compare(loose[0].Name, rest[0].Name)
		}
		switch {
		case c > 0:
			r, rest = rest[0], rest[1:]
		case c < 0:
			r, loose = loose[0], loose[1:]
		default:
			if r = loose[0]; r.Hash == rest[0].Hash {
				r.Peeled = rest[0].Peeled
			}
			loose, rest = loose[1:], rest[1:]
		}
		if r.Symbolic != "" {
			end, err := s.Resolve(r.Symbolic)
			switch {
			case err != nil && errors.Is(err, ErrCorrupt) && broken != nil:
				broken(r.Name, err)
			case err != nil:
				return nil, err
			}
			r.Hash = end.Hash
		}
		if !r.Hash.IsZero() {
			out = append(out, r)
		}
	}
	return out, nil
}

// walk reads the loose refs below prefix. A broken one has no hash, and sorts before a packed one of its name.
func (s *Store) walk(prefix string, broken func(name string, err error)) ([]Ref, error) {
	dir := "refs"
	if i := strings.LastIndexByte(prefix, '/'); i > 0 {
		if dir = prefix[:i]; dir != "refs" && !folderFormed(dir) {
			return nil, CheckName(dir)
		}
	}
	if dir != "refs" && !strings.HasPrefix(dir, "refs/") {
		return nil, nil
	}
	var out []Ref
	todo := []string{dir}
	for len(todo) > 0 {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		names, err := s.fs().ReadDir(s.path(dir))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			name := dir + "/" + n
			if !folderFormed(name) || !strings.HasPrefix(name, prefix) && !strings.HasPrefix(prefix, name+"/") {
				continue // locks, temporary files, refs that are not requested
			}
			st, err := s.fs().Lstat(s.path(name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if st.IsDir() {
				todo = append(todo, name)
				continue
			}
			if !wellFormed(name) {
				continue
			}
			r, ok, err := s.loose(name)
			if err != nil && errors.Is(err, ErrCorrupt) && broken != nil {
				broken(name, err)
				r, ok, err = Ref{Name: name}, true, nil
			}
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// Head returns the branch that HEAD points to, "" if HEAD is detached.
func (s *Store) Head() (string, error) {
	r, ok, err := s.loose("HEAD")
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w: there is no HEAD", s.Dir, ErrCorrupt)
	}
	return r.Symbolic, err
}

// SetHead points HEAD to a branch, which need not exist. It is durable when SetHead returns.
func (s *Store) SetHead(branch string) error {
	if err := CheckName(branch); err != nil {
		return err
	}
	if !strings.HasPrefix(branch, "refs/heads/") {
		return &NameError{branch, "HEAD stands for a branch"}
	}
	l, err := s.lock("HEAD")
	if err != nil {
		return err
	}
	defer l.unlock()
	return l.commit([]byte("ref: " + branch + "\n"))
}
