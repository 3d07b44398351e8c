package submodule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/store"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
)

// Upkeep says what Maintain may do.
type Upkeep struct {
	// Repack is applied to each repository. Its Prune is set by Maintain if Grace is set, and its ID names quarantines.
	Repack store.Repack
	// Grace is how old an object that nothing needs must be, and how long ago a commit must last have been fetched or deployed; 0 removes none.
	Grace time.Duration
	// Search reports whether to search for such objects in a repository; done is called after it. nil searches always.
	Search func(dir string, done bool) (bool, error)
	// Needed adds to keep, with Need, the commits of submodules that the superproject needs. It is called once, and only if there is something
	// to search for. nil keeps every commit whose ref exists.
	Needed func(ctx context.Context, keep *Needs) error
	// Alone calls its argument while the superproject's repository, and therefore these, are not otherwise in use, and if nothing was pushed
	// to it since Needed; otherwise it returns an error without calling it.
	Alone func(context.Context, func() error) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Maintained reports what Maintain did, or would do, to all repositories of a folder.
type Maintained struct {
	store.Maintained
	// Repositories counts them, Expired the commits that are no longer kept, Searched the repositories in which unneeded objects were searched
	// for.
	Repositories, Expired, Searched int
}

// Changed reports whether anything was done, or would be.
func (m Maintained) Changed() bool { return m.Maintained.Changed() || m.Expired > 0 }

// expireAtOnce is the number of refs that are removed while the repositories are locked: each removal is synced.
const expireAtOnce = 32

// Maintain consolidates the repositories in a folder (see Resolver.Dir) as store.DB.Maintain does, and drops commits that nothing needs:
// first their refs, so that a commit whose ref exists is complete, then the objects that no ref reaches. A commit that is needed later is
// fetched again. The caller prevents deployments of the project meanwhile, or lets Repack.Pause report them. Only one may run at a time for
// each folder.
func Maintain(ctx context.Context, dir string, o Upkeep) (m Maintained, err error) {
	dirs, err := Repositories(dir)
	if err != nil {
		return m, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	u := &upkeep{Upkeep: o, ctx: ctx, dir: dir}
	for _, d := range dirs {
		one, err := u.one(d)
		m.Add(one)
		if err != nil {
			return m, fmt.Errorf("%s: %w", filepath.Base(d), err)
		}
	}
	return m, nil
}

// Add adds what was done to other repositories.
func (m *Maintained) Add(o Maintained) {
	m.Maintained.Add(o.Maintained)
	m.Repositories += o.Repositories
	m.Expired += o.Expired
	m.Searched += o.Searched
}

// Repositories lists the repositories in a folder (see Resolver.Dir), which may be missing.
func Repositories(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range list {
		d := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(d, "HEAD")); err == nil {
			out = append(out, d)
		}
	}
	return out, nil
}

// upkeep is one Maintain.
type upkeep struct {
	Upkeep
	ctx   context.Context
	dir   string
	needs *Needs // nil before its first use
}

func (u *upkeep) one(dir string) (m Maintained, err error) {
	m.Repositories = 1
	g, err := openRepository(dir, false, u.Now)
	if err != nil || g == nil {
		return m, err
	}
	defer func() { err = errors.Join(err, g.db.Close()) }()
	what := u.Repack
	search := u.Grace > 0
	if search && u.Search != nil {
		if search, err = u.Search(dir, false); err != nil {
			return m, err
		}
	}
	var gone []plumbing.Hash
	if search {
		m.Searched = 1
		if gone, err = u.expire(g); err != nil {
			return m, err
		}
		m.Expired = len(gone)
		cut, err := g.shallow()
		if err != nil {
			return m, err
		}
		what.Prune = &store.Prune{Grace: u.Grace, Cut: cut, Alone: u.Alone, Tips: func() ([]plumbing.Hash, error) {
			list, err := g.commits()
			return slices.DeleteFunc(list, func(h plumbing.Hash) bool { return slices.Contains(gone, h) }), err
		}}
	}
	if m.Maintained, err = g.db.Maintain(u.ctx, what); err != nil || !search || what.DryRun {
		return m, err
	}
	if err := u.boundary(g); err != nil {
		return m, err
	}
	if u.Search != nil {
		_, err = u.Search(dir, true)
	}
	return m, err
}

// expire removes the refs of commits that nothing needs and that were not used for Grace, and lists them.
func (u *upkeep) expire(g *repository) (gone []plumbing.Hash, err error) {
	if u.Needed == nil {
		return nil, nil
	}
	if u.needs == nil {
		n := newNeeds(u.dir, u.Now)
		if err := errors.Join(u.Needed(u.ctx, n), n.close()); err != nil {
			return nil, err
		}
		u.needs = n
	}
	list, err := g.commits()
	if err != nil {
		return nil, err
	}
	old := func(h plumbing.Hash) (bool, error) {
		st, err := os.Lstat(filepath.Join(g.dir, commitRefs+h.String()))
		return err == nil && u.Now().Sub(st.ModTime()) >= u.Grace, err
	}
	for _, h := range list {
		if u.needs.seen[h] {
			continue
		}
		if ok, err := old(h); err != nil {
			return nil, err
		} else if ok {
			gone = append(gone, h)
		}
	}
	if u.Repack.DryRun {
		return gone, nil
	}
	var done []plumbing.Hash
	for part := range slices.Chunk(gone, expireAtOnce) {
		err := u.Alone(u.ctx, func() error {
			for _, h := range part {
				// It may have been deployed since.
				if ok, err := old(h); err != nil {
					return err
				} else if !ok {
					continue
				}
				if err := g.refs.CompareAndSwap(commitRefs+h.String(), h, plumbing.ZeroHash); err != nil {
					return err
				}
				done = append(done, h)
			}
			return nil
		})
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// boundary removes from the shallow file commits that no longer exist. git ignores such entries.
func (u *upkeep) boundary(g *repository) error {
	old, err := g.shallow()
	if err != nil || len(old) == 0 {
		return err
	}
	var keep []plumbing.Hash
	for _, h := range old {
		there, err := g.db.Has(h)
		if err != nil {
			return err
		}
		if there {
			keep = append(keep, h)
		}
	}
	if len(keep) == len(old) {
		return nil
	}
	return u.Alone(u.ctx, func() error { return g.setShallow(keep) })
}

// Needs collects the commits of submodules that commits of a superproject need.
type Needs struct {
	w    *walker
	seen map[plumbing.Hash]bool
}

func newNeeds(dir string, now func() time.Time) *Needs {
	r := &Resolver{Dir: dir, Offline: true, Now: now}
	return &Needs{w: &walker{Resolver: r, set: &Set{open: map[string]*repository{}}}, seen: map[plumbing.Hash]bool{}}
}

func (n *Needs) close() error { return n.w.set.Close() }

// Add adds the commits that the gitlinks of a commit name, and those of their submodules that are stored. A commit that does not exist, or
// whose .gitmodules cannot be read, needs none, since it could not be deployed.
func (n *Needs) Add(objs tree.Objects, commit plumbing.Hash) error {
	if ok, err := objs.Has(commit); err != nil || !ok {
		return err
	}
	data, err := tree.File(objs, commit, File)
	if errors.Is(err, store.ErrNotFound) || fault.KindOf(err) == fault.Refused || err == nil && data == nil {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := Parse(data)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	for _, e := range entries {
		h, err := tree.Gitlink(objs, commit, e.Path)
		if errors.Is(err, store.ErrNotFound) || err == nil && (h.IsZero() || n.seen[h]) {
			continue
		}
		if err != nil {
			return err
		}
		n.seen[h] = true
		g, err := n.w.find(h)
		if err != nil {
			return err
		}
		if g == nil {
			continue
		}
		if err := n.Add(g.db, h); err != nil {
			return err
		}
	}
	return nil
}
