package store

import (
	"bytes"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// GetCommit reads and parses a commit. The struct has no storer: its methods that walk (Parents, Tree, Files) do not work; its fields do.
func GetCommit(r Reader, h plumbing.Hash) (*object.Commit, error) {
	c := new(object.Commit)
	return c, decode(r, h, plumbing.CommitObject, c)
}

// GetTree reads and parses a tree, with the same reserve.
func GetTree(r Reader, h plumbing.Hash) (*object.Tree, error) {
	t := new(object.Tree)
	return t, decode(r, h, plumbing.TreeObject, t)
}

// GetTag reads and parses an annotated tag, with the same reserve.
func GetTag(r Reader, h plumbing.Hash) (*object.Tag, error) {
	t := new(object.Tag)
	return t, decode(r, h, plumbing.TagObject, t)
}

// maxPeel is the longest chain of tags that is followed.
const maxPeel = 64

// Peel follows tags to what they stand for, and gives its name and type.
func Peel(r Reader, h plumbing.Hash) (plumbing.Hash, plumbing.ObjectType, error) {
	for range maxPeel {
		t, _, err := r.Header(h)
		if err != nil || t != plumbing.TagObject {
			return h, t, err
		}
		tag, err := GetTag(r, h)
		if err != nil {
			return h, t, err
		}
		h = tag.Target
	}
	return h, 0, fmt.Errorf("object %s: more than %d tags of tags", h, maxPeel)
}

// WrongTypeError says that an object is of another type than it is used as.
type WrongTypeError struct {
	Hash      plumbing.Hash
	Got, Want plumbing.ObjectType
}

func (e *WrongTypeError) Error() string {
	return fmt.Sprintf("object %s is a %s, not a %s", e.Hash, e.Got, e.Want)
}

func decode(r Reader, h plumbing.Hash, want plumbing.ObjectType, into interface {
	Decode(plumbing.EncodedObject) error
}) error {
	t, data, err := r.Get(h)
	if err != nil {
		return err
	}
	if t != want {
		return &WrongTypeError{h, t, want}
	}
	if err := into.Decode(encoded{h, t, data}); err != nil {
		return fmt.Errorf("object %s: %w", h, err)
	}
	return nil
}

// encoded is an object in memory as go-git's decoders want it. Unlike plumbing.MemoryObject it knows its name and copies nothing.
type encoded struct {
	h    plumbing.Hash
	t    plumbing.ObjectType
	data []byte
}

func (e encoded) Hash() plumbing.Hash             { return e.h }
func (e encoded) Type() plumbing.ObjectType       { return e.t }
func (e encoded) SetType(plumbing.ObjectType)     {}
func (e encoded) Size() int64                     { return int64(len(e.data)) }
func (e encoded) SetSize(int64)                   {}
func (e encoded) Reader() (io.ReadCloser, error)  { return io.NopCloser(bytes.NewReader(e.data)), nil }
func (e encoded) Writer() (io.WriteCloser, error) { return nil, fmt.Errorf("object is read-only") }
