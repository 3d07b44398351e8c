package part

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pack"
	"corpus-git/git/store"
)

// Memory is a reader of objects that were put into it. The zero value is ready for use; it is not for concurrent Puts.
type Memory struct{ objs map[plumbing.Hash]held }

type held struct {
	t    plumbing.ObjectType
	data []byte
}

// Put keeps an object. Its error is always nil.
func (m *Memory) Put(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	if m.objs == nil {
		m.objs = map[plumbing.Hash]held{}
	}
	h := plumbing.ComputeHash(t, data)
	m.objs[h] = held{t, slices.Clone(data)}
	return h, nil
}

// Has implements store.Reader.
func (m *Memory) Has(h plumbing.Hash) (bool, error) {
	_, ok := m.objs[h]
	return ok, nil
}

// Header implements store.Reader.
func (m *Memory) Header(h plumbing.Hash) (plumbing.ObjectType, int64, error) {
	t, data, err := m.Get(h)
	return t, int64(len(data)), err
}

// Get implements store.Reader.
func (m *Memory) Get(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	o, ok := m.objs[h]
	if !ok {
		return 0, nil, fmt.Errorf("%w: %s", store.ErrNotFound, h)
	}
	return o.t, o.data, nil
}

// Stream implements store.Reader.
func (m *Memory) Stream(h plumbing.Hash) (*store.Object, error) {
	t, data, err := m.Get(h)
	if err != nil {
		return nil, err
	}
	return &store.Object{Type: t, Size: int64(len(data)), ReadCloser: io.NopCloser(bytes.NewReader(data))}, nil
}

// Locate implements store.Reader: nothing is in a pack.
func (m *Memory) Locate(plumbing.Hash) (*pack.Pack, int64, bool, error) { return nil, 0, false, nil }
