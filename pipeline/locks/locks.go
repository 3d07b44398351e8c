// Package locks provides a mutex for each project.
package locks

import (
	"sync"

	"corpus-git/project"
)

// Projects is a mutex for each project. The zero value is ready.
type Projects struct {
	mu sync.Mutex
	of map[project.Name]*one
}

// one exists while it is held or waited for.
type one struct {
	sync.Mutex
	users int
}

// Lock waits until nobody else holds the lock of a project.
func (l *Projects) Lock(name project.Name) (unlock func()) {
	l.mu.Lock()
	if l.of == nil {
		l.of = map[project.Name]*one{}
	}
	x := l.of[name]
	if x == nil {
		x = &one{}
		l.of[name] = x
	}
	x.users++
	l.mu.Unlock()
	x.Lock()
	return func() {
		x.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if x.users--; x.users == 0 {
			delete(l.of, name)
		}
	}
}
