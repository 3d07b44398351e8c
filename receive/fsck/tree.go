package fsck

import (
	"bytes"

	"github.com/go-git/go-git/v5/plumbing"
)

// Modes of tree entries; the low bits of a file's are its permissions.
const (
	modeType    = 0o170000
	modeTree    = 0o040000
	modeFile    = 0o100000
	modeSymlink = 0o120000
	modeGitlink = 0o160000
)

// Entry is one line of a tree. Name and Hash point into the tree's bytes.
type Entry struct {
	Mode uint32
	Name []byte
	Hash plumbing.Hash
}

// IsTree and the others look at the type bits of the mode.
func (e *Entry) IsTree() bool { return e.Mode&modeType == modeTree }

// IsSymlink tells a symbolic link.
func (e *Entry) IsSymlink() bool { return e.Mode&modeType == modeSymlink }

// IsGitlink tells a submodule's commit, which is no object of this repository.
func (e *Entry) IsGitlink() bool { return e.Mode&modeType == modeGitlink }

// Type is the type of the object that the entry names.
func (e *Entry) Type() plumbing.ObjectType {
	switch e.Mode & modeType {
	case modeTree:
		return plumbing.TreeObject
	case modeGitlink:
		return plumbing.CommitObject
	default:
		return plumbing.BlobObject
	}
}

// NextEntry takes the first entry off a tree's bytes. It checks that it is decodable, and nothing else; ok is false at
// the end and where it is not, which leaves rest not empty.
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

func tree(data []byte, seen Seen) *Error {
	var prev Entry
	var files [][]byte // entries that are no trees, each a prefix of the next and of what follows
	for first := true; len(data) > 0; first = false {
		e, rest, ok := NextEntry(data)
		if !ok {
			return broken("badTree", "an entry cannot be read, %d bytes before the end", len(data))
		}
		data = rest
		if err := entry(&e, seen); err != nil {
			err.Path = string(e.Name)
			return err
		}
		if !first {
			if c := Compare(&prev, &e); c > 0 {
				return &Error{Rule: "treeNotSorted", Detail: "the entries are not in order", Path: string(e.Name)}
			} else if c == 0 || bytes.Equal(prev.Name, e.Name) {
				return duplicate(&e)
			}
		}
		// A file "a" and a tree "a" are apart in the order where "a-b" stands between them.
		for len(files) > 0 && !bytes.HasPrefix(e.Name, files[len(files)-1]) {
			files = files[:len(files)-1]
		}
		if e.IsTree() {
			for _, f := range files {
				if len(f) == len(e.Name) {
					return duplicate(&e)
				}
			}
		} else {
			files = append(files, e.Name)
		}
		prev = e
		if !e.IsGitlink() {
			seen.link(e.Hash, e.Type())
		}
	}
	return nil
}

func duplicate(e *Entry) *Error {
	return &Error{Rule: "duplicateEntries", Detail: "two entries have one name", Path: string(e.Name)}
}

// Compare orders entries as git does: a tree's name as if it ended in a slash.
func Compare(a, b *Entry) int {
	n := min(len(a.Name), len(b.Name))
	if c := bytes.Compare(a.Name[:n], b.Name[:n]); c != 0 {
		return c
	}
	end := func(e *Entry) int {
		switch {
		case len(e.Name) > n:
			return int(e.Name[n])
		case e.IsTree():
			return '/'
		default:
			return 0
		}
	}
	return end(a) - end(b)
}

func entry(e *Entry, seen Seen) *Error {
	if len(e.Name) == 0 {
		return broken("emptyName", "an entry has no name")
	}
	if bytes.IndexByte(e.Name, '/') >= 0 {
		return broken("fullPathname", "a name holds a slash")
	}
	switch e.Mode & modeType {
	case modeTree, modeFile, modeSymlink, modeGitlink:
	default:
		return broken("badFilemode", "unknown type of file %06o", e.Mode)
	}
	if e.Mode > 0o177777 {
		return broken("badFilemode", "unknown type of file %06o", e.Mode)
	}
	if e.Hash.IsZero() {
		return broken("nullSha1", "an entry names the null object")
	}
	if !suspect(e.Name) {
		return nil
	}
	switch {
	case len(e.Name) == 1 && e.Name[0] == '.':
		return broken("hasDot", "an entry is named \".\"")
	case string(e.Name) == "..":
		return broken("hasDotdot", "an entry is named \"..\"")
	case IsDotGit(e.Name):
		return broken("hasDotgit", "an entry would be, or be taken for, the repository's own .git")
	case IsDotGitmodules(e.Name):
		if e.IsSymlink() {
			return broken("gitmodulesSymlink", ".gitmodules is a symbolic link")
		}
		if e.Type() == plumbing.BlobObject && seen.Modules != nil {
			seen.Modules(e.Hash)
		}
	}
	return nil
}

// suspect is a cheap first look: only such names need the others.
func suspect(name []byte) bool {
	switch c := name[0]; {
	case c == '.' || c == 'g' || c == 'G' || c >= 0x80:
		return true
	}
	return bytes.IndexByte(name, '\\') >= 0
}
