package receive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/receive/submodule"
)

// Maintenance says what Maintain may do.
type Maintenance struct {
	// Packs and Loose are the numbers of packs and loose objects that may exist before they are consolidated; PackRefs is the same for loose refs.
	Packs, Loose, PackRefs int
	// All consolidates everything, however little there is to gain.
	All bool
	// Grace is the age at which an object that nothing refers to is removed; 0 removes none.
	Grace time.Duration
	// Every is the minimum time between two searches for such objects; 0 searches now. A search walks all of history.
	Every time.Duration
	// DryRun changes nothing.
	DryRun bool
	// Pause is called before about every 256 KiB of work; its error aborts the work.
	Pause func(context.Context) error
	// Idle is called when objects are about to be removed and the repository is not in use; its error, which means that a deployment of the project is running,
	// keeps them. It does not block. nil is never an error.
	Idle func(context.Context) error
}

// Maintained reports what Maintain did to one repository.
type Maintained struct {
	store.Maintained
	// Refs counts the refs that were packed.
	Refs int
	// Searched reports whether objects that nothing refers to were searched for.
	Searched bool
	// Submodules is what was done to the repositories of its submodules.
	Submodules submodule.Maintained
	Took       time.Duration
}

// Changed reports whether anything was done, or would be.
func (m Maintained) Changed() bool {
	return m.Maintained.Changed() || m.Refs > 0 || m.Submodules.Changed()
}

// prunedMark is the file below objects/info whose modification time is that of the last search for objects that nothing refers to.
const prunedMark = "corpus-git.pruned"

// aloneWait is how long maintenance waits until a repository is not in use.
const aloneWait = 5 * time.Second

// Maintain consolidates a repository's packs, loose objects and refs, and removes objects that nothing refers to; then it does the same to
// the repositories of its submodules, and drops commits there that no ref needs. See store.DB.Maintain for what is durable when. The caller
// prevents deployments of the project meanwhile, or lets Pause report them. Fetches, and pushes that only store, continue; objects are removed while there are none, otherwise
// the error is fault.Busy. Only one Maintain of a repository may run at a time.
func (r *Repository) Maintain(ctx context.Context, o Maintenance) (m Maintained, err error) {
	now := r.all.now()
	change := r.change
	if o.DryRun {
		change = r.with
	}
	err = change(ctx, func(g *opened) error {
		db, err := r.all.objects(g)
		if err != nil {
			return err
		}
		what := o.repack()
		mark := markOf(g.dir)
		due, err := searchDue(mark, now, o)
		if err != nil {
			return err
		}
		if due {
			m.Searched = true
			what.Prune = &store.Prune{
				Grace: o.Grace, Tips: func() ([]plumbing.Hash, error) { return r.tips(g) },
				Alone: func(ctx context.Context, f func() error) error { return r.all.alone(ctx, g, o.idle(ctx, f)) },
			}
		}
		if m.Maintained, err = db.Maintain(ctx, what); err != nil {
			return err
		}
		if m.Refs, err = g.refs.Pack(refs.Packing{More: o.PackRefs, Hidden: hiddenRefs, DryRun: o.DryRun, Peel: func(h plumbing.Hash) (plumbing.Hash, error) {
			end, _, err := object.Peel(db, h)
			if end == h || errors.Is(err, store.ErrNotFound) {
				end, err = plumbing.ZeroHash, nil // not a tag, or a broken ref
			}
			return end, err
		}}); err != nil {
			return err
		}
		if m.Searched && !o.DryRun {
			if err := touch(mark, now); err != nil {
				return err
			}
		}
		if m.Submodules, err = r.maintainSubmodules(ctx, g, db, o, now); err != nil || r.repo != project.Code {
			return err
		}
		recipes, err := r.maintainRecipes(ctx, g, o, now)
		m.Submodules.Add(recipes)
		return err
	})
	m.Took = r.all.now().Sub(now)
	return m, err
}

// hiddenRefs stay loose: every deployment creates and deletes some.
const hiddenRefs = "refs/corpus/"

// idle returns f with a preceding call of o.Idle, whose error prevents it.
func (o Maintenance) idle(ctx context.Context, f func() error) func() error {
	if o.Idle == nil {
		return f
	}
	return func() error {
		if err := o.Idle(ctx); err != nil {
			return err
		}
		return f()
	}
}

