package receive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pack"
	"corpus-git/git/part"
	"corpus-git/git/store"
	"corpus-git/git/upload"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/receive/submodule"
)

// recipeRepos names the repositories of a project's recipes among its repositories.
const recipeRepos project.Repo = "recipes"

// RecipeOf names a commit whose recipe another machine is to get.
type RecipeOf struct {
	// Project is the project of this server that has the commit; "" means that it came from a URL, or in a bundle.
	Project project.Name
	Commit  project.Commit
	// Part: the commit came in a bundle, and has the recipe only.
	Part bool
}

// RecipeParts returns, for each of the commits, the one with the part of its files that its recipe needs: what other machines get. It stores nothing. A
// commit that is not here is fault.Refused.
func (r *Repository) RecipeParts(ctx context.Context, list []RecipeOf) (parts []project.Commit, err error) {
	err = r.withRecipes(ctx, list, func(s *recipeSet) error {
		for _, of := range list {
			h, err := s.part(ctx, of)
			if err != nil {
				return err
			}
			parts = append(parts, commitOf(h))
		}
		return nil
	})
	return parts, err
}

// WriteRecipes writes a pack of the parts (see RecipeParts) of commits want, without history, to a machine that has taken the parts have: what is in
// those is omitted, if they are parts of commits in known. It returns the number of objects.
func (r *Repository) WriteRecipes(ctx context.Context, w io.Writer, want, known []RecipeOf, have []project.Commit) (objects int, err error) {
	err = r.withRecipes(ctx, slices.Concat(want, known), func(s *recipeSet) error {
		var wants, haves []plumbing.Hash
		for _, of := range want {
			h, err := s.part(ctx, of)
			if err != nil {
				return err
			}
			if !slices.Contains(wants, h) {
				wants = append(wants, h)
			}
		}
		for _, of := range known {
			h, err := s.part(ctx, of)
			if err == nil && slices.Contains(have, commitOf(h)) && !slices.Contains(haves, h) {
				haves = append(haves, h) // one that is not here any more saves nothing
			}
		}
		objects, err = upload.Snapshots(ctx, s.all, wants, haves, w)
		return err
	})
	return objects, err
}

// recipeSet is where recipes are read from.
type recipeSet struct {
	all store.Union
	// of are the repositories of the code of projects, own those of recipes by the commits that they have.
	of   map[project.Name]store.Reader
	own  map[project.Commit]store.Reader
	made *part.Memory
}

// part returns the commit with what a recipe needs of a commit, which is made if need be.
func (s *recipeSet) part(ctx context.Context, of RecipeOf) (plumbing.Hash, error) {
	h := hashOf(of.Commit)
	from := s.of[of.Project]
	if of.Project == "" {
		from = s.own[of.Commit]
	}
	gone := fault.New(fault.Refused, "", "the recipe at %s is not stored here any more", of.Commit.Short())
	if of.Project != "" {
		gone = fault.New(fault.Refused, "", "the recipe of %s at %s is not on this server any more", of.Project, of.Commit.Short())
	}
	if from == nil {
		return h, gone
	}
	if of.Part {
		return h, nil
	}
	share, err := part.Needed(ctx, from, h, layout.SaltDir)
	if errors.Is(err, store.ErrNotFound) {
		return h, errors.Join(gone, err)
	}
	if err != nil {
		return h, err
	}
	return part.Make(from, h, share, s.made.Put)
}

