package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/git/object"
	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrNotFound reports that an object does not exist.
var ErrNotFound = plumbing.ErrObjectNotFound

// Reader reads objects. *DB and *Quarantine are Readers.
type Reader interface {
	// Has reports whether the object exists.
	Has(plumbing.Hash) (bool, error)
	// Header returns type and size.
	Header(plumbing.Hash) (plumbing.ObjectType, int64, error)
	// Get returns the whole object. The bytes may be shared: they must not be changed.
	Get(plumbing.Hash) (plumbing.ObjectType, []byte, error)
	// Stream opens an object; large blobs are not held in memory. The caller closes it.
	Stream(plumbing.Hash) (*Object, error)
	// Locate returns the pack that holds the object, and its offset. ok is false if it is loose, or does not exist.
	Locate(plumbing.Hash) (p *pack.Pack, off int64, ok bool, err error)
}

// Object is an object that is being read.
type Object struct {
	Type plumbing.ObjectType
	Size int64
	io.ReadCloser
}

// Options are the options of Open. The zero value is valid.
type Options struct {
	// CacheBytes is the memory for bases of deltas. Default 16 MiB.
	CacheBytes int64
	// StaleAfter is the age at which Open removes a quarantine. Default 24 h. Negative removes all of them: right for a server that starts
	// and owns the state.
	StaleAfter time.Duration
	// KeepQuarantine, if set, reports quarantines to keep.
	KeepQuarantine func(id string) bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// DB is the object database of one repository.
type DB struct {
	dir  string
	opt  Options
	main *source
	view
}

// maxAlternates is the maximal number of alternates, including those of alternates.
const maxAlternates = 32

// Open opens the repository at dir, a bare one, and sweeps its stale quarantines.
func Open(dir string, opt Options) (*DB, error) {
	if opt.CacheBytes == 0 {
		opt.CacheBytes = 16 << 20
	}
	if opt.StaleAfter == 0 {
		opt.StaleAfter = 24 * time.Hour
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	objects := filepath.Join(dir, "objects")
	if st, err := os.Stat(objects); err != nil {
		return nil, fmt.Errorf("%s: not a git repository: %w", dir, err)
	} else if !st.IsDir() {
		return nil, fmt.Errorf("%s: not a git repository", dir)
	}
	cache := pack.NewCache(opt.CacheBytes)
	main, err := newSource(objects, cache)
	if err != nil {
		return nil, err
	}
	db := &DB{dir: dir, opt: opt, main: main, view: view{main}}
	if err := db.alternates(objects, cache, map[string]bool{filepath.Clean(objects): true}); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := db.sweep(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// alternates reads objects/info/alternates: a folder per line, relative to the objects folder, # begins a comment.
func (db *DB) alternates(objects string, cache *pack.Cache, seen map[string]bool) error {
	b, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(objects, line)
		}
		line = filepath.Clean(line)
		if seen[line] {
			continue
		}
		if seen[line] = true; len(seen) > maxAlternates {
			return fmt.Errorf("%s: more than %d alternates", objects, maxAlternates)
		}
		if st, err := os.Stat(line); err != nil || !st.IsDir() {
			continue // git skips it with a warning
		}
		s, err := newSource(line, cache)
		if err != nil {
			return err
		}
		db.view = append(db.view, s)
		if err := db.alternates(line, cache, seen); err != nil {
			return err
		}
	}
	return nil
}

// Dir returns the repository's folder.
func (db *DB) Dir() string { return db.dir }

// Close closes the packs. Running calls finish.
func (db *DB) Close() error {
	for _, s := range db.view {
		s.close()
	}
	return nil
}

// view is an ordered list of sources.
type view []*source

// Rescan detects added and removed packs. Look-ups that find nothing do it themselves.
func (v view) Rescan() error {
	for _, s := range v {
		if err := s.rescan(); err != nil {
			return err
		}
	}
	return nil
}

// changes counts how often packs appeared or disappeared.
func (v view) changes() (n uint64) {
	for _, s := range v {
		n += s.changes.Load()
	}
	return n
}

// try looks in the packs of all folders, which are open, and then for a file of the object in each, until it is found, and again each time that packs were added or
// removed meanwhile.
func (v view) try(packed, loose func(s *source) (bool, error)) (bool, error) {
	for n := 0; ; n++ {
		before := v.changes()
		for _, find := range [2]func(s *source) (bool, error){packed, loose} {
			for _, s := range v {
				ok, err := find(s)
				if errors.Is(err, pack.ErrClosed) {
					continue // the pack was removed meanwhile: try again
				}
				if ok || err != nil {
					return ok, err
				}
			}
		}
		if err := v.Rescan(); err != nil || v.changes() == before || n >= maxTries {
			return false, err
		}
	}
}

// maxTries limits how often a look-up starts again because packs appeared or disappeared.
const maxTries = 8

func (v view) Has(h plumbing.Hash) (bool, error) {
	return v.try(func(s *source) (bool, error) {
		_, _, ok, err := s.locate(h)
		return ok, err
	}, func(s *source) (bool, error) { return s.hasLoose(h) })
}

func (v view) Locate(h plumbing.Hash) (p *pack.Pack, off int64, ok bool, err error) {
	_, err = v.try(func(s *source) (bool, error) {
		p, off, ok, err = s.locate(h)
		return ok, err
	}, func(s *source) (bool, error) { return s.hasLoose(h) })
	return p, off, ok, err
}

func (v view) Header(h plumbing.Hash) (t plumbing.ObjectType, size int64, err error) {
	err = v.read(h, func(p *pack.Pack, off int64) (err error) {
		t, size, err = p.Header(off)
		return err
	}, func(o *Object) error {
		t, size = o.Type, o.Size
		return o.Close()
	})
	return t, size, err
}

func (v view) Get(h plumbing.Hash) (t plumbing.ObjectType, data []byte, err error) {
	err = v.read(h, func(p *pack.Pack, off int64) (err error) {
		t, data, err = p.Get(off)
		return err
	}, func(o *Object) (err error) {
		t, data, err = readAll(o)
		return err
	})
	return t, data, err
}

func (v view) Stream(h plumbing.Hash) (obj *Object, err error) {
	err = v.read(h, func(p *pack.Pack, off int64) error {
		t, n, r, err := p.Stream(off)
		obj = &Object{t, n, r}
		return err
	}, func(o *Object) error {
		obj = o
		return nil
	})
	return obj, err
}

// read finds h and calls one of the two functions with it. The error is ErrNotFound, with the name, if it does not exist.
func (v view) read(h plumbing.Hash, packed func(*pack.Pack, int64) error, loose func(*Object) error) error {
	ok, err := v.try(func(s *source) (bool, error) {
		p, off, ok, err := s.locate(h)
		if err != nil || !ok {
			return false, err
		}
		return true, packed(p, off)
	}, func(s *source) (bool, error) {
		o, err := s.openLoose(h)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, loose(o)
	})
	if err != nil {
		return fmt.Errorf("object %s: %w", h, err)
	}
	if !ok {
		return fmt.Errorf("object %s: %w", h, ErrNotFound)
	}
	return nil
}

// Abbreviated lists objects whose names begin with the hexadecimal digits (at least 4), at most limit of them, in no order.
func (db *DB) Abbreviated(digits string, limit int) ([]plumbing.Hash, error) {
	if _, ok := object.PrefixFloor(digits); !ok || len(digits) < 4 {
		return nil, fmt.Errorf("%q is not an abbreviated object name", digits)
	}
	if err := db.Rescan(); err != nil {
		return nil, err
	}
	found := map[plumbing.Hash]bool{}
	add := func(h plumbing.Hash) bool {
		if len(found) < limit {
			found[h] = true
		}
		return len(found) < limit
	}
	for _, s := range db.view {
		for _, p := range *s.packs.Load() {
			if err := p.Prefix(digits, add); err != nil && !errors.Is(err, pack.ErrClosed) {
				return nil, err
			}
		}
		list, err := os.ReadDir(filepath.Join(s.dir, digits[:2]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range list {
			if name := digits[:2] + e.Name(); plumbing.IsHash(name) && strings.HasPrefix(name, digits) {
				add(plumbing.NewHash(name))
			}
		}
	}
	var out []plumbing.Hash
	for h := range found {
		out = append(out, h)
	}
	return out, nil
}

// coreConfig is the configuration that Init writes: git-config(1).
const coreConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
`

// Config is the configuration of our repositories, beyond git's defaults: hidden refs stay hidden, whoever serves the repository, and git
// commands run in it do not prune what only they refer to. It ends with a line feed.
const Config = coreConfig + `[transfer]
	hideRefs = refs/corpus
[gc]
	auto = 0
`

// Init creates an empty bare repository at dir, which may exist if it is empty, and whose parent exists. HEAD names refs/heads/master. It is
// durable when Init returns; after an interruption calling it again completes it. An existing repository is left as it is.
func Init(dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return nil
	}
	for _, sub := range []string{"objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	// HEAD comes last: with it the folder is a repository.
	for _, f := range []struct{ name, text string }{{"config", coreConfig}, {"HEAD", "ref: refs/heads/master\n"}} {
		if err := writeDurably(filepath.Join(dir, f.name), []byte(f.text)); err != nil {
			return err
		}
	}
	for _, sub := range []string{"objects", "refs", ".", ".."} {
		if err := syncDir(filepath.Join(dir, sub)); err != nil {
			return err
		}
	}
	return nil
}

func writeDurably(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".tmp")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(data))
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
