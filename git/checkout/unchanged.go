package checkout

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"corpus-git/git/index"
	"corpus-git/git/object"
)

// statScan lstats every file of a list, in parallel: the cost of finding out that nothing changed. It opens no folder, which would cost
// twice as much, and instead lstats each folder on the way, so that a folder that became a link counts as changed. Swapping a folder for a link
// between the two calls gains an attacker nothing: nothing is read or written because of the result, and the facts must be those of the
// same inode.
//
// It is for one call of look.
type statScan struct {
	root    int
	entries []entry
	// since is the time from which a folder counts as changed.
	since timestamp
	// see receives each file's indexes in entries and facts, and reports whether the file needs no further comparison.
	see func(i int, st *unix.Stat_t) bool
}

// timestamp is a file system's time.
type timestamp struct{ sec, nsec int64 }

func (s timestamp) after(t timestamp) bool { return s.sec > t.sec || s.sec == t.sec && s.nsec > t.nsec }

// scanBatch is how many files a goroutine takes per batch.
const scanBatch = 512

// statAll returns, in order, the indexes of the entries that need a comparison: see reported it, they do not exist, their path leads
// through something other than folders, or they are the first of a changed folder.
func (l *statScan) statAll(ctx context.Context, workers int) ([]int32, error) {
	parts := make([][]int32, (len(l.entries)+scanBatch-1)/scanBatch)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(workers, 1) {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(parts) && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				parts[n] = l.part(n*scanBatch, min((n+1)*scanBatch, len(l.entries)))
			}
		})
	}
	wg.Wait()
	return slices.Concat(parts...), ctx.Err()
}

func (l *statScan) part(lo, hi int) (out []int32) {
	var st unix.Stat_t
	// last is the folder of the previous entry, and lost an element of its path that is not a folder; both with their slash.
	last, lost := "", ""
	for i := lo; i < hi; i++ {
		path := l.entries[i].Path
		touched := false
		if dir := path[:strings.LastIndexByte(path, '/')+1]; dir != last {
			lost, touched = l.folders(dir, index.SharedDir(last, dir), lost)
			last = dir
		}
		if lost != "" || lstatAt(l.root, path, &st) != nil || !l.see(i, &st) || touched {
			out = append(out, int32(i))
		}
	}
	return out
}

// folders checks the folders that dir consists of, except those in its first known bytes, which were checked before.
func (l *statScan) folders(dir string, known int, before string) (lost string, touched bool) {
	if before != "" && strings.HasPrefix(dir, before) {
		return before, false
	}
	var st unix.Stat_t
	for n := known; n < len(dir); {
		n += strings.IndexByte(dir[n:], '/')
		if lstatAt(l.root, dir[:n], &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return dir[:n+1], touched
		}
		sec, nsec := st.Mtim.Unix()
		touched = touched || !l.since.after(timestamp{sec, nsec})
		n++
	}
	return "", touched
}

func lstatAt(dir int, path string, st *unix.Stat_t) error {
	return retry(func() error { return unix.Fstatat(dir, path, st, unix.AT_SYMLINK_NOFOLLOW) })
}

// scan finds what needs no walk: a folder that is equal in both commits, whose files on the disk match the index, and whose names are
// unchanged since its untracked ones were counted.
func (p *planner) scan(root, workers int) error {
	if !p.maySkip() {
		return nil
	}
	if !p.fromSnapshot {
		l := statScan{root: root, entries: p.old, since: p.counted.at, see: func(i int, st *unix.Stat_t) bool { return p.clean(i, st.Mode, index.NewStat(st)) }}
		var err error
		if p.dirty, err = l.statAll(p.ctx, workers); err != nil {
			return err
		}
	}
	p.scanned = true
	for i := range p.new {
		if p.new[i].was == 0 {
			p.fresh = append(p.fresh, int32(i))
		}
	}
	return nil
}

// maySkip reports whether anything can be skipped.
func (p *planner) maySkip() bool {
	return p.counted != nil && p.cut == nil && (p.oldEOL == p.newEOL || !p.oldEOL.Changes() && !p.newEOL.Changes())
}

// clean reports whether an old entry's file matches the index, by its inode facts. Submodules are folders; their content is always
// scanned.
func (p *planner) clean(i int, mode uint32, st index.Stat) bool {
	e := &p.old[i]
	return e.Mode != object.ModeGitlink && object.SameType(e.Mode, mode) && e.Stat == st && !e.Stat.Racy(&p.written) && (e.Mode != object.ModeExecutable || mode&0o100 != 0)
}

// anyIn reports whether a sorted list has a number from lo up to but not including hi.
func anyIn(list []int32, lo, hi int) bool {
	i, _ := slices.BinarySearch(list, int32(lo))
	return i < len(list) && int(list[i]) < hi
}

// skips reports whether there is nothing to do in a folder, of which s are all entries. If no new entry is fresh, each is an old one, so
// that equal numbers mean equal entries.
func (p *planner) skips(s span) bool {
	n := s.oHi - s.oLo
	return p.scanned && n > 0 && n == s.nHi-s.nLo && !anyIn(p.dirty, s.oLo, s.oHi) && !anyIn(p.fresh, s.nLo, s.nHi)
}

// skipsFile is skips for one file in a folder that is walked.
func (p *planner) skipsFile(old, at int) bool {
	o, n := &p.old[old], &p.new[at]
	if !p.scanned || o.Hash != n.Hash || o.Mode != n.Mode || anyIn(p.dirty, old, old+1) {
		return false
	}
	n.CopyStat(&o.Entry)
	return true
}
