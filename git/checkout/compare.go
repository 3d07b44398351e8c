package checkout

import (
	"golang.org/x/sys/unix"

	"corpus-git/git/convert"
	"corpus-git/git/index"
	"corpus-git/git/object"
)

// compare plans a path that holds something other than a folder.
func (p *planner) compare(fd int, name, path string, st *unix.Stat_t, old, want *entry, at int, res *plan) (found bool, err error) {
	same := old != nil && want != nil && old.Hash == want.Hash && object.SameType(old.Mode, want.Mode) && p.sameEOL(path)
	is := isOld
	if old == nil || old.Stat != index.NewStat(st) || !object.SameType(old.Mode, st.Mode) || old.Stat.Racy(&p.written) {
		// The old content with the old line ends is an unchanged file; the new with the new was written by an interrupted checkout.
		if is, err = p.content(fd, name, path, st, old, want); err != nil {
			return true, err
		}
		if want != nil && (is == isNew || is == isOld && same) {
			res.refreshed++
			p.keep(want, st, at, old, res)
			return true, nil
		}
	} else if same {
		p.keep(want, st, at, old, res)
		return true, nil
	}
	if is == isOther && p.keepLocal && old != nil && !old.maybe {
		if !same {
			res.clash = append(res.clash, path)
			return true, nil
		}
		// The index records nothing of the file, so that the next scan finds the change again.
		want.SetStat(index.Stat{})
		res.kept = append(res.kept, path)
		return true, nil
	}
	switch {
	case want != nil && want.Mode == object.ModeGitlink:
		res.obstacles = append(res.obstacles, path)
		res.writes = append(res.writes, at)
	case want != nil:
		res.writes = append(res.writes, at)
	case old.maybe && is != isOld:
		return false, nil // not ours: untracked
	default:
		res.removes = append(res.removes, path)
	}
	switch {
	case is == isOld, is == isCut:
	case old != nil && !old.maybe:
		res.local = append(res.local, path)
	case want != nil:
		res.overwritten = append(res.overwritten, path)
	}
	return true, nil
}

// keep accepts the file on the disk. A missing executable bit is fixed by writing the file again, since it may have other names (hard
// links). Removing an extra one is left to fixperms, which is why the working copy has core.fileMode off.
func (p *planner) keep(want *entry, st *unix.Stat_t, at int, old *entry, res *plan) {
	if is := index.NewStat(st); want.Stat != is {
		want.SetStat(is)
	}
	if want.Mode == object.ModeExecutable && st.Mode&0o100 == 0 {
		res.writes = append(res.writes, at)
		if old != nil && old.Mode == object.ModeExecutable {
			res.local = append(res.local, want.Path)
		}
		return
	}
	// A bit that the old commit set and the new one does not is removed.
	if want.Mode == object.ModeFile && old != nil && old.Mode == object.ModeExecutable && st.Mode&0o100 != 0 {
		res.writes = append(res.writes, at)
		return
	}
	res.unchanged++
}

func (p *planner) sameEOL(path string) bool {
	return p.oldEOL == p.newEOL || convert.Of(p.oldEOL, path) == convert.Of(p.newEOL, path)
}

// finding reports what content a path has.
type finding uint8

const (
	isOther finding = iota
	isOld
	isNew
	isCut // written by an interrupted checkout
)

// content reads a file or link and compares it with both entries, each of which may be nil.
func (p *planner) content(fd int, name, path string, st *unix.Stat_t, old, want *entry) (finding, error) {
	oldEOL := p.oldEOL
	cut := find(p.cut, path)
	if old != nil && old.maybe {
		oldEOL, cut = p.cutEOL, nil
	}
	if old != nil && old.maybe && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0 && object.SameType(old.Mode, st.Mode) {
		// Created by the interrupted checkout, or emptied by a power cut.
		if want == nil {
			return isOld, nil
		}
		return isCut, nil
	}
	if cut != nil && !object.SameType(cut.Mode, st.Mode) {
		cut = nil
	}
	if old != nil && !object.SameType(old.Mode, st.Mode) {
		old = nil
	}
	if want != nil && !object.SameType(want.Mode, st.Mode) {
		want = nil
	}
	// A different size makes reading the file unnecessary, unless line ends may have been changed. Size 0 may mean "unknown".
	if old != nil && old.Stat.Size != 0 && old.Stat.Size != uint32(st.Size) && convert.Of(oldEOL, path) == convert.AsIs {
		old = nil
	}
	if want != nil && convert.Of(p.newEOL, path) == convert.AsIs {
		if _, size, err := p.objs.Header(want.Hash); err != nil {
			return isOther, err
		} else if size != st.Size {
			want = nil
		}
	}
	if old == nil && want == nil && cut == nil {
		return isOther, nil
	}
	converted := old != nil && convert.Of(oldEOL, path) != convert.AsIs || want != nil && convert.Of(p.newEOL, path) != convert.AsIs || cut != nil && convert.Of(p.cutEOL, path) != convert.AsIs
	d, err := readContent(fd, name, st, converted)
	switch {
	case err != nil:
		return isOther, err
	case want != nil && d.is(want.Hash, convert.Of(p.newEOL, path)):
		return isNew, nil
	case old != nil && d.is(old.Hash, convert.Of(oldEOL, path)):
		return isOld, nil
	case cut != nil && d.is(cut.Hash, convert.Of(p.cutEOL, path)):
		return isCut, nil
	default:
		return isOther, nil
	}
}
