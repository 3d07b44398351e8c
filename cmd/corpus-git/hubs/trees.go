package hubs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/receive"
)

// checkouts is the number of projects that are checked out at the same time.
const checkouts = 4

// Repository is a repository of a project; receive.Repository satisfies it.
type Repository interface {
	Exists() (bool, error)
	Deployed(ctx context.Context) (ref string, err error)
	Get(ctx context.Context, ref string) (project.Commit, error)
	Checkout(ctx context.Context, req project.Checkout) (project.CheckoutStats, error)
}

// CheckOut checks out the deployed commits of projects whose trees are at other ones: the trees are not shared by the hubs, and with nodes they contain only what is in git. It comes before recovery,
// which continues or rolls back what the last leader left, from the trees as they were before. The error joins those of single projects; the others are checked out.
func (l *Lead) CheckOut(ctx context.Context, root layout.Root, names []project.Name, open func(project.Name, project.Repo) Repository) error {
	if l == nil {
		return nil
	}
	return checkOutEach(ctx, root, names, open)
}

func checkOutEach(ctx context.Context, root layout.Root, names []project.Name, open func(project.Name, project.Repo) Repository) error {
	var mu sync.Mutex
	var errs []error
	var wait sync.WaitGroup
	slots := make(chan struct{}, checkouts)
	for _, name := range names {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			at := root.Project(name.String())
			for _, x := range []struct {
				repo project.Repo
				dir  string
			}{{project.Code, at.Live()}, {project.PillarRepo, at.Pillar()}} {
				if err := checkOut(ctx, open(name, x.repo), x.dir); err != nil {
					mu.Lock()
					errs = append(errs, fmt.Errorf("check out %s of %s: %w", x.repo, name, err))
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func checkOut(ctx context.Context, repo Repository, dir string) error {
	if there, err := repo.Exists(); err != nil || !there {
		return err
	}
	ref, err := repo.Deployed(ctx)
	if err != nil || ref == "" {
		return err
	}
	commit, err := repo.Get(ctx, ref)
	if err != nil || commit == "" || receive.LiveHead(dir) == commit {
		return err
	}
	_, err = repo.Checkout(ctx, project.Checkout{Commit: commit, Dir: dir})
	return err
}
