package receive

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"corpus-git/git/refs"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// Repository is a handle on one bare repository of a project. It keeps nothing open, and may be used by any goroutine; calls return
// fault.Refused if there is no such repository, except for Create and Exists.
type Repository struct {
	all  *Repositories
	name project.Name
	repo project.Repo
}

// Project returns the project that the repository belongs to.
func (r *Repository) Project() project.Name { return r.name }

// Kind returns which of the project's repositories it is.
func (r *Repository) Kind() project.Repo { return r.repo }

// Dir returns the folder of a repository.
func (r *Repository) Dir() string {
	p := r.all.Root.Project(string(r.name))
	if r.repo == project.PillarRepo {
		return p.PillarGit()
	}
	return p.ProjectGit()
}

// Exists reports whether there is such a repository.
func (r *Repository) Exists() (bool, error) {
	_, err := os.Stat(filepath.Join(r.Dir(), "HEAD"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// acquire opens a repository, or uses the open one. The caller releases it, once.
func (r *Repository) acquire() (*opened, error) {
	if _, err := project.ParseName(string(r.name)); err != nil {
		return nil, err
	}
	k := key{r.name, r.repo}
	dir := r.Dir()
	st, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, noRepository(r.name, r.repo)
	}
	if err != nil {
		return nil, err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, errors.New("no inode in a file's facts")
	}
	id := inode{uint64(sys.Dev), sys.Ino}
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	for o := r.all.open[k]; o != nil && o.shut != nil; o = r.all.open[k] {
		shut := o.shut
		r.all.mu.Unlock()
		<-shut
		r.all.mu.Lock()
	}
	if o := r.all.open[k]; o != nil {
		if o.inode == id {
			return r.all.use(o), nil
		}
		r.all.drop(o) // the project was destroyed and created again
	}
	o := &opened{key: k, dir: dir, inode: id, refs: &refs.Store{Dir: dir, FS: r.all.FS, Keep: pinFolders()}}
	if r.all.known[k] != id {
		if err := r.sweep(o.refs); err != nil {
			return nil, err
		}
		if err := r.handOver(dir); err != nil {
			return nil, err
		}
	}
	if r.all.open == nil {
		r.all.open, r.all.known, r.all.cleared = map[key]*opened{}, map[key]inode{}, map[key]inode{}
	}
	r.all.open[k], r.all.known[k] = o, id
	r.all.use(o)
	r.all.evict()
	return o, nil
}

// pinFolders returns the folders of the refs that each deployment creates and deletes.
func pinFolders() []string {
	return []string{"refs/corpus", "refs/corpus/archives", "refs/corpus/deployments"}
}

// sweep removes locks and half-written files that a crash left in a repository.
func (r *Repository) sweep(s *refs.Store) error {
	gone, err := s.SweepLocks()
	for _, l := range gone {
		r.all.Log.Warn().Str("project", string(r.name)).Str("lock", l).Msg("removed a stale lock")
	}
	if err == nil {
		err = vfs.SweepTemps(r.all.fs(), s.Dir)
	}
	return err
}

// Sweep removes what a crash left in a repository: quarantines, locks and incomplete files. The first use of a repository does so too;
// this is for unused ones. It opens the repository only if there is something to remove. Call it before anything else uses Repositories.
func (r *Repository) Sweep() error {
	dir := r.Dir()
	list, err := names(filepath.Join(dir, "objects"))
	if err != nil || list == nil {
		return err
	}
	if slices.ContainsFunc(list, func(n string) bool { return strings.HasPrefix(n, "incoming-") }) {
		return r.with(context.Background(), func(o *opened) error {
			_, err := r.all.objects(o)
			return err
		})
	}
	return r.sweep(&refs.Store{Dir: dir, FS: r.all.FS})
}

// change opens a repository for one call that writes, and records that, since a crash during it leaves something behind.
func (r *Repository) change(ctx context.Context, f func(*opened) error) error {
	return r.with(ctx, func(o *opened) error {
		over, err := r.all.Underway.Begin(r.name)
		if err != nil {
			return err
		}
		defer over()
		return f(o)
	})
}

// with opens a repository for one call.
func (r *Repository) with(ctx context.Context, f func(*opened) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := r.acquire()
	if err != nil {
		return err
	}
	defer r.all.release(o)
	return f(o)
}
