package receive

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pack"
	"corpus-git/project"
	"corpus-git/receive/submodule"
)

// StoredSubmodules lists the commits of submodules that are stored, and those of them that another machine sent. It needs no repository.
func (r *Repository) StoredSubmodules() (all, came []project.Commit, err error) {
	dir, _ := r.modulesDir()
	stored, sent, err := submodule.Stored(dir)
	return commitsOf(stored), commitsOf(sent), err
}

// SubmoduleCommits lists the commits of a commit's submodules that are stored, including nested ones, each once.
func (r *Repository) SubmoduleCommits(ctx context.Context, of project.Commit) (out []project.Commit, err error) {
	err = r.withSubmodules(ctx, of, func(s *submodule.Set) error {
		out = commitsOf(s.Commits())
		return nil
	})
	return out, err
}

// WriteSubmodules writes a pack of commits want of the submodules of a commit: see submodule.Set.WritePack.
func (r *Repository) WriteSubmodules(ctx context.Context, w io.Writer, of project.Commit, want, have []project.Commit) (objects int, err error) {
	err = r.withSubmodules(ctx, of, func(s *submodule.Set) (err error) {
		objects, err = s.WritePack(ctx, w, hashesOf(want), hashesOf(have))
		return err
	})
	return objects, err
}

// withSubmodules calls f with the submodules of a commit that are stored.
func (r *Repository) withSubmodules(ctx context.Context, of project.Commit, f func(*submodule.Set) error) error {
	return r.with(ctx, func(o *opened) error { // removing objects waits until this use ends
		db, err := r.all.objects(o)
		if err != nil {
			return err
		}
		id, _, err := peelCommit(db, hashOf(of))
		if err != nil {
			return err
		}
		set, err := r.modules(ctx, db, id)
		if err != nil {
			return err
		}
		return errors.Join(f(set), set.Close())
	})
}

// TakeSubmodules stores a pack of the commits of submodules, and nothing else, from another machine: see submodule.Receive. It is durable on return.
func (r *Repository) TakeSubmodules(ctx context.Context, in io.Reader, limits pack.Limits, commits []project.Commit, complete func() error) error {
	defer r.receiving(r.repo)() // before the repository is used: maintenance has it when it waits for this
	return r.change(ctx, func(*opened) error {
		dir, mode := r.modulesDir()
		dir, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		return submodule.Receive(ctx, dir, mode, submodule.Incoming{
			What: "submodules", Commits: hashesOf(commits), Pack: in, Limits: limits, Complete: complete, ID: string(project.NewID()), Now: r.all.Now,
		})
	})
}

// receiving waits until no commits of submodules, or recipes, are being taken, and their repositories not maintained, and keeps both from beginning until it is unlocked.
func (r *Repository) receiving(what project.Repo) (unlock func()) {
	return r.all.lock(&r.all.receiving, key{r.name, what})
}

func hashesOf(list []project.Commit) []plumbing.Hash {
	out := make([]plumbing.Hash, len(list))
	for i, c := range list {
		out[i] = hashOf(c)
	}
	return out
}

func commitsOf(list []plumbing.Hash) []project.Commit {
	out := make([]project.Commit, len(list))
	for i, h := range list {
		out[i] = commitOf(h)
	}
	return out
}
