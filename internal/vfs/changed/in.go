package changed

import (
	"errors"
	"iter"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// In returns the paths below a watched folder that changed, or may have, each with everything below it; "." is the whole folder. It follows End.
//
// inodes are the numbers of the inodes of all that was in the folder at some moment after Begin; what came into it later may be missing. The
// folder itself need not be among them. Paths may no longer exist.
func (w *Watch) In(dir string, inodes iter.Seq[uint64]) ([]string, error) {
	f, ok := w.folders[dir]
	if !ok || !w.known || w.n == nil {
		return nil, unknown("%s is not watched, or not to its end", dir)
	}
	fd, real, err := openTop(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	top, err := handleOf(fd)
	if err != nil {
		return nil, err
	}
	if top != f.top {
		return nil, unknown("%s is another folder", dir)
	}
	l := &lookup{top: fd, real: real, inode: w.systems[f.fs].inode, found: map[string]bool{}, places: map[handle]place{}}
	if err := l.prepare(w.seen, f, inodes); err != nil {
		return nil, err
	}
	for _, s := range w.seen {
		if s.fs != f.fs {
			continue
		}
		if err := l.one(s); err != nil {
			return nil, err
		}
	}
	out := make([]string, 0, len(l.found))
	for p := range l.found {
		out = append(out, p)
	}
	return out, nil
}

// lookup finds the events that concern one folder.
//
// What was changed and is in the folder at the end was either in it before, and its inode is among those that are known; or it, or a folder above
// it, was created or moved there, with an event at a folder whose inode is known. So events at unknown inodes need no look.
type lookup struct {
	top    int
	real   string
	inode  func(handle) (uint64, bool)
	inside map[uint64]bool
	found  map[string]bool
	places map[handle]place
}

// place is where an inode is.
type place struct {
	// gone: nothing has this inode any more.
	gone bool
	// dir reports a folder; path is its path below the top, or that of the only name of a file, and in is false if it is elsewhere.
	dir, in bool
	path    string
}

// prepare finds which of the inodes of the events are known.
func (l *lookup) prepare(all []seen, f folder, inodes iter.Seq[uint64]) error {
	l.inside = map[uint64]bool{}
	var some [1 << 16 / 64]uint64 // by the last bits, so that most inodes are not looked up
	for _, s := range all {
		for _, h := range []handle{s.dir, s.target} {
			if s.fs != f.fs || h == (handle{}) {
				continue
			}
			n, ok := l.inode(h)
			if !ok {
				return unknown("a handle of an unknown kind")
			}
			l.inside[n] = false
			some[n%(1<<16)/64] |= 1 << (n % 64)
		}
	}
	n, _ := l.inode(f.top)
	if _, ok := l.inside[n]; ok {
		l.inside[n] = true
	}
	for n := range inodes {
		if some[n%(1<<16)/64]&(1<<(n%64)) == 0 {
			continue
		}
		if _, ok := l.inside[n]; ok {
			l.inside[n] = true
		}
	}
	return nil
}

// known reports whether the inode of a handle was in the folder.
func (l *lookup) known(h handle) bool {
	if h == (handle{}) {
		return false
	}
	n, _ := l.inode(h)
	return l.inside[n]
}

// one adds what an event says about the folder.
func (l *lookup) one(s seen) error {
	if l.known(s.dir) {
		p, err := l.place(s.dir)
		switch {
		case err != nil:
			return err
		case p.gone || !p.in:
		case !p.dir || s.name == "" || s.name == ".":
			l.found[p.path] = true
		default:
			l.found[filepath.Join(p.path, s.name)] = true
		}
	}
	// Under whatever name it was changed, it may have another one here.
	if s.attrs && l.known(s.target) {
		p, err := l.place(s.target)
		if err != nil {
			return err
		}
		if !p.gone && p.in {
			l.found[p.path] = true
		}
	}
	return nil
}

// place finds an inode. A file with several names is an error.
func (l *lookup) place(h handle) (place, error) {
	if p, ok := l.places[h]; ok {
		return p, nil
	}
	p, err := l.find(h)
	if err != nil {
		return p, err
	}
	l.places[h] = p
	return p, nil
}

func (l *lookup) find(h handle) (place, error) {
	fd, err := unix.OpenByHandleAt(l.top, h.unix(), unix.O_PATH|unix.O_CLOEXEC)
	if errors.Is(err, unix.ESTALE) {
		return place{gone: true}, nil
	}
	if err != nil {
		return place{}, unknown("open_by_handle_at: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st, named unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return place{}, unknown("stat: %w", err)
	}
	if st.Nlink == 0 {
		return place{gone: true}, nil
	}
	path, err := pathOf(fd)
	if err != nil {
		return place{}, err
	}
	p := place{dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
	if !p.dir {
		if st.Nlink > 1 {
			return p, unknown("%s has several names", path)
		}
		if err := unix.Lstat(path, &named); err != nil || named.Dev != st.Dev || named.Ino != st.Ino {
			return p, unknown("the name of an inode (%s)", path)
		}
	}
	switch rel, below := strings.CutPrefix(path, l.real+"/"); {
	case path == l.real:
		p.in, p.path = true, "."
	case below:
		p.in, p.path = true, rel
	}
	return p, nil
}