// repack returns the configuration for every repository, including those of submodules; it prunes nothing.
func (o Maintenance) repack() store.Repack {
	return store.Repack{ID: "maintenance", Packs: o.Packs, Loose: o.Loose, All: o.All, DryRun: o.DryRun, Pause: o.Pause}
}

// search determines when unneeded objects are searched for in a repository of a submodule.
func (o Maintenance) search(now time.Time) func(dir string, done bool) (bool, error) {
	return func(dir string, done bool) (bool, error) {
		if done {
			return true, touch(markOf(dir), now)
		}
		return searchDue(markOf(dir), now, o)
	}
}

// maintainRecipes is Maintain for the repositories of recipes from elsewhere: KeepRecipes determines which commits are kept.
func (r *Repository) maintainRecipes(ctx context.Context, g *opened, o Maintenance, now time.Time) (submodule.Maintained, error) {
	defer r.receiving(recipeRepos)()
	m, err := submodule.Maintain(ctx, r.recipesDir(), submodule.Upkeep{
		Repack: o.repack(), Grace: o.Grace, Now: r.all.Now, Search: o.search(now),
		Alone: func(ctx context.Context, f func() error) error { return r.all.alone(ctx, g, o.idle(ctx, f)) },
	})
	if err != nil {
		err = fmt.Errorf("recipes: %w", err)
	}
	return m, err
}

// maintainSubmodules is Maintain for the repositories of a repository's submodules. A user of one of them also uses g.
func (r *Repository) maintainSubmodules(ctx context.Context, g *opened, db *store.DB, o Maintenance, now time.Time) (submodule.Maintained, error) {
	defer r.receiving(r.repo)()
	dir, _ := r.modulesDir()
	walked := map[plumbing.Hash]bool{}
	m, err := submodule.Maintain(ctx, dir, submodule.Upkeep{
		Repack: o.repack(), Grace: o.Grace, Now: r.all.Now,
		Search: o.search(now),
		Needed: func(ctx context.Context, keep *submodule.Needs) error {
			list, err := r.tips(g)
			if err != nil {
				return err
			}
			for _, h := range list {
				if walked[h] {
					continue
				}
				walked[h] = true
				if o.Pause != nil {
					if err := o.Pause(ctx); err != nil {
						return err
					}
				}
				id, t, err := object.Peel(db, h)
				if errors.Is(err, store.ErrNotFound) || err == nil && t != plumbing.CommitObject {
					continue
				}
				if err != nil {
					return err
				}
				if err := keep.Add(db, id); err != nil {
					return err
				}
			}
			return ctx.Err()
		},
		Alone: func(ctx context.Context, f func() error) error {
			return r.all.alone(ctx, g, o.idle(ctx, func() error {
				list, err := r.tips(g)
				if err != nil {
					return err
				}
				for _, h := range list {
					if !walked[h] {
						return fault.New(fault.Busy, "", "refs of %s.git of %s were added or moved meanwhile; nothing was removed from its submodules", r.repo, r.name)
					}
				}
				return f()
			}))
		},
	})
	if err != nil {
		err = fmt.Errorf("submodules: %w", err)
	}
	return m, err
}

// BrokenRef is a ref that can't be read, or whose objects are incomplete.
type BrokenRef struct {
	Name string
	// Err names the object that is missing or of the wrong type; it matches refs.ErrCorrupt if the ref itself can't be read.
	Err error
}

// BrokenRefs lists the refs of the repository at dir, hidden ones included, that cannot be read or whose objects are incomplete. It reads all of history once, but no contents
// of files. It changes nothing, and may run at the same time as the process that owns the repository.
func BrokenRefs(ctx context.Context, dir string) (out []BrokenRef, err error) {
	db, err := store.Open(dir, store.Options{KeepQuarantine: func(string) bool { return true }})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	list, broken, err := (&refs.Store{Dir: dir}).ListReadable("refs/")
	if err != nil {
		return nil, err
	}
	if _, err := (&refs.Store{Dir: dir}).Head(); errors.Is(err, refs.ErrCorrupt) {
		out = append(out, BrokenRef{"HEAD", err})
	}
	for _, b := range broken {
		out = append(out, BrokenRef{b.Name, b.Err})
	}
	var tips []plumbing.Hash
	for _, ref := range list {
		tips = append(tips, ref.Hash)
	}
	if err := store.Connected(ctx, db, store.Connect{Tips: tips}); err == nil || ctx.Err() != nil {
		return out, ctx.Err()
	}
	// Find out which ones: what an intact ref reaches is not read again for the next.
	var whole []plumbing.Hash
	for _, ref := range list {
		err := store.Connected(ctx, db, store.Connect{Tips: []plumbing.Hash{ref.Hash}, Refs: whole})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			out = append(out, BrokenRef{ref.Name, err})
		default:
			whole = append(whole, ref.Hash)
		}
	}
	return out, nil
}

