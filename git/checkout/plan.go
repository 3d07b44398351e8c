package checkout

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"corpus-git/git/attributes"
	"corpus-git/git/index"
	"corpus-git/git/object"
	"corpus-git/git/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// plan is what a walk of the working copy found to do. Making it writes nothing.
type plan struct {
	writes       []int    // indexes of the new list
	removes      []string // tracked files that the commit does not have
	obstacles    []string // untracked files and links where a folder must be
	emptyFolders []string // folders where a file must be, with only folders and files to be removed in them
	blocked      []string // untracked files in folders where a file must be: Sync is refused
	gone         []string // folders of submodules that the commit does not have
	tempFiles    []string // temporary files of an interrupted checkout

	local       []string // tracked files that were changed on the machine
	kept        []string // those of them that stay changed
	clash       []string // those that differ in the commit, or are not in it, and must not be overwritten
	overwritten []string // untracked files in the way
	refreshed   int      // files that had to be read and are unchanged
	unchanged   int
	untracked   int
	counts      []folderCount // the terms of the sum untracked
}

func (p *plan) add(q *plan) {
	p.writes = append(p.writes, q.writes...)
	p.removes = append(p.removes, q.removes...)
	p.obstacles = append(p.obstacles, q.obstacles...)
	p.emptyFolders = append(p.emptyFolders, q.emptyFolders...)
	p.blocked = append(p.blocked, q.blocked...)
	p.gone = append(p.gone, q.gone...)
	p.tempFiles = append(p.tempFiles, q.tempFiles...)
	p.local = append(p.local, q.local...)
	p.kept = append(p.kept, q.kept...)
	p.clash = append(p.clash, q.clash...)
	p.overwritten = append(p.overwritten, q.overwritten...)
	p.refreshed += q.refreshed
	p.unchanged += q.unchanged
	p.untracked += q.untracked
	p.counts = append(p.counts, q.counts...)
}

// maxTouched is how many written paths are listed one by one.
const maxTouched = 1000

// touched returns the paths that are written, nil if they are too many.
func (p *plan) touched(list []entry) []string {
	if len(p.writes) > maxTouched {
		return nil
	}
	out := make([]string, len(p.writes))
	for i, n := range p.writes {
		out[i] = strings.TrimSuffix(list[n].Path, "/")
	}
	return out
}

// untrackedIn adds the untracked names of a folder.
func (p *plan) untrackedIn(f folderCount) {
	if f.n > 0 {
		p.untracked += f.n
		p.counts = append(p.counts, f)
	}
}

func (p *plan) sort() {
	sort.Ints(p.writes)
	for _, l := range [][]string{p.removes, p.obstacles, p.emptyFolders, p.blocked, p.gone, p.tempFiles, p.local, p.kept, p.clash, p.overwritten} {
		sort.Strings(l)
	}
	slices.SortFunc(p.counts, func(a, b folderCount) int { return strings.Compare(a.dir, b.dir) })
}

// planner compares three lists: the old index, the new commit, and what is on the disk.
type planner struct {
	ctx  context.Context
	objs tree.Objects
	old  []entry
	new  []entry // the st of entries that are clean is filled in
	// written is the old index's own time: a file that is not older may have changed undetected ("racy git").
	written index.Stat
	oldEOL  *attributes.Attributes
	newEOL  *attributes.Attributes
	// cut are the entries, in order, of an interrupted checkout, and cutEOL its attributes.
	cut    []entry
	cutEOL *attributes.Attributes

	// keepLocal is Request.Keep.
	keepLocal bool
	// counted are the untracked names that the last checkout counted; nil if unknown.
	counted *folderCounts
	// seen is a recent scan, nil to read the disk.
	snapshot *vfs.Snapshot
	// fromSnapshot reports that dirty comes from the snapshot, collapsed that old and new were collapsed by collapse.
	fromSnapshot, collapsed bool
	// snapshotDirty are the entries of the whole index that are dirty according to the snapshot.
	snapshotDirty []int32
	// scanned reports that every old entry was examined: dirty are the old ones that must be compared, and fresh the new ones that are not
	// copies of old ones, both in order.
	scanned      bool
	dirty, fresh []int32

	buffers sync.Pool // of *[]byte, for getdents

	sem chan struct{}
	wg  sync.WaitGroup
	mu  sync.Mutex
	out plan
	err error
}

// makePlan walks the working copy at root with up to workers goroutines.
func (p *planner) makePlan(root, workers int) (*plan, error) {
	p.buffers.New = func() any { b := make([]byte, 16<<10); return &b }
	p.sem = make(chan struct{}, max(workers-1, 0))
	if err := p.scan(root, workers); err != nil {
		return nil, err
	}
	var res plan
	err := p.dir(root, "", span{0, len(p.old), 0, len(p.new)}, &res)
	p.wg.Wait()
	p.done(&res, err)
	if p.err != nil {
		return nil, p.err
	}
	p.out.sort()
	return &p.out, nil
}

