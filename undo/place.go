package undo

import (
	"context"

	"corpus-git/internal/vfs"
)

// Place is a name in a folder that a state opened, to change what is there through that descriptor: vfs.Place is one. What is recorded is what the
// descriptor leads to, so that a link which somebody puts into the path meanwhile cannot lead the log to another place than the state.
type Place interface {
	// Folder opens the folder again, and returns the real path of the place; dir is nil if the place has no folder above it.
	Folder() (dir vfs.Dir, path string, err error)
}

// BeforePlace is Before for an opened path.
func (l *Log) BeforePlace(ctx context.Context, p Place) error {
	return l.opened(ctx, p, recording{content: true})
}

// BeforeAttributes is BeforePlace for a change of owner, mode, times and attributes only: a file's content is not copied.
func (l *Log) BeforeAttributes(ctx context.Context, p Place) error {
	return l.opened(ctx, p, recording{})
}

// BeforePlaceTree is BeforeTree for an opened path.
func (l *Log) BeforePlaceTree(ctx context.Context, p Place) error {
	return l.opened(ctx, p, recording{content: true, tree: true})
}

// BeforePlaceWhole is BeforeWhole for an opened path.
func (l *Log) BeforePlaceWhole(ctx context.Context, p Place) (whole bool, err error) {
	err = l.opened(ctx, p, recording{content: true, whole: &whole})
	return whole, err
}

func (l *Log) opened(ctx context.Context, p Place, what recording) error {
	if l == nil {
		return l.locked(ctx, "", what, nil)
	}
	dir, path, err := p.Folder()
	if err == nil && dir == nil {
		return l.note(ctx, path, what)
	}
	return l.locked(ctx, path, what, func() (vfs.Dir, string, error) { return dir, path, err })
}
