package worktree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// errIndex marks an index that cannot be used; Sync then compares every file's content instead.
var errIndex = errors.New("index cannot be used")

// Modes of tree and index entries.
const (
	modeFile    uint32 = 0o100644
	modeExec    uint32 = 0o100755
	modeSymlink uint32 = 0o120000
	modeDir     uint32 = 0o040000
	modeGitlink uint32 = 0o160000
	modeType    uint32 = 0o170000
)

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
}

// cacheTree is a node of the index's TREE extension: count entries below it make up the tree oid; count -1 means unknown.
type cacheTree struct {
	name  string
	count int
	oid   plumbing.Hash
	subs  []*cacheTree
}

func (c *cacheTree) sub(name string) *cacheTree {
	if c == nil {
		return nil
	}
	for _, s := range c.subs {
		if s.name == name {
			return s
		}
	}
	return nil
}

// gitIndex is a parsed index: stage 0 entries, sorted; entries in conflict appear once, with a zero oid.
type gitIndex struct {
	entries []entry
	tree    *cacheTree
	// raw is the file that entry.at is about: what is the same is copied from there.
	raw []byte
	// sum is the file's checksum.
	sum plumbing.Hash
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
			if root, rest, ok := parseCacheTree(data, 0); ok && len(rest) == 0 && root.fits(count) {
				x.tree = root
			}
		case name[0] < 'A' || name[0] > 'Z':
			return fmt.Errorf("%w: extension %q is not known", errIndex, name)
		}
	}
	return nil
}

func parseCacheTree(b []byte, depth int) (*cacheTree, []byte, bool) {
	nul := bytes.IndexByte(b, 0)
	if nul < 0 || depth > maxDepth {
		return nil, nil, false
	}
	c := &cacheTree{name: string(b[:nul])}
	b = b[nul+1:]
	lf := bytes.IndexByte(b, '\n')
	if lf < 0 {
		return nil, nil, false
	}
	first, second, ok := strings.Cut(string(b[:lf]), " ")
	subs := 0
	if ok {
		var e1, e2 error
		c.count, e1 = strconv.Atoi(first)
		subs, e2 = strconv.Atoi(second)
		ok = e1 == nil && e2 == nil && c.count >= -1 && subs >= 0 && subs <= len(b)
	}
	if !ok {
		return nil, nil, false
	}
	b = b[lf+1:]
	if c.count >= 0 {
		if len(b) < len(c.oid) {
			return nil, nil, false
		}
		copy(c.oid[:], b)
		b = b[len(c.oid):]
	}
	for range subs {
		var s *cacheTree
		if s, b, ok = parseCacheTree(b, depth+1); !ok {
			return nil, nil, false
		}
		c.subs = append(c.subs, s)
	}
	return c, b, true
}

// fits tells whether the counts of the nodes can be those of an index of n entries.
func (c *cacheTree) fits(n int) bool {
	if c.count > n {
		return false
	}
	for _, s := range c.subs {
		if !s.fits(n) {
			return false
		}
	}
	return true
}

// room is what the extension takes at most: with its name and length, and with counts of any size.
func (c *cacheTree) room() int {
	if c == nil {
		return 8
	}
	n := len(c.name) + 1 + 2*len("-2147483648 ") + len(c.oid) + 8
	for _, s := range c.subs {
		n += s.room()
	}
	return n
}

func (c *cacheTree) append(b []byte) []byte {
	b = append(b, c.name...)
	b = append(b, 0)
	b = strconv.AppendInt(b, int64(c.count), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(c.subs)), 10)
	b = append(b, '\n')
	if c.count >= 0 {
		b = append(b, c.oid[:]...)
	}
	// git looks subtrees up by length, then bytes.
	subs := append([]*cacheTree(nil), c.subs...)
	sort.Slice(subs, func(i, j int) bool {
		if len(subs[i].name) != len(subs[j].name) {
			return len(subs[i].name) < len(subs[j].name)
		}
		return subs[i].name < subs[j].name
	})
	for _, s := range subs {
		b = s.append(b)
	}
	return b
}
