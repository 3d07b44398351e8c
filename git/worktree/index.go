package worktree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// errIndex marks an index that cannot be used; Sync then compares every file's content instead.
var errIndex = errors.New("index cannot be used")

// stat is what the index keeps of a file's inode, each field cut to 32 bits as gitformat-index(5) says.
type stat struct {
	ctimeSec, ctimeNsec uint32
	mtimeSec, mtimeNsec uint32
	dev, ino            uint32
	uid, gid            uint32
	size                uint32
}

// entry is one tracked path. Paths are relative, with slashes, in byte order.
type entry struct {
	path string
	mode uint32
	oid  plumbing.Hash
	st   stat
	// maybe marks an entry of an interrupted checkout: the file is ours only if it has this content.
	maybe bool
	// attrs marks a .gitattributes, so that lists of them need not look at every path.
	attrs bool
	// was is one more than the entry's place in the index that was read; 0 for one that comes from a tree object.
	was int32
	// at is where the entry lies in that index, if its bytes there are what encode would write; else 0. Whoever changes
	// anything else of the entry sets it to 0.
	at uint32
	// files and span are of a folded folder, of mode object.ModeTree, and 0 for anything else: how many entries, of how many bytes from at on, it stands
	// for. Its path ends in a slash and its oid is its tree. See fold.
	files, span uint32
}

// gitIndex is a parsed index: stage 0 entries, sorted; entries in conflict appear once, with a zero oid.
type gitIndex struct {
	entries []entry
	tree    *cacheTree
	// raw is the file that entry.at is about: what is the same is copied from there.
	raw []byte
	// id is that of the file that write has made.
	id indexID
}

const (
	entryFixed   = 62
	flagExtended = 0x4000
	flagStage    = 0x3000
	flagName     = 0x0fff
)

// sharedDir is the length of the folder, its slash included, that two paths share.
func sharedDir(a, b string) int {
	n := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			n = i + 1
		}
	}
	return n
}

func parseEntry(body []byte, text string, pos int, version uint32, prev string) (e entry, next, stage int, err error) {
	cut := func() (entry, int, int, error) {
		return entry{}, 0, 0, fmt.Errorf("%w: cut at byte %d", errIndex, pos)
	}
	if len(body)-pos < entryFixed {
		return cut()
	}
	b := body[pos:]
	be := binary.BigEndian
	e.st = stat{be.Uint32(b), be.Uint32(b[4:]), be.Uint32(b[8:]), be.Uint32(b[12:]), be.Uint32(b[16:]), be.Uint32(b[20:]), be.Uint32(b[28:]), be.Uint32(b[32:]), be.Uint32(b[36:])}
	e.mode = be.Uint32(b[24:])
	copy(e.oid[:], b[40:60])
	flags := be.Uint16(b[60:])
	stage = int(flags&flagStage) >> 12
	name := pos + entryFixed
	if flags&flagExtended != 0 {
		if version < 3 {
			return e, 0, 0, fmt.Errorf("%w: extended flags in version 2", errIndex)
		}
		name += 2
	}
	if name > len(body) {
		return cut()
	}
	strip := 0
	if version == 4 {
		var ok bool
		if strip, name, ok = indexVarint(body, name); !ok || strip > len(prev) {
			return cut()
		}
	}
	end := bytes.IndexByte(body[name:], 0)
	if end < 0 {
		return cut()
	}
	end += name
	if version == 4 {
		e.path = prev[:len(prev)-strip] + text[name:end]
		next = end + 1
	} else {
		e.path = text[name:end]
		next = pos + (end-pos+8)&^7
	}
	if n := int(flags & flagName); next > len(body) || n != flagName && n != len(e.path) {
		return cut()
	}
	if version != 4 && int(flags) == min(len(e.path), flagName) {
		e.at = uint32(pos)
	}
	return e, next, stage, nil
}

// indexVarint reads the offset encoding of packs, which version 4 uses for the length of the stripped suffix.
func indexVarint(b []byte, pos int) (n, next int, ok bool) {
	for i := range 5 {
		if pos >= len(b) {
			return 0, 0, false
		}
		c := b[pos]
		pos++
		if i > 0 {
			n++
		}
		n = n<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return n, pos, true
		}
	}
	return 0, 0, false
}

// parseExtensions reads what follows count entries.
func (x *gitIndex) parseExtensions(b []byte, count int) error {
	for len(b) > 0 {
		if len(b) < 8 {
			return fmt.Errorf("%w: cut extension", errIndex)
		}
		name, n := string(b[:4]), int64(binary.BigEndian.Uint32(b[4:]))
		if n > int64(len(b)-8) {
			return fmt.Errorf("%w: cut extension %q", errIndex, name)
		}
		data := b[8 : 8+n]
		b = b[8+n:]
		switch {
		case name == "TREE":
			// An unreadable cache of trees is only a lost short cut.
			x.tree = parseCacheTree(data, count)
		case name[0] < 'A' || name[0] > 'Z':
			return fmt.Errorf("%w: extension %q is not known", errIndex, name)
		}
	}
	return nil
}
