package records

import (
	"context"
	"slices"
	"sync"

	"corpus-git/project"
)

// maxRemembered is the number of projects of which something is remembered.
const maxRemembered = 64

// remembered is what was found out about projects whose final records have not changed since. The zero value is empty; its methods are safe for concurrent use.
type remembered[T any] struct {
	mu      sync.Mutex
	of      map[project.Name]T
	changes uint64 // how often forget was called
}

// forget is called after the final records of a project, or of any for "", may have changed.
func (u *remembered[T]) forget(name project.Name) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changes++
	if name == "" {
		clear(u.of)
	}
	delete(u.of, name)
}

func (u *remembered[T]) get(name project.Name) (of T, changes uint64, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of, ok = u.of[name]
	return of, u.changes, ok
}

// keep keeps what was found, unless forget was called since it was looked for.
func (u *remembered[T]) keep(name project.Name, of T, since uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.changes != since {
		return
	}
	if u.of == nil || len(u.of) >= maxRemembered {
		u.of = map[project.Name]T{}
	}
	u.of[name] = of
}

// changed is called after the final records of a project, or of any for "", may have changed.
func (r *Store) changed(name project.Name) {
	r.usual.forget(name)
	r.live.forget(name)
}

// Live returns the newest records of the projects that went live. That of a single one is remembered until a final record is written or removed; the caller changes none of its values.
func (r *Store) Live(ctx context.Context, names []project.Name) ([]project.Record, error) {
	if len(names) != 1 {
		return r.each(ctx, whereLive, names)
	}
	list, since, ok := r.live.get(names[0])
	if ok {
		return slices.Clone(list), nil
	}
	list, err := r.each(ctx, whereLive, names)
	if err == nil {
		r.live.keep(names[0], list, since)
	}
	return slices.Clone(list), err
}
