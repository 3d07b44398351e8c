package fsck

import (
	"bytes"
	"fmt"
	"math"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// Error reports that an object breaks a rule.
type Error struct {
	Type plumbing.ObjectType
	Hash plumbing.Hash
	// Rule is git's name of the rule, for example "hasDotgit".
	Rule string
	// Detail explains it for this object.
	Detail string
	// Path is the object's path in the tree of a pushed commit, or the entry's name in the tree, if known.
	Path string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s: %s: %s", e.Type, e.Hash, e.Rule, e.Detail)
	if e.Path != "" {
		s += fmt.Sprintf(" (%q)", e.Path)
	}
	return s
}

// Callbacks receives the objects that an object refers to. A nil function is not called.
type Callbacks struct {
	// Link is called for each object that this one needs: a commit's tree and parents, a tag's object, a tree's entries except gitlinks.
	Link func(plumbing.Hash, plumbing.ObjectType)
	// Modules is called for each blob that is a .gitmodules in some tree; the caller checks it with Modules.
	Modules func(plumbing.Hash)
}

// Check checks one object. Blobs are always valid. The error is an *Error.
func Check(t plumbing.ObjectType, h plumbing.Hash, data []byte, on Callbacks) error {
	var err *Error
	switch t {
	case plumbing.CommitObject:
		err = commit(data, on)
	case plumbing.TreeObject:
		_, err = tree(data, nil, nil, nil, on)
	case plumbing.TagObject:
		err = tag(data, on)
	}
	return named(err, t, h)
}

// Bounds are the offsets at which the entries of a tree begin.
type Bounds []uint32

// TreeBounds returns the bounds of a valid tree.
func TreeBounds(data []byte) Bounds {
	var b Bounds
	for rest := data; len(rest) > 0 && len(data) <= math.MaxInt32; {
		at := len(data) - len(rest)
		var ok bool
		if _, rest, ok = object.NextEntry(rest); !ok {
			return nil
		}
		b = append(b, uint32(at))
	}
	return b
}

// CheckTree is Check for a tree that is similar to another one, base, which passed Check with the same Seen, and whose bounds are given:
// what they have in common is neither checked nor linked again. It returns the bounds of the tree.
func CheckTree(h plumbing.Hash, data, base []byte, bounds Bounds, on Callbacks) (Bounds, error) {
	if len(data) > math.MaxInt32 || len(base) > math.MaxInt32 {
		return nil, Check(plumbing.TreeObject, h, data, on)
	}
	out := make(Bounds, 0, len(bounds)+4)
	out, err := tree(data, base, bounds, out, on)
	return out, named(err, plumbing.TreeObject, h)
}

func named(err *Error, t plumbing.ObjectType, h plumbing.Hash) error {
	if err == nil {
		return nil
	}
	err.Type, err.Hash = t, h
	return err
}

func broken(rule, format string, args ...any) *Error {
	return &Error{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// header checks that the headers end, and contain no NUL.
func header(data []byte) *Error {
	end := bytes.Index(data, []byte("\n\n"))
	if end < 0 {
		// A commit or tag without a message may end with its last header.
		if len(data) == 0 || data[len(data)-1] != '\n' {
			return broken("unterminatedHeader", "the headers do not end")
		}
		end = len(data)
	}
	if bytes.IndexByte(data[:end], 0) >= 0 {
		return broken("nulInHeader", "there is a NUL among the headers")
	}
	return nil
}

// field takes a header line "name value". ok is false if the next line has another name.
func field(data *[]byte, name string) (value []byte, ok bool) {
	rest, ok := bytes.CutPrefix(*data, []byte(name+" "))
	if !ok {
		return nil, false
	}
	i := bytes.IndexByte(rest, '\n')
	if i < 0 {
		return nil, false
	}
	*data = rest[i+1:]
	return rest[:i], true
}

func (s Callbacks) link(h plumbing.Hash, t plumbing.ObjectType) {
	if s.Link != nil {
		s.Link(h, t)
	}
}

func commit(data []byte, on Callbacks) *Error {
	if err := header(data); err != nil {
		return err
	}
	v, ok := field(&data, "tree")
	if !ok {
		return broken("missingTree", "the first line names no tree")
	}
	h, ok := object.ParseHash(v)
	if !ok {
		return broken("badTreeSha1", "%.64q is not an object name", v)
	}
	on.link(h, plumbing.TreeObject)
	for {
		v, ok := field(&data, "parent")
		if !ok {
			break
		}
		if h, ok = object.ParseHash(v); !ok {
			return broken("badParentSha1", "%.64q is not an object name", v)
		}
		on.link(h, plumbing.CommitObject)
	}
	if _, ok := field(&data, "author"); !ok {
		return broken("missingAuthor", "no author after tree and parents")
	}
	for ok {
		_, ok = field(&data, "author") // several: found in old conversions
	}
	if _, ok := field(&data, "committer"); !ok {
		return broken("missingCommitter", "no committer after the author")
	}
	return nil
}

func tag(data []byte, on Callbacks) *Error {
	if err := header(data); err != nil {
		return err
	}
	v, ok := field(&data, "object")
	if !ok {
		return broken("missingObject", "the first line names no object")
	}
	h, ok := object.ParseHash(v)
	if !ok {
		return broken("badObjectSha1", "%.64q is not an object name", v)
	}
	if v, ok = field(&data, "type"); !ok {
		return broken("missingTypeEntry", "no type after the object")
	}
	t, err := plumbing.ParseObjectType(string(v))
	if err != nil || t > plumbing.TagObject {
		return broken("badType", "unknown type %.64q", v)
	}
	if _, ok = field(&data, "tag"); !ok {
		return broken("missingTagEntry", "no name after the type")
	}
	on.link(h, t)
	return nil
}
