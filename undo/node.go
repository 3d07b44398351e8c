package undo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"corpus-git/internal/vfs"
)

// The types of what may be at a path.
const (
	absent  = "absent"
	file    = "file"
	folder  = "folder"
	link    = "link"
	special = "special" // a fifo, a socket, a device
)

// Node is what is at a path. The zero value is not one.
type Node struct {
	Type string `json:"type"`
	// Mode is a whole st_mode.
	Mode   uint32      `json:"mode,omitempty"`
	UID    uint32      `json:"uid,omitempty"`
	GID    uint32      `json:"gid,omitempty"`
	Mtime  int64       `json:"mtime_ns,omitempty"`
	Size   int64       `json:"size,omitempty"`
	Ino    uint64      `json:"ino,omitempty"`
	Dev    uint64      `json:"rdev,omitempty"`
	Target text        `json:"target,omitempty"`
	Xattrs []vfs.Xattr `json:"xattrs,omitempty"`
	// Sum is the SHA-256 of a file's content, "" if it was not read.
	Sum string `json:"sha256,omitempty"`
	// Saved is the name of the copy of a file's content in the log's folder, inJournal if it is in Content, "" if there is none.
	Saved   string `json:"saved,omitempty"`
	Content []byte `json:"content,omitempty"`
	// Whole means that everything created in the folder is removed with it.
	Whole bool `json:"whole,omitempty"`
}

// maxSum is the size up to which a file's content is read to be compared; larger ones are compared by inode, size and time.
const maxSum = 16 << 20

// inspect describes what is at a name in a folder. Content is read if sum is set and it is not too large.
func inspect(dir vfs.FS, name string, sum bool) (Node, error) {
	st, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Node{Type: absent}, nil
	}
	if err != nil {
		return Node{}, err
	}
	n := Node{Mode: st.Mode, UID: st.UID, GID: st.GID, Mtime: st.Mtime, Ino: st.Ino}
	switch {
	case st.IsSymlink():
		n.Type = link
		target, err := dir.Readlink(name)
		if err != nil {
			return n, err
		}
		n.Target = text(target)
		return n, nil // nobody sees attributes of a link
	case st.IsRegular():
		n.Type, n.Size = file, st.Size
	case st.IsDir():
		n.Type = folder
	default:
		n.Type, n.Dev = special, st.Rdev
	}
	if n.Xattrs, err = dir.Xattrs(name); err != nil {
		return n, err
	}
	if n.Type == file && sum && n.Size <= maxSum {
		h, err := dir.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			return n, err
		}
		defer h.Close()
		n.Sum, err = sumOf(h)
		return n, err
	}
	return n, nil
}

func sumOf(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sameContent reports whether two nodes have the same type and content. Files whose content was not read count as the
// same if inode, size and time are.
func (n Node) sameContent(o Node) bool {
	if n.Type != o.Type {
		return false
	}
	switch n.Type {
	case file:
		if n.Sum != "" && o.Sum != "" {
			return n.Sum == o.Sum
		}
		return n.Size == o.Size && n.Mtime == o.Mtime && n.Ino == o.Ino
	case link:
		return n.Target == o.Target
	case special:
		return n.Mode&syscall.S_IFMT == o.Mode&syscall.S_IFMT && n.Dev == o.Dev
	}
	return true
}

// sameAttributes reports whether owner, mode and extended attributes are the same. Times are not compared.
func (n Node) sameAttributes(o Node) bool {
	if n.Type == absent || n.Type == link {
		return n.UID == o.UID && n.GID == o.GID
	}
	return n.UID == o.UID && n.GID == o.GID && n.Mode&0o7777 == o.Mode&0o7777 &&
		slices.EqualFunc(n.Xattrs, o.Xattrs, func(a, b vfs.Xattr) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) })
}

func (n Node) same(o Node) bool { return n.sameContent(o) && n.sameAttributes(o) }

// noun returns what a node is called in a summary.
func (n Node) noun() string {
	switch n.Type {
	case folder, link:
		return n.Type
	}
	return file
}