// withRecipes calls f with the repositories that have the commits, as far as they are here.
func (r *Repository) withRecipes(ctx context.Context, list []RecipeOf, f func(*recipeSet) error) error {
	return r.with(ctx, func(*opened) (err error) { // removing objects waits until this use ends
		dir, err := filepath.Abs(r.recipesDir())
		if err != nil {
			return err
		}
		elsewhere := submodule.NewFinder(ctx, dir)
		defer func() { err = errors.Join(err, elsewhere.Close()) }()
		s := &recipeSet{of: map[project.Name]store.Reader{}, own: map[project.Commit]store.Reader{}, made: &part.Memory{}}
		s.all = store.Union{s.made}
		for _, of := range list {
			switch {
			case of.Project == "" && s.own[of.Commit] == nil:
				objs, err := elsewhere.Find(hashOf(of.Commit))
				if err != nil {
					return err
				}
				if objs == nil {
					continue
				}
				s.own[of.Commit] = objs
				if !slices.Contains(s.all, objs) {
					s.all = append(s.all, objs)
				}
			case of.Project != "" && s.of[of.Project] == nil:
				from := r.all.Open(of.Project, project.Code)
				if ok, err := from.Exists(); err != nil {
					return err
				} else if !ok {
					continue
				}
				o, err := from.acquire()
				if err != nil {
					return err
				}
				defer r.all.release(o)
				db, err := r.all.objects(o)
				if err != nil {
					return err
				}
				s.of[of.Project], s.all = db, append(s.all, db)
			}
		}
		return f(s)
	})
}

// TakenRecipes lists the parts of recipes that TakeRecipes has stored. It needs no repository.
func (r *Repository) TakenRecipes() ([]project.Commit, error) {
	_, came, err := submodule.Stored(r.recipesDir())
	return commitsOf(came), err
}

// TakeRecipes stores a pack of the parts brought, nil for none, and calls record when all of the parts named, which have names for people, are stored: KeepRecipes releases none of them
// between, if record records that they are needed. A part that is neither stored nor brought is fault.Refused, and nothing of the pack is kept then, nor if it is damaged. It
// is durable on return, as record is.
func (r *Repository) TakeRecipes(ctx context.Context, in io.Reader, limits pack.Limits, named map[project.Commit]string, brought []project.Commit, complete, record func() error) error {
	defer r.receiving(recipeRepos)() // before the repository is used: maintenance has it when it waits for this
	return r.change(ctx, func(*opened) error {
		dir, err := filepath.Abs(r.recipesDir())
		if err != nil {
			return err
		}
		finish := func(publish func() error) error {
			defer r.HoldRecipes()()
			for c, name := range named {
				if slices.Contains(brought, c) {
					continue
				}
				if ok, err := submodule.Has(dir, hashOf(c)); err != nil {
					return err
				} else if !ok {
					return fault.New(fault.Refused, "", "the bundle does not bring the recipe %s, and it is not stored here", name)
				}
			}
			if err := publish(); err != nil {
				return err
			}
			return record()
		}
		if in == nil {
			return finish(func() error { return nil })
		}
		return submodule.Receive(ctx, dir, 0o700, submodule.Incoming{
			What: "recipes", Commits: hashesOf(brought), Pack: in, Limits: limits, Complete: complete, Publish: finish, ID: string(project.NewID()), Now: r.all.Now,
		})
	})
}

// TakenRecipe returns the files of a part that TakeRecipes stored; fault.Refused if it is not there. It fetches nothing. The file system is valid until ctx ends.
func (r *Repository) TakenRecipe(ctx context.Context, c project.Commit) (fs.FS, error) {
	s, _, err := r.resolver(r.recipesDir(), 0o700, project.SubmoduleRequest{Offline: true})
	if err != nil {
		return nil, err
	}
	o, err := r.acquire() // removing objects waits until this use ends
	if err != nil {
		return nil, err
	}
	objs, end, err := s.Stored(ctx, hashOf(c))
	if err != nil {
		r.all.release(o)
		return nil, err
	}
	return r.recipeFiles(ctx, o, objs, end, c)
}

// HoldRecipes keeps others from recording which recipes the project's releases need, and from releasing any, until release is called.
func (r *Repository) HoldRecipes() (release func()) {
	return r.all.lock(&r.all.holding, key{r.name, recipeRepos})
}

// lock locks the mutex of a repository in a table, which is made if need be.
func (r *Repositories) lock(table *map[key]*sync.Mutex, k key) (unlock func()) {
	r.mu.Lock()
	if *table == nil {
		*table = map[key]*sync.Mutex{}
	}
	m := (*table)[k]
	if m == nil {
		m = &sync.Mutex{}
		(*table)[k] = m
	}
	r.mu.Unlock()
	m.Lock()
	return m.Unlock
}
