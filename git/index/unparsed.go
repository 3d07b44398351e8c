package index

import (
	"crypto/sha1"
	"encoding/binary"
	"sort"
	"unsafe"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/internal/vfs"
)

// Unparsed is an index of version 2 that a Sync wrote, with its entries unparsed.
type Unparsed struct {
	body   []byte
	text   string // the same
	starts []uint32
}

// NewUnparsed returns nil for an index that is not of that form; the caller knows that it is intact.
func NewUnparsed(data []byte) *Unparsed {
	if len(data) < 12+sha1.Size || string(data[:8]) != "DIRC\x00\x00\x00\x02" {
		return nil
	}
	body := data[:len(data)-sha1.Size]
	count := int64(binary.BigEndian.Uint32(body[8:]))
	if count > int64(len(body))/entryFixed {
		return nil
	}
	starts := entryStarts(body, 2, int(count))
	if starts == nil {
		return nil
	}
	return &Unparsed{body: body, text: unsafe.String(unsafe.SliceData(body), len(body)), starts: starts}
}

// Count returns the number of entries.
func (x *Unparsed) Count() int { return len(x.starts) - 1 }

// Path returns the path of an entry.
func (x *Unparsed) Path(i int) string {
	at := x.starts[i] + entryFixed
	return x.text[at:][:binary.BigEndian.Uint16(x.body[at-2:])&flagName]
}

// Search returns the first entry from lo to hi that does not sort before a path, or hi.
func (x *Unparsed) Search(path string, lo, hi int) int {
	return lo + sort.Search(hi-lo, func(i int) bool { return x.Path(lo+i) >= path })
}

// Raw returns the bytes from which entries of this index are copied.
func (x *Unparsed) Raw() []byte { return x.body }

// Tree returns the TREE extension, or nil.
func (x *Unparsed) Tree() *Tree {
	n := x.Count()
	t, err := parseExtensions(x.body[x.starts[n]:], n)
	if err != nil {
		return nil
	}
	return t
}

// Entries reads single entries, by ascending index.
func (x *Unparsed) Entries() *EntryReader {
	return &EntryReader{x: x, run: entryRun{body: x.body, text: x.text, version: 2}}
}

// EntryReader reads entries of a plain index.
type EntryReader struct {
	x   *Unparsed
	run entryRun
}

// Get parses one entry; ok is false if it is damaged or in conflict.
func (r *EntryReader) Get(i int) (e Entry, ok bool) {
	r.run.pos = int(r.x.starts[i])
	e, again, err := r.run.next()
	return e, err == nil && !again
}

// Folder returns one entry that represents those from lo to hi, which are all that is below path (with its slash), with the tree oid.
func (x *Unparsed) Folder(path string, oid plumbing.Hash, lo, hi int) Entry {
	at := x.starts[lo]
	return Entry{Path: path, Mode: object.ModeTree, Hash: oid, at: at, files: uint32(hi - lo), span: x.starts[hi] - at}
}

// Unchanged reports whether a file matches an entry, by comparing the entry's first 40 bytes, its facts and mode (gitformat-index(5)). A
// file changed at racy (Mtime of the index) or later counts as changed, and so does a submodule.
func (x *Unparsed) Unchanged(i int, f *vfs.FileFacts, racy uint64) bool {
	b := x.body[x.starts[i]:][:entryFixed]
	be := binary.BigEndian
	mtime := timePair(f.Mtime)
	mode := be.Uint32(b[24:])
	return be.Uint64(b) == timePair(f.Ctime) && be.Uint64(b[8:]) == mtime && mtime < racy &&
		be.Uint64(b[16:]) == pair(uint32(f.Dev), uint32(f.Ino)) && be.Uint64(b[28:]) == pair(f.UID, f.GID) && be.Uint32(b[36:]) == uint32(f.Size) &&
		object.SameType(mode, f.Mode) && mode != object.ModeGitlink && (mode != object.ModeExecutable || f.Mode&0o100 != 0) && be.Uint16(b[60:])&flagStage == 0
}

// timePair converts nanoseconds since 1970 to the form in an entry.
func timePair(t int64) uint64 {
	sec, nsec := t/1e9, t%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	return pair(uint32(sec), uint32(nsec))
}
