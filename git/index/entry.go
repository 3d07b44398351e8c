package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrUnusable marks an index that can't be used; Sync then compares every file's content instead.
var ErrUnusable = errors.New("index cannot be used")

// Entry is one tracked path. Paths are relative, with slashes, in byte order.
type Entry struct {
	Path string
	Mode uint32
	Hash plumbing.Hash
	Stat Stat
	// at is the entry's offset in the index that was read, if write would write the same bytes; otherwise 0.
	at uint32
	// files and span belong to a collapsed folder, of mode object.ModeTree, and are 0 for anything else: how many entries it represents, and
	// how many bytes from at on. Its path ends in a slash and its oid is its tree.
	files, span uint32
}

// SetStat sets inode facts that differ from those that were read.
func (e *Entry) SetStat(st Stat) { e.Stat, e.at = st, 0 }

// CopyStat copies the facts of another entry with the same path, type and content, and the position of its bytes.
func (e *Entry) CopyStat(of *Entry) { e.Stat, e.at = of.Stat, of.at }

// Count returns how many entries of the file an entry represents.
func (e *Entry) Count() int { return max(1, int(e.files)) }

const (
	entryFixed   = 62
	flagExtended = 0x4000
	flagStage    = 0x3000
	flagName     = 0x0fff
)

// SharedDir returns the length of the folder, its slash included, that two paths share.
func SharedDir(a, b string) int {
	n := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			n = i + 1
		}
	}
	return n
}

func parseEntry(body []byte, text string, pos int, version uint32, prev string) (e Entry, next, stage int, err error) {
	cut := func() (Entry, int, int, error) {
		return Entry{}, 0, 0, fmt.Errorf("%w: cut at byte %d", ErrUnusable, pos)
	}
	if len(body)-pos < entryFixed {
		return cut()
	}
	b := body[pos:]
	be := binary.BigEndian
	e.Stat = Stat{be.Uint32(b), be.Uint32(b[4:]), be.Uint32(b[8:]), be.Uint32(b[12:]), be.Uint32(b[16:]), be.Uint32(b[20:]), be.Uint32(b[28:]), be.Uint32(b[32:]), be.Uint32(b[36:])}
	e.Mode = be.Uint32(b[24:])
	copy(e.Hash[:], b[40:60])
	flags := be.Uint16(b[60:])
	stage = int(flags&flagStage) >> 12
	name := pos + entryFixed
	if flags&flagExtended != 0 {
		if version < 3 {
			return e, 0, 0, fmt.Errorf("%w: extended flags in version 2", ErrUnusable)
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
		e.Path = prev[:len(prev)-strip] + text[name:end]
		next = end + 1
	} else {
		e.Path = text[name:end]
		next = pos + (end-pos+8)&^7
	}
	if n := int(flags & flagName); next > len(body) || n != flagName && n != len(e.Path) {
		return cut()
	}
	if version != 4 && int(flags) == min(len(e.Path), flagName) {
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
func parseExtensions(b []byte, count int) (tree *Tree, err error) {
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, fmt.Errorf("%w: cut extension", ErrUnusable)
		}
		name, n := string(b[:4]), int64(binary.BigEndian.Uint32(b[4:]))
		if n > int64(len(b)-8) {
			return nil, fmt.Errorf("%w: cut extension %q", ErrUnusable, name)
		}
		data := b[8 : 8+n]
		b = b[8+n:]
		switch {
		case name == "TREE":
			// An unreadable cache tree is ignored: it only saves work.
			tree = parseCacheTree(data, count)
		case name[0] < 'A' || name[0] > 'Z':
			return nil, fmt.Errorf("%w: extension %q is not known", ErrUnusable, name)
		}
	}
	return tree, nil
}
