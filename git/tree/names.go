package tree

import (
	"errors"
	"strings"

	"corpus-git/git/fsck"
	"corpus-git/internal/fault"
)

// MaxDepth limits the nesting of folders in a tree. The longest path in Linux (4096 bytes) has fewer.
const MaxDepth = 2048

// maxName is the longest file name that Linux accepts, NAME_MAX.
const maxName = 255

const (
	// DefaultFiles limits a commit's tree if Request.MaxFiles does not: trees that share subtrees name more files in a few kilobytes
	// than fit on a disk.
	DefaultFiles = 1 << 20
	// MaxPath is the longest path that Linux accepts, PATH_MAX without its NUL.
	MaxPath = 4095
)

var errName = errors.New("not a name of a file")

// CheckName reports why a tree entry's name must never reach a file system, or nil: empty, ".", "..", with a slash or
// a NUL in it, longer than 255 bytes, and every spelling of ".git" that some file system treats as ".git":
// any case, NTFS short and stream forms ("git~1", ".git ", ".git...", ".git::$INDEX_ALLOCATION", ".git\\x"), HFS+
// ignorable characters. Source: git-config(1), core.protectNTFS and core.protectHFS.
func CheckName(name string) error {
	if plainName(name) {
		return nil
	}
	switch {
	case name == "", name == ".", name == "..", strings.ContainsAny(name, "/\x00"):
		return fault.New(fault.Refused, "", "tree entry %q: %w", name, errName)
	case len(name) > maxName:
		return fault.New(fault.Refused, "", "tree entry %q…: name of %d bytes, at most %d fit on disk", name[:40], len(name), maxName)
	case fsck.IsDotGit([]byte(name)):
		return fault.New(fault.Refused, "", "tree entry %q is a spelling of .git", name)
	}
	return nil
}

// plainName reports that none of CheckName's rules can apply to a name, which is the case for nearly all.
func plainName(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '.' || name[0]|0x20 == 'g' || name[0] >= 0x80 {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c == '/' || c == '\\' || c == 0 {
			return false
		}
	}
	return true
}

// CheckPath checks every element of a path from an index.
func CheckPath(path string) error {
	for path != "" {
		name, rest, more := strings.Cut(path, "/")
		if err := CheckName(name); err != nil {
			return err
		}
		if more && rest == "" {
			return errName
		}
		path = rest
	}
	return nil
}
