package worktree

import (
	"slices"

	"corpus-git/project"
)

// fromSeen is looker.look without the disk: what a walk has seen stands for each look. The walk went into folders only, so a file that it
// saw has no link on its way.
func (p *planner) fromSeen() (dirty []int32) {
	next := 0 // the first old entry that is still to be met
	p.seen.Each(func(path string, f project.FileFacts) bool {
		for next < len(p.old) && p.old[next].path < path {
			dirty = append(dirty, int32(next)) // not there
			next++
		}
		switch {
		case f.Mode&modeType == modeDir:
			if p.counted.at.after(newStamp(f.Mtime)) {
				break
			}
			// The first file of a folder that was touched is dirty.
			if lo, hi := under(p.old, path+"/"); lo < hi {
				dirty = append(dirty, int32(lo))
			}
		case next < len(p.old) && p.old[next].path == path && p.clean(next, f.Mode, seenStat(&f)):
			next++
		}
		return true
	})
	for ; next < len(p.old); next++ {
		dirty = append(dirty, int32(next))
	}
	slices.Sort(dirty)
	return slices.Compact(dirty)
}

// startSettling begins with what settle needs of seen, which is about old entries alone, beside what comes before that. wait waits for its
// end, which p.early is then told by, too; it must be called before the caller returns, who may go on with other things than seen.
func (p *planner) startSettling(plain bool) (wait func()) {
	if p.seen == nil || p.counted == nil || !plain {
		return func() {}
	}
	p.early = make(chan struct{})
	go func() {
		defer close(p.early)
		p.earlyDirty = p.fromSeen()
	}()
	return func() { <-p.early }
}

// seenStat is newStat of what a walk has seen.
func seenStat(f *project.FileFacts) stat {
	c, m := newStamp(f.Ctime), newStamp(f.Mtime)
	return stat{
		ctimeSec: uint32(c.sec), ctimeNsec: uint32(c.nsec), mtimeSec: uint32(m.sec), mtimeNsec: uint32(m.nsec),
		dev: uint32(f.Dev), ino: uint32(f.Ino), uid: f.UID, gid: f.GID, size: uint32(f.Size),
	}
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
	if p.seen == nil || !p.settles {
		return stamp{}
	}
	return stamp{p.seen.Begun.Unix() - seenSlack, int64(p.seen.Begun.Nanosecond())}
}
