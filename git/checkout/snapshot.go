package checkout

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/git/attributes"
	"corpus-git/git/index"
	"corpus-git/git/object"
	"corpus-git/internal/vfs"
)

// snapshotFile is what the snapshot has for one name.
type snapshotFile struct {
	path string
	f    vfs.FileFacts
}

// snapshotBatch is how many names are processed together: each path is elsewhere in memory, and a processor overlaps the cache misses of
// many loads.
const snapshotBatch = 32

// changedSince is statScan with the snapshot in place of lstat. The scan entered only folders, so there is no link in the path of a file in
// it. A .gitattributes counts as dirty, so that it is never collapsed.
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

// comparison merges an index and a snapshot, both in order of their paths.
type comparison struct {
	x     *index.Unparsed
	since timestamp
	// racy is the time from which a file is as new as the index.
	racy uint64
	// next is the first entry that has not been compared yet.
	next  int
	dirty []int32
	// near is computed from the fetched data, so that the compiler keeps the loads.
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
		c.dirty = append(c.dirty, int32(c.next)) // does not exist
	}
}

// folder marks the first file of a changed folder as dirty.
func (c *comparison) folder(s *snapshotFile) {
	if c.since.after(newTimestamp(s.f.Mtime)) {
		return
	}
	dir := s.path + "/"
	if lo := c.x.Search(dir, 0, c.x.Count()); lo < c.x.Count() && strings.HasPrefix(c.x.Path(lo), dir) {
		c.dirty = append(c.dirty, int32(lo))
	}
}

// newTimestamp converts nanoseconds since 1970 to a struct timespec, whose nanoseconds are never negative.
func newTimestamp(t int64) timestamp {
	s := timestamp{t / 1e9, t % 1e9}
	if s.nsec < 0 {
		s = timestamp{s.sec - 1, s.nsec + 1e9}
	}
	return s
}

// secondSlack is how far the time of a file may be behind the machine's clock where exactTimes does not hold: some file systems store whole seconds, or every
// second one, and those of other machines have clocks of their own.
const secondSlack = 2 * time.Second

// countedAt is when the untracked names were counted: when the scan they come from began, zero for now. dir is a folder of the working copy that has just
// been changed.
func (p *planner) countedAt(dir int) timestamp {
	if !p.fromSnapshot || !p.scanned {
		return timestamp{}
	}
	slack := secondSlack
	if exactTimes(dir) {
		slack = vfs.LongestTick
	}
	return newTimestamp(p.snapshot.Begun.Add(-slack).UnixNano())
}

// exactTimes reports whether the file system of a folder is one of this machine that stores the kernel's time with each tick, as the folder's own time shows. A
// whole second, which a tick may be, does not show it.
func exactTimes(dir int) bool {
	var on unix.Statfs_t
	var st unix.Stat_t
	if retry(func() error { return unix.Fstatfs(dir, &on) }) != nil || retry(func() error { return unix.Fstat(dir, &st) }) != nil {
		return false
	}
	switch on.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return st.Mtim.Nsec != 0
	}
	return false
}