// tips returns what refs, a detached HEAD, and the working copy refer to: in dev the working copy may be a failed tree that is on no branch.
func (r *Repository) tips(g *opened) ([]plumbing.Hash, error) {
	list, err := g.refs.List("refs/")
	if err != nil {
		return nil, err
	}
	out := make([]plumbing.Hash, 0, len(list)+2)
	for _, ref := range list {
		out = append(out, ref.Hash)
	}
	head, err := g.refs.Get("HEAD")
	if err == nil && !head.IsZero() {
		out = append(out, head)
	}
	live := r.all.Root.Project(string(r.name)).Live()
	if r.repo == project.PillarRepo {
		live = r.all.Root.Project(string(r.name)).Pillar()
	}
	if h := liveHead(live); !h.IsZero() {
		out = append(out, h)
	}
	return out, err
}

func markOf(dir string) string { return filepath.Join(dir, "objects", "info", prunedMark) }

// searchDue reports whether to search for objects that nothing refers to. For a repository that was never searched the interval starts now.
func searchDue(mark string, now time.Time, o Maintenance) (bool, error) {
	if o.Grace <= 0 || o.Every == 0 {
		return o.Grace > 0, nil
	}
	st, err := os.Stat(mark)
	if errors.Is(err, fs.ErrNotExist) {
		if o.DryRun {
			return false, nil
		}
		return false, touch(mark, now)
	}
	return err == nil && now.Sub(st.ModTime()) >= o.Every, err
}

func touch(name string, t time.Time) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Chtimes(name, t, t))
}

// alone calls f while its caller is the only user of o. Others wait for the milliseconds that f takes.
func (r *Repositories) alone(ctx context.Context, o *opened, f func() error) error {
	for deadline := time.Now().Add(aloneWait); ; {
		r.mu.Lock()
		if o.users == 1 && o.shut == nil {
			o.shut = make(chan struct{})
			r.mu.Unlock()
			defer func() {
				r.mu.Lock()
				close(o.shut)
				o.shut = nil
				r.mu.Unlock()
			}()
			return f()
		}
		r.mu.Unlock()
		if time.Now().After(deadline) {
			return fault.New(fault.Busy, "", "%s.git of %s is in use", o.key.repo, o.key.name).WithHint("a push, a fetch or a deployment is running; try again later")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Due reports, at little cost, whether Maintain has something to do: from the folder of packs, one folder of loose objects, and the time of the last search, of the repository
// and of those of its submodules. It opens no repository. A missing one is not due.
func (r *Repository) Due(o Maintenance) (bool, error) {
	due, err := r.all.due(r.Dir(), o)
	if due || err != nil {
		return due, err
	}
	modules, _ := r.modulesDir()
	dirs, err := submodule.Repositories(modules)
	if err == nil && r.repo == project.Code {
		var recipes []string
		recipes, err = submodule.Repositories(r.recipesDir())
		dirs = append(dirs, recipes...)
	}
	if err != nil {
		return false, err
	}
	for _, dir := range dirs {
		if due, err := r.all.due(dir, o); due || err != nil {
			return due, err
		}
	}
	return false, nil
}

func (r *Repositories) due(dir string, o Maintenance) (bool, error) {
	objects := filepath.Join(dir, "objects")
	list, err := names(filepath.Join(objects, "pack"))
	if err != nil || list == nil {
		return false, err
	}
	n := 0
	for _, f := range list {
		if filepath.Ext(f) == ".pack" {
			n++
		}
	}
	if n > o.Packs {
		return true, nil
	}
	// One of the 256 folders is a sample for all, as in git gc --auto.
	list, err = names(filepath.Join(objects, "17"))
	if err != nil || len(list)*256 > o.Loose {
		return err == nil, err
	}
	return searchDue(markOf(dir), r.now(), o)
}

func names(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func (r *Repositories) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}
