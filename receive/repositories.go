package receive

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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

// Repositories is the bare repositories of all projects. Its exported fields are set before use. One process owns them at a time:
// what a crash left in a repository is swept when it is first opened.
type Repositories struct {
	Root layout.Root
	// FS is where refs and configuration are written; nil is the machine's file system.
	FS vfs.FS
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// MaxOpen is how many repositories stay open while nobody uses them. Default 128.
	MaxOpen int
	// MaxFiles is how many files and folders a commit may have to be checked out. Default 1,048,576.
	MaxFiles int
	// Submodule is how submodules are fetched; nil fetches none from this server's projects and over ssh.
	Submodule func() SubmoduleSettings
	// Underway notes the projects in whose repositories something is being written; nil notes none.
	Underway *underway.Book
	// HandOver makes git itself hand pushes over.
	HandOver HandOver
	Log      zerolog.Logger

	mu   sync.Mutex
	open map[key]*repository
	// known are the repositories whose refs were swept in this process, by their folder's inode; cleared those whose objects were too.
	known, cleared map[key]inode
	clock          uint64
}

type key struct {
	name project.Name
	repo project.Repo
}

type inode struct{ dev, ino uint64 }

// repository is one that is open.
type repository struct {
	key   key
	dir   string
	inode inode
	refs  *refs.Store

	opening sync.Mutex
	// db is open once somebody has asked for objects: most look at refs only.
	db *store.DB

	users int
	used  uint64
	stale bool // its folder is gone, or another one: closed when the last user leaves
	// shut is set while one user must be alone, and closed when others may come.
	shut chan struct{}
}

func (r *Repositories) fs() vfs.FS {
	if r.FS == nil {
		return vfs.OS{}
	}
	return r.FS
}

// Dir is the folder of a repository.
func (r *Repositories) Dir(name project.Name, repo project.Repo) string {
	p := r.Root.Project(string(name))
	if repo == project.PillarRepo {
		return p.PillarGit()
	}
	return p.ProjectGit()
}