func (p *planner) done(res *plan, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.add(res)
	if p.err == nil {
		p.err = err
	}
}

// span is a run of entries of the old list and one of the new list.
type span struct{ oLo, oHi, nLo, nHi int }

func (s span) empty() bool { return s.oLo == s.oHi && s.nLo == s.nHi }
func (s span) size() int   { return s.oHi - s.oLo + s.nHi - s.nLo }

// dir plans the folder path (with its slash), open as fd; fd is -1 if there is none. s are all entries below it.
func (p *planner) dir(fd int, path string, s span, res *plan) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	known := 0
	for !s.empty() {
		cur := ""
		switch {
		case s.oLo == s.oHi:
			cur = p.new[s.nLo].Path
		case s.nLo == s.nHi || p.old[s.oLo].Path < p.new[s.nLo].Path:
			cur = p.old[s.oLo].Path
		default:
			cur = p.new[s.nLo].Path
		}
		name := cur[len(path):]
		if i := strings.IndexByte(name, '/'); i >= 0 {
			name = name[:i]
			sub := s
			_, n := under(p.old[s.oLo:s.oHi], cur[:len(path)+i+1])
			sub.oHi = s.oLo + n
			_, n = under(p.new[s.nLo:s.nHi], cur[:len(path)+i+1])
			sub.nHi = s.nLo + n
			s.oLo, s.nLo = sub.oHi, sub.nHi
			found, err := p.sub(fd, name, cur[:len(path)+i+1], sub, res)
			if err != nil {
				return err
			}
			if found {
				known++
			}
			continue
		}
		var old *entry
		at := -1
		if s.oLo < s.oHi && p.old[s.oLo].Path == cur {
			old = &p.old[s.oLo]
			s.oLo++
		}
		if s.nLo < s.nHi && p.new[s.nLo].Path == cur {
			at = s.nLo
			s.nLo++
		}
		if old != nil && at >= 0 && p.skipsFile(s.oLo-1, at) {
			res.unchanged++
			known++
			continue
		}
		found, err := p.file(fd, name, cur, old, at, res)
		if err != nil {
			return rename(err, cur)
		}
		if found {
			known++
		}
	}
	if fd < 0 {
		return nil
	}
	return p.count(fd, path, known, res)
}

// count counts the names in a folder other than the known ones.
func (p *planner) count(fd int, path string, known int, res *plan) error {
	buf := p.buffers.Get().(*[]byte)
	defer p.buffers.Put(buf)
	all := 0
	err := dirents(fd, *buf, func(name string, typ byte) {
		switch {
		case path == "" && name == gitDir:
		case strings.HasPrefix(name, tmpPrefix) && typ != unix.DT_DIR:
			res.tempFiles = append(res.tempFiles, path+name)
		default:
			all++
		}
	})
	res.untrackedIn(folderCount{path, all - known})
	return err
}

// sub plans the subfolder name, in its own goroutine if that is worthwhile. found reports that the name exists and is a folder.
func (p *planner) sub(fd int, name, path string, s span, res *plan) (found bool, err error) {
	if p.skips(s) {
		res.unchanged += files(p.new[s.nLo:s.nHi])
		for _, f := range p.counted.below(path) {
			res.untrackedIn(f)
		}
		return true, nil
	}
	child := -1
	if fd >= 0 {
		child, err = opendir(fd, name)
		switch {
		case err == nil:
		case notDir(err):
			if s.nLo < s.nHi && !p.tracked(strings.TrimSuffix(path, "/")) {
				res.obstacles = append(res.obstacles, strings.TrimSuffix(path, "/"))
				res.overwritten = append(res.overwritten, strings.TrimSuffix(path, "/"))
				found = true
			}
		case errors.Is(err, fs.ErrNotExist):
		default:
			return false, rename(err, path)
		}
	}
	found = found || child >= 0
	if s.size() > 256 {
		select {
		case p.sem <- struct{}{}:
			p.wg.Go(func() {
				var own plan
				err := p.dir(child, path, s, &own)
				closeDir(child)
				<-p.sem
				p.done(&own, err)
			})
			return found, nil
		default:
		}
	}
	err = p.dir(child, path, s, res)
	closeDir(child)
	return found, err
}

func closeDir(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd)
	}
}

// interrupted adds the entries of an interrupted checkout: paths that only it has may be on the disk.
func (p *planner) interrupted(cut []entry, eol *attributes.Attributes) {
	p.cut, p.cutEOL = cut, eol
	merged := make([]entry, 0, len(p.old)+len(cut)/8)
	old := p.old
	for _, e := range cut {
		for len(old) > 0 && old[0].Path < e.Path {
			merged, old = append(merged, old[0]), old[1:]
		}
		if len(old) > 0 && old[0].Path == e.Path {
			continue
		}
		e.Stat, e.maybe = index.Stat{}, true
		merged = append(merged, e)
	}
	p.old = append(merged, old...)
}

