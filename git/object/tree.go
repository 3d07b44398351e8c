package object

import (
	"bytes"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Entry is one line of a tree. Name points into the tree's bytes.
type Entry struct {
	Mode uint32
	Name []byte
	Hash plumbing.Hash
}

// IsTree reports whether the entry is a folder.
func (e *Entry) IsTree() bool { return e.Mode&ModeType == ModeTree }

// IsSymlink reports whether the entry is a symbolic link.
func (e *Entry) IsSymlink() bool { return e.Mode&ModeType == ModeSymlink }

// IsGitlink reports whether the entry is a submodule's commit, which is not an object of this repository.
func (e *Entry) IsGitlink() bool { return e.Mode&ModeType == ModeGitlink }

// Type returns the type of the object that the entry names.
func (e *Entry) Type() plumbing.ObjectType {
	switch e.Mode & ModeType {
	case ModeTree:
		return plumbing.TreeObject
	case ModeGitlink:
		return plumbing.CommitObject
	default:
		return plumbing.BlobObject
	}
}

// NextEntry parses the first entry of a tree's bytes. It checks only that it can be parsed; ok is false at the end and for an invalid
// entry, which leaves rest not empty.
func NextEntry(data []byte) (e Entry, rest []byte, ok bool) {
	i := 0
	for ; i < len(data) && i < 8 && data[i] != ' '; i++ {
		c := data[i] - '0'
		if c > 7 {
			return e, data, false
		}
		e.Mode = e.Mode<<3 | uint32(c)
	}
	if i == 0 || i >= len(data) || data[i] != ' ' {
		return e, data, false
	}
	n := bytes.IndexByte(data[i+1:], 0)
	if n < 0 || len(data) < i+1+n+1+20 {
		return e, data, false
	}
	e.Name = data[i+1 : i+1+n]
	copy(e.Hash[:], data[i+1+n+1:])
	return e, data[i+1+n+1+20:], true
}

// Compare orders entries as git does: bytes, a tree's name as if it ended in a slash.
func Compare(a, b *Entry) int {
	n := min(len(a.Name), len(b.Name))
	if c := bytes.Compare(a.Name[:n], b.Name[:n]); c != 0 {
		return c
	}
	return after(a.Name, n, a.Mode) - after(b.Name, n, b.Mode)
}

// CompareNames is Compare for names and modes alone.
func CompareNames(a string, aMode uint32, b string, bMode uint32) int {
	n := min(len(a), len(b))
	if c := strings.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	return after(a, n, aMode) - after(b, n, bMode)
}

// after returns the byte at n of a name, or past its end: nothing, or a tree's slash.
func after[T string | []byte](name T, n int, mode uint32) int {
	switch {
	case len(name) > n:
		return int(name[n])
	case mode&ModeType == ModeTree:
		return '/'
	default:
		return 0
	}
}