// Exists reports whether there is such a repository.
func (r *Repositories) Exists(name project.Name, repo project.Repo) (bool, error) {
	_, err := os.Stat(filepath.Join(r.Dir(name, repo), "HEAD"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// acquire opens a repository, or takes the open one. The caller releases it, once.
func (r *Repositories) acquire(name project.Name, repo project.Repo) (*repository, error) {
	if _, err := project.ParseName(string(name)); err != nil {
		return nil, err
	}
	k := key{name, repo}
	dir := r.Dir(name, repo)
	st, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, noRepository(name, repo)
	}
	if err != nil {
		return nil, err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, errors.New("no inode in a file's facts")
	}
	id := inode{uint64(sys.Dev), sys.Ino}
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := r.open[k]; o != nil && o.shut != nil; o = r.open[k] {
		shut := o.shut
		r.mu.Unlock()
		<-shut
		r.mu.Lock()
	}
	if o := r.open[k]; o != nil {
		if o.inode == id {
			return r.use(o), nil
		}
		r.drop(o) // the project was destroyed and made again
	}
	o := &repository{key: k, dir: dir, inode: id, refs: &refs.Store{Dir: dir, FS: r.FS}}
	if r.known[k] != id {
		if err := r.sweep(name, o.refs); err != nil {
			return nil, err
		}
		if err := r.handOver(name, dir); err != nil {
			return nil, err
		}
	}
	if r.open == nil {
		r.open, r.known, r.cleared = map[key]*repository{}, map[key]inode{}, map[key]inode{}
	}
	r.open[k], r.known[k] = o, id
	r.use(o)
	r.evict()
	return o, nil
}

// objects opens the object database of a repository that is in use, or gives the open one.
func (r *Repositories) objects(o *repository) (*store.DB, error) {
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

// sweep removes locks and half-written files that a crash left in a repository.
func (r *Repositories) sweep(name project.Name, s *refs.Store) error {
	gone, err := s.SweepLocks()
	for _, l := range gone {
		r.Log.Warn().Str("project", string(name)).Str("lock", l).Msg("removed a lock that a crash left")
	}
	if err == nil {
		err = vfs.SweepTemps(r.fs(), s.Dir)
	}
	return err
}

// Sweep removes what a crash left in a repository: quarantines, locks and half-written files. The first use of each does so too; this is for
// what nobody uses. It opens the repository only where there is something to remove. Call it before anything else uses Repositories.
func (r *Repositories) Sweep(name project.Name, repo project.Repo) error {
	dir := r.Dir(name, repo)
	list, err := names(filepath.Join(dir, "objects"))
	if err != nil || list == nil {
		return err
	}
	if slices.ContainsFunc(list, func(n string) bool { return strings.HasPrefix(n, "incoming-") }) {
		return r.with(context.Background(), name, repo, func(o *repository) error {
			_, err := r.objects(o)
			return err
		})
	}
	return r.sweep(name, &refs.Store{Dir: dir, FS: r.FS})
}

// change opens a repository for one call that writes, which is noted: a crash in it leaves something.
func (r *Repositories) change(ctx context.Context, name project.Name, repo project.Repo, f func(*repository) error) error {
	return r.with(ctx, name, repo, func(o *repository) error {
		over, err := r.Underway.Begin(name)
		if err != nil {
			return err
		}
		defer over()
		return f(o)
	})
}

// use counts a user in. r.mu is held.
func (r *Repositories) use(o *repository) *repository {
	o.users++
	r.clock++
	o.used = r.clock
	return o
}

// hold is one more use of a repository that is in use.
func (r *Repositories) hold(o *repository) (release func()) {
	r.mu.Lock()
	r.use(o)
	r.mu.Unlock()
	return func() { r.release(o) }
}

func (r *Repositories) release(o *repository) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.users--; o.users == 0 && o.stale {
		r.close(o)
	}
	r.evict()
}

// drop takes a repository out of the open ones. r.mu is held.
func (r *Repositories) drop(o *repository) {
	delete(r.open, o.key)
	if o.users == 0 {
		r.close(o)
		return
	}
	o.stale = true
}

func (r *Repositories) close(o *repository) {
	if err := o.end(); err != nil {
		r.Log.Warn().Err(err).Str("dir", o.dir).Msg("closing a repository")
	}
}

// end closes what is open of a repository that nobody uses.
func (o *repository) end() error {
	o.opening.Lock()
	defer o.opening.Unlock()
	if o.db == nil {
		return nil
	}
	return o.db.Close()
}

// evict closes those that were not used for longest. r.mu is held.
func (r *Repositories) evict() {
	most := r.MaxOpen
	if most <= 0 {
		most = 128
	}
	if len(r.open) <= most {
		return
	}
	var idle []*repository
	for _, o := range r.open {
		if o.users == 0 {
			idle = append(idle, o)
		}
	}
	slices.SortFunc(idle, func(a, b *repository) int { return cmp.Compare(a.used, b.used) })
	// A few more than need be, so that the next ones find room.
	for _, o := range idle[:min(len(idle), len(r.open)-most+most/8)] {
		r.drop(o)
	}
}

// Forget closes a project's repositories, as its destruction must. What uses them goes on.
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

// Close closes all repositories. Nothing may use them any more.
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

// with opens a repository for one call.
func (r *Repositories) with(ctx context.Context, name project.Name, repo project.Repo, f func(*repository) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := r.acquire(name, repo)
	if err != nil {
		return err
	}
	defer r.release(o)
	return f(o)
}

func hashOf(c project.Commit) plumbing.Hash { return plumbing.NewHash(string(c)) }

func commitOf(h plumbing.Hash) project.Commit {
	if h.IsZero() {
		return ""
	}
	return project.Commit(h.String())
}
