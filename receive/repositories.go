package receive

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/rs/zerolog"

	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/underway"
)

// Repositories are the bare repositories of all projects. The exported fields are set before use. One process owns the repositories at
// a time: leftovers of a crash are removed when a repository is first opened.
type Repositories struct {
	Root layout.Root
	// FS is the file system to which refs and configuration are written; nil means the machine's.
	FS vfs.FS
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// MaxOpen is the number of unused repositories that stay open. Default 128.
	MaxOpen int
	// MaxFiles is the maximum number of files and folders of a commit that is checked out. Default 1,048,576.
	MaxFiles int
	// Submodule returns how submodules are fetched; nil fetches none from this server's projects or over ssh.
	Submodule func() SubmoduleSettings
	// Underway records the projects in whose repositories something is being written; nil means that none are recorded.
	Underway *underway.Markers
	// HandOver makes git itself pass pushes on to the server.
	HandOver HandOver
	Log      zerolog.Logger

	mu   sync.Mutex
	open map[key]*opened
	// known are the repositories whose refs were swept in this process, by their folder's inode; cleared are those whose objects were
	// swept, too.
	known, cleared map[key]inode
	clock          uint64
	// receiving keeps commits of submodules and recipes from being taken while their repositories are maintained.
	receiving map[key]*sync.Mutex
	// holding is for HoldRecipes. What holds it waits for nothing of receiving.
	holding map[key]*sync.Mutex
}

type key struct {
	name project.Name
	repo project.Repo
}

type inode struct{ dev, ino uint64 }

// opened is an open repository.
type opened struct {
	key   key
	dir   string
	inode inode
	refs  *refs.Store

	opening sync.Mutex
	// db is opened when objects are first needed: most users only read refs.
	db *store.DB

	users int
	used  uint64
	stale bool // its folder is missing or was replaced: closed by the last user
	// shut is set while one user needs exclusive use, and closed when others may continue.
	shut chan struct{}
}

// Open returns the handle of a repository, whether it exists or not: each call on the handle opens the repository, or uses the open
// one.
func (r *Repositories) Open(name project.Name, repo project.Repo) *Repository {
	return &Repository{all: r, name: name, repo: repo}
}

func (r *Repositories) fs() vfs.FS {
	if r.FS == nil {
		return vfs.OS{}
	}
	return r.FS
}

// objects opens the object database of a repository that is in use, or returns the open one.
func (r *Repositories) objects(o *opened) (*store.DB, error) {
	o.opening.Lock()
	defer o.opening.Unlock()
	if o.db != nil {
		return o.db, nil
	}
	r.mu.Lock()
	opt := store.Options{Now: r.Now} // with the store's own age for quarantines
	if r.cleared[o.key] != o.inode {
		opt.StaleAfter = -1
	}
	r.mu.Unlock()
	db, err := store.Open(o.dir, opt)
	if err != nil {
		return nil, err
	}
	o.db = db
	r.mu.Lock()
	r.cleared[o.key] = o.inode
	r.mu.Unlock()
	return db, nil
}

// use counts a user. r.mu is held.
func (r *Repositories) use(o *opened) *opened {
	o.users++
	r.clock++
	o.used = r.clock
	return o
}

// hold adds a use of a repository that is in use.
func (r *Repositories) hold(o *opened) (release func()) {
	r.mu.Lock()
	r.use(o)
	r.mu.Unlock()
	return func() { r.release(o) }
}

func (r *Repositories) release(o *opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.users--; o.users == 0 && o.stale {
		r.close(o)
	}
	r.evict()
}

// drop removes a repository from the open ones. r.mu is held.
func (r *Repositories) drop(o *opened) {
	delete(r.open, o.key)
	if o.users == 0 {
		r.close(o)
		return
	}
	o.stale = true
}

func (r *Repositories) close(o *opened) {
	if err := o.end(); err != nil {
		r.Log.Warn().Err(err).Str("dir", o.dir).Msg("closing a repository")
	}
}

// end closes everything that is open for an unused repository.
func (o *opened) end() error {
	o.opening.Lock()
	defer o.opening.Unlock()
	if o.db == nil {
		return nil
	}
	return o.db.Close()
}

// evict closes the repositories that have been unused for the longest time. r.mu is held.
func (r *Repositories) evict() {
	most := r.MaxOpen
	if most <= 0 {
		most = 128
	}
	if len(r.open) <= most {
		return
	}
	var idle []*opened
	for _, o := range r.open {
		if o.users == 0 {
			idle = append(idle, o)
		}
	}
	slices.SortFunc(idle, func(a, b *opened) int { return cmp.Compare(a.used, b.used) })
	// A few more than necessary, so that there is room for the next ones.
	for _, o := range idle[:min(len(idle), len(r.open)-most+most/8)] {
		r.drop(o)
	}
}

// Forget closes a project's repositories, before its destruction. Calls that use them continue.
func (r *Repositories) Forget(name project.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, o := range r.open {
		if k.name == name {
			r.drop(o)
		}
	}
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		delete(r.known, key{name, repo})
		delete(r.cleared, key{name, repo})
	}
}

// Close closes all repositories. They must no longer be in use.
func (r *Repositories) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for k, o := range r.open {
		delete(r.open, k)
		errs = append(errs, o.end())
	}
	return errors.Join(errs...)
}

func hashOf(c project.Commit) plumbing.Hash { return plumbing.NewHash(string(c)) }

func commitOf(h plumbing.Hash) project.Commit {
	if h.IsZero() {
		return ""
	}
	return project.Commit(h.String())
}
