package object

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// Reader returns objects by name. The bytes of Get may be shared and must not be changed.
type Reader interface {
	// Header returns type and size.
	Header(plumbing.Hash) (plumbing.ObjectType, int64, error)
	// Get returns the whole object.
	Get(plumbing.Hash) (plumbing.ObjectType, []byte, error)
}

// MaxPeel is the longest chain of tags that is followed.
const MaxPeel = 64

// Peel follows annotated tags from h, and returns the name and type of what they point to. An object that is not a tag is returned as it
// is. A chain longer than MaxPeel is an error.
func Peel(r Reader, h plumbing.Hash) (plumbing.Hash, plumbing.ObjectType, error) {
	for range MaxPeel {
		t, _, err := r.Header(h)
		if err != nil || t != plumbing.TagObject {
			return h, t, err
		}
		_, data, err := r.Get(h)
		if err != nil {
			return h, t, err
		}
		tag, err := ParseTag(h, data)
		if err != nil {
			return h, t, err
		}
		h = tag.Target
	}
	return h, 0, fmt.Errorf("%w: tag %s: more than %d tags of tags", ErrCorrupt, h, MaxPeel)
}

// WrongTypeError reports that an object has another type than the one it is used as.
type WrongTypeError struct {
	Hash      plumbing.Hash
	Got, Want plumbing.ObjectType
}

func (e *WrongTypeError) Error() string {
	return fmt.Sprintf("object %s is a %s, not a %s", e.Hash, e.Got, e.Want)
}

// Get returns the bytes of an object of type want, and a *WrongTypeError if it has another type.
func Get(r Reader, h plumbing.Hash, want plumbing.ObjectType) ([]byte, error) {
	t, data, err := r.Get(h)
	if err != nil {
		return nil, err
	}
	if t != want {
		return nil, &WrongTypeError{h, t, want}
	}
	return data, nil
}

// ReadHead reads the part of commit h that a walk needs.
func ReadHead(r Reader, h plumbing.Hash) (Head, error) {
	data, err := Get(r, h, plumbing.CommitObject)
	if err != nil {
		return Head{}, err
	}
	return ParseHead(h, data)
}

// ReadTag reads the target of tag h.
func ReadTag(r Reader, h plumbing.Hash) (Tag, error) {
	data, err := Get(r, h, plumbing.TagObject)
	if err != nil {
		return Tag{}, err
	}
	return ParseTag(h, data)
}