// leftovers are paths that only an interrupted checkout has: it may have created their folders.
func (p *planner) leftovers() (out []string) {
	if len(p.cut) == 0 {
		return nil
	}
	for i := range p.old {
		if p.old[i].maybe {
			out = append(out, p.old[i].Path)
		}
	}
	return out
}

func find(list []entry, path string) *entry {
	i := sort.Search(len(list), func(i int) bool { return list[i].Path >= path })
	if i < len(list) && list[i].Path == path {
		return &list[i]
	}
	return nil
}

// tracked reports whether the old index has path as a file.
func (p *planner) tracked(path string) bool {
	e := find(p.old, path)
	return e != nil && !e.maybe
}

// ours reports whether the file path, name in the folder fd, will be removed anyway: a tracked one, or one that an interrupted checkout
// wrote.
func (p *planner) ours(fd int, name, path string) (bool, error) {
	e := find(p.old, path)
	if e == nil || !e.maybe {
		return e != nil, nil
	}
	st, err := lstatat(fd, name)
	if err != nil {
		return false, err
	}
	is, err := p.content(fd, name, path, &st, e, nil)
	return is == isOld, err
}

// file plans one path: old is its old entry or nil, at the index of its new one or -1. found reports that the name exists and has its
// entry's type.
func (p *planner) file(fd int, name, path string, old *entry, at int, res *plan) (found bool, err error) {
	var want *entry
	if at >= 0 {
		want = &p.new[at]
	}
	var st unix.Stat_t
	if fd < 0 {
		err = fs.ErrNotExist
	} else {
		st, err = lstatat(fd, name)
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case err != nil:
		if want != nil {
			// An interrupted checkout may have removed it.
			removed := p.cut != nil && find(p.cut, path) == nil
			if old != nil && !old.maybe && !removed && old.Mode != object.ModeGitlink {
				res.local = append(res.local, path)
			}
			res.writes = append(res.writes, at)
		}
		return false, nil
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return p.folder(fd, name, path, old, at, res)
	}
	return p.compare(fd, name, path, &st, old, want, at, res)
}

// folder plans a path that holds a folder.
func (p *planner) folder(fd int, name, path string, old *entry, at int, res *plan) (found bool, err error) {
	switch {
	case at >= 0 && p.new[at].Mode == object.ModeGitlink:
		res.unchanged++
		return true, nil
	case at < 0 && old.Mode == object.ModeGitlink:
		res.gone = append(res.gone, path)
		return true, nil
	case at < 0:
		// A tracked file was replaced by a folder; the file is gone and the folder stays, untracked.
		return false, nil
	case old != nil && !old.maybe && old.Mode != object.ModeGitlink:
		res.local = append(res.local, path)
	}
	n := len(res.blocked)
	if err := p.blockedBelow(fd, name, path, res, 0); err != nil {
		return false, err
	}
	if len(res.blocked) == n {
		res.emptyFolders = append(res.emptyFolders, path)
		res.writes = append(res.writes, at)
	}
	// If the old commit has files in the folder, the walk of the folder counts its name.
	lo, hi := under(p.old, path+"/")
	return lo == hi, nil
}

// blockedBelow adds to res.blocked the files below a folder that no old entry has.
func (p *planner) blockedBelow(fd int, name, path string, res *plan, depth int) error {
	if depth > tree.MaxDepth || len(res.blocked) >= maxListed {
		return nil
	}
	dir, err := opendir(fd, name)
	if err != nil {
		return err
	}
	defer closeDir(dir)
	buf := p.buffers.Get().(*[]byte)
	defer p.buffers.Put(buf)
	var inner, files []string
	err = dirents(dir, *buf, func(name string, typ byte) {
		switch {
		case typ == unix.DT_DIR || typ == unix.DT_UNKNOWN:
			inner = append(inner, name)
		case !strings.HasPrefix(name, tmpPrefix):
			files = append(files, name)
		}
	})
	for _, name := range inner {
		if err != nil {
			break
		}
		if err = p.blockedBelow(dir, name, path+"/"+name, res, depth+1); notDir(err) {
			err = nil
			files = append(files, name)
		}
	}
	for _, name := range files {
		var ours bool
		if err == nil {
			if ours, err = p.ours(dir, name, path+"/"+name); err == nil && !ours {
				res.blocked = append(res.blocked, path+"/"+name)
			}
		}
	}
	return err
}

// refuse returns the error of a plan that can't be carried out.
func (p *plan) refuse() error {
	if len(p.clash) > 0 {
		return fault.New(fault.Refused, "checkout", "the commit changes what was changed on this machine, too: %s", list(p.clash)).
			WithHint("bring the changes into a commit, or overwrite them:  git push -o force …")
	}
	if len(p.blocked) == 0 {
		return nil
	}
	return fault.New(fault.Refused, "checkout", "the commit has a file where the working copy has a folder with untracked files: %s", list(p.blocked)).
		WithHint("move them away on the machine, or push a commit that uses another name")
}
