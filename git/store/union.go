package store

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pack"
)

// Union reads from several readers: an object is the same in all that have it.
type Union []Reader

// in returns the reader that has an object, or ErrNotFound.
func (u Union) in(h plumbing.Hash) (Reader, error) {
	for _, r := range u {
		if ok, err := r.Has(h); ok || err != nil {
			return r, err
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, h)
}

// Has implements Reader.
func (u Union) Has(h plumbing.Hash) (bool, error) {
	_, err := u.in(h)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Header implements Reader.
func (u Union) Header(h plumbing.Hash) (plumbing.ObjectType, int64, error) {
	r, err := u.in(h)
	if err != nil {
		return 0, 0, err
	}
	return r.Header(h)
}

// Get implements Reader.
func (u Union) Get(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	r, err := u.in(h)
	if err != nil {
		return 0, nil, err
	}
	return r.Get(h)
}

// Stream implements Reader.
func (u Union) Stream(h plumbing.Hash) (*Object, error) {
	r, err := u.in(h)
	if err != nil {
		return nil, err
	}
	return r.Stream(h)
}

// Locate implements Reader.
func (u Union) Locate(h plumbing.Hash) (*pack.Pack, int64, bool, error) {
	r, err := u.in(h)
	if errors.Is(err, ErrNotFound) {
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, err
	}
	return r.Locate(h)
}
