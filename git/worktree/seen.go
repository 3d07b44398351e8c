package worktree

import (
	"encoding/binary"
	"slices"
	"sort"
	"strings"
	"unsafe"

	"corpus-git/git/object"
	"corpus-git/internal/vfs"
)

// plainIndex is an index of version 2 that a Sync wrote and of which nothing was parsed yet.
type plainIndex struct {
	body   []byte
	text   string // the same
	starts []uint32
}

// plain gives nil for an index that is not known to be whole and of our making.
func (f *indexFile) plain() *plainIndex {
	if f.memo == nil || len(f.data) < 12+len(f.id.sum) || string(f.data[:8]) != "DIRC\x00\x00\x00\x02" {
		return nil
	}
	body := f.data[:len(f.data)-len(f.id.sum)]
	count := int64(binary.BigEndian.Uint32(body[8:]))
	if count > int64(len(body))/entryFixed {
		return nil
	}
	starts := entryStarts(body, 2, int(count))
	if starts == nil {
		return nil
	}
	return &plainIndex{body: body, text: unsafe.String(unsafe.SliceData(body), len(body)), starts: starts}
}

func (x *plainIndex) count() int { return len(x.starts) - 1 }

// path is that of an entry.
func (x *plainIndex) path(i int) string {
	at := x.starts[i] + entryFixed
	return x.text[at:][:binary.BigEndian.Uint16(x.body[at-2:])&flagName]
}

// from is the first entry from lo up to hi that is not before a path, hi if there is none.
func (x *plainIndex) from(path string, lo, hi int) int {
	return lo + sort.Search(hi-lo, func(i int) bool { return x.path(lo+i) >= path })
}

// seenFile is what a walk has seen of one name.
type seenFile struct {
	path string
	f    vfs.FileFacts
}

// seenAtOnce is how many names are taken together: each path lies somewhere else in memory, and a processor that is asked for many waits for them
// once instead of for each.
const seenAtOnce = 32

// fromSeen is looker.look without the disk: what a walk has seen stands for each look. The walk went into folders only, so a file that it
// saw has no link on its way. A .gitattributes counts as dirty, so that it is never folded.
func (x *plainIndex) fromSeen(seen *vfs.Snapshot, since stamp, written *stat) []int32 {
	c := comparison{x: x, since: since, racy: pair(written.mtimeSec, written.mtimeNsec)}
	batch := make([]seenFile, 0, seenAtOnce)
	seen.Each(func(path string, f vfs.FileFacts) bool {
		if batch = append(batch, seenFile{path, f}); len(batch) == seenAtOnce {
			c.all(batch)
			batch = batch[:0]
		}
		return true
	})
	c.all(batch)
	for ; c.next < x.count(); c.next++ {
		c.dirty = append(c.dirty, int32(c.next))
	}
	slices.Sort(c.dirty)
	return slices.Compact(c.dirty)
}

// comparison goes through an index and what was seen, both in order of their paths.
type comparison struct {
	x     *plainIndex
	since stamp
	// racy is the time from which a file is as new as the index.
	racy uint64
	// next is the first entry that is still to be met.
	next  int
	dirty []int32
	// near is made of what was fetched, or it would not be.
	near byte
}

func (c *comparison) all(batch []seenFile) {
	for i := range batch {
		if p := batch[i].path; p != "" {
			c.near ^= p[len(p)-1]
		}
	}
	for i := range batch {
		if s := &batch[i]; s.f.Mode&object.ModeType == object.ModeTree {
			c.folder(s)
		} else {
			c.file(s)
		}
	}
}

func (c *comparison) file(s *seenFile) {
	for ; c.next < c.x.count(); c.next++ {
		is := c.x.path(c.next)
		if is == s.path {
			if !c.x.clean(c.next, &s.f, c.racy) || isAttributes(is) {
				c.dirty = append(c.dirty, int32(c.next))
			}
			c.next++
			return
		}
		if is > s.path {
			return
		}
		c.dirty = append(c.dirty, int32(c.next)) // not there
	}
}

// folder makes the first file of a folder that was touched dirty.
func (c *comparison) folder(s *seenFile) {
	if c.since.after(newStamp(s.f.Mtime)) {
		return
	}
	dir := s.path + "/"
	if lo := c.x.from(dir, 0, c.x.count()); lo < c.x.count() && strings.HasPrefix(c.x.path(lo), dir) {
		c.dirty = append(c.dirty, int32(lo))
	}
}

func pair(high, low uint32) uint64 { return uint64(high)<<32 | uint64(low) }

// clean is planner.clean from the bytes of an entry, whose first 40 are its facts and mode (gitformat-index(5)); those of racy and after
// are as new as the index.
func (x *plainIndex) clean(i int, f *vfs.FileFacts, racy uint64) bool {
	b := x.body[x.starts[i]:][:entryFixed]
	be := binary.BigEndian
	c, m := newStamp(f.Ctime), newStamp(f.Mtime)
	mtime := pair(uint32(m.sec), uint32(m.nsec))
	mode := be.Uint32(b[24:])
	return be.Uint64(b) == pair(uint32(c.sec), uint32(c.nsec)) && be.Uint64(b[8:]) == mtime && mtime < racy &&
		be.Uint64(b[16:]) == pair(uint32(f.Dev), uint32(f.Ino)) && be.Uint64(b[28:]) == pair(f.UID, f.GID) && be.Uint32(b[36:]) == uint32(f.Size) &&
		sameType(mode, f.Mode) && mode != object.ModeGitlink && (mode != object.ModeExecutable || f.Mode&0o100 != 0) && be.Uint16(b[60:])&flagStage == 0
}

// newStamp is a time given in nanoseconds since 1970, as struct timespec has it: nanoseconds from 0 up.
func newStamp(t int64) stamp {
	s := stamp{t / 1e9, t % 1e9}
	if s.nsec < 0 {
		s = stamp{s.sec - 1, s.nsec + 1e9}
	}
	return s
}

// seenSlack is how far a file system's clock may be behind the machine's: it ticks, and some keep whole seconds.
const seenSlack = 2

// countedAt is the time that the counts of untracked names are of: when the walk that they rely on began, zero for now.
func (p *planner) countedAt() stamp {
	if !p.told || !p.settles {
		return stamp{}
	}
	return stamp{p.seen.Begun.Unix() - seenSlack, int64(p.seen.Begun.Nanosecond())}
}
