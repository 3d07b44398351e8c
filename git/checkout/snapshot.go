package checkout

import (
	"slices"
	"strings"

	"corpus-git/git/attributes"
	"corpus-git/git/index"
	"corpus-git/git/object"
	"corpus-git/internal/vfs"
)

// snapshotFile is what a walk has seen of one name.
type snapshotFile struct {
	path string
	f    vfs.FileFacts
}

// snapshotBatch is how many names are taken together: each path lies somewhere else in memory, and a processor that is asked for many waits for them
// once instead of for each.
const snapshotBatch = 32

// changedSince is statScan without the disk: what a walk has seen stands for each look. The walk went into folders only, so a file that it
// saw has no link on its way. A .gitattributes counts as dirty, so that it is never collapsed.
func changedSince(x *index.Unparsed, seen *vfs.Snapshot, since timestamp, written *index.Stat) []int32 {
	c := comparison{x: x, since: since, racy: written.Mtime()}
	batch := make([]snapshotFile, 0, snapshotBatch)
	seen.Each(func(path string, f vfs.FileFacts) bool {
		if batch = append(batch, snapshotFile{path, f}); len(batch) == snapshotBatch {
			c.all(batch)
			batch = batch[:0]
		}
		return true
	})
	c.all(batch)
	for ; c.next < x.Count(); c.next++ {
		c.dirty = append(c.dirty, int32(c.next))
	}
	slices.Sort(c.dirty)
	return slices.Compact(c.dirty)
}

// comparison goes through an index and what was seen, both in order of their paths.
type comparison struct {
	x     *index.Unparsed
	since timestamp
	// racy is the time from which a file is as new as the index.
	racy uint64
	// next is the first entry that is still to be met.
	next  int
	dirty []int32
	// near is made of what was fetched, or it would not be.
	near byte
}

func (c *comparison) all(batch []snapshotFile) {
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

func (c *comparison) file(s *snapshotFile) {
	for ; c.next < c.x.Count(); c.next++ {
		is := c.x.Path(c.next)
		if is == s.path {
			if !c.x.Unchanged(c.next, &s.f, c.racy) || attributes.IsFile(is) {
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
func (c *comparison) folder(s *snapshotFile) {
	if c.since.after(newTimestamp(s.f.Mtime)) {
		return
	}
	dir := s.path + "/"
	if lo := c.x.Search(dir, 0, c.x.Count()); lo < c.x.Count() && strings.HasPrefix(c.x.Path(lo), dir) {
		c.dirty = append(c.dirty, int32(lo))
	}
}

// newTimestamp is a time given in nanoseconds since 1970, as struct timespec has it: nanoseconds from 0 up.
func newTimestamp(t int64) timestamp {
	s := timestamp{t / 1e9, t % 1e9}
	if s.nsec < 0 {
		s = timestamp{s.sec - 1, s.nsec + 1e9}
	}
	return s
}

// snapshotSlack is how far a file system's clock may be behind the machine's: it ticks, and some keep whole seconds.
const snapshotSlack = 2

// countedAt is the time that the counts of untracked names are of: when the walk that they rely on began, zero for now.
func (p *planner) countedAt() timestamp {
	if !p.fromSnapshot || !p.scanned {
		return timestamp{}
	}
	return timestamp{p.snapshot.Begun.Unix() - snapshotSlack, int64(p.snapshot.Begun.Nanosecond())}
}
