package tree

import (
	"context"
	"path"
	"slices"
	"strings"
	"syscall"

	"corpus-git/internal/vfs"
)

// maxAgain is how many paths Again looks at; of more a scan of everything takes hardly longer.
const maxAgain = 500

// Again returns what Scan of the same folders would return now, if nothing has changed since t but the given paths, each with everything below it. ok is
// false if that can't be said: then scan. t must not be used any more.
func (t *Scanned) Again(ctx context.Context, d vfs.Dir, paths []string, workers int) (now *Scanned, ok bool, err error) {
	if len(paths) == 0 {
		return t, true, nil
	}
	if len(paths) > maxAgain {
		return nil, false, nil
	}
	a := again{d: d, was: t.Entries, parents: map[string]Entry{}}
	for _, p := range topmost(paths) {
		if ok, err := a.look(p); !ok || err != nil {
			return nil, false, err
		}
	}
	sc := &scanner{root: d, pool: NewPool(ctx), known: noneKnown}
	for _, top := range a.tops {
		sc.pool.addAt(top.self.Live.Ino, func() error { return sc.dir(top) })
	}
	below, err := sc.run(a.tops, workers)
	if err != nil {
		return nil, false, err
	}
	fresh := append(a.fresh, below.Entries...)
	if a.severalNames(fresh) {
		return nil, false, nil
	}
	slices.SortFunc(fresh, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	now = &Scanned{Entries: a.merge(fresh), Vanished: t.Vanished + below.Vanished, Cold: t.Cold}
	groupLinks(now.Entries)
	return now, true, nil
}

// topmost returns paths in order, without those below another one.
func topmost(paths []string) (out []string) {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	has := map[string]bool{}
	for _, p := range paths {
		in := has[p]
		for d := path.Dir(p); d != "." && !in; d = path.Dir(d) {
			in = has[d]
		}
		if !in {
			has[p] = true
			out = append(out, p)
		}
	}
	return out
}

// again looks again at paths of a scan.
type again struct {
	d   vfs.Dir
	was []Entry
	// gone are the ranges of was that are replaced, fresh what is there now, tops the folders among it, parents the folders that have these names.
	gone    [][2]int
	fresh   []Entry
	tops    []*folder
	parents map[string]Entry
}

func (a *again) at(p string) int {
	i, _ := search(a.was, p)
	return i
}

// look looks at one path, and at the folder that has its name.
func (a *again) look(p string) (ok bool, err error) {
	dir, name := path.Split(p)
	dir = strings.TrimSuffix(dir, "/")
	i, ok := search(a.was, dir)
	if dir == "" || !ok {
		return false, nil // a whole tree, or in a folder that is new itself
	}
	in, err := a.d.OpenDir(dir)
	if Vanished(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }() // opened for reading
	st, err := in.Lstat(".")
	if err != nil {
		return false, Named(dir, err)
	}
	if self := a.was[i]; st.Ino != self.Live.Ino || st.Dev != self.Live.Dev {
		return false, nil
	}
	a.parents[dir] = EntryOf(dir, st)
	if i, ok := search(a.was, p); ok {
		a.gone = append(a.gone, [2]int{i, i + 1})
	}
	if from, to := a.at(p+"/"), a.at(p+"0"); from < to { // "0" follows "/"
		a.gone = append(a.gone, [2]int{from, to})
	}
	e := Entry{Path: p}
	st, err = in.Lstat(name)
	if err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		e.Target, err = in.Readlink(name)
	}
	if Vanished(err) {
		return true, nil
	}
	if err != nil {
		return false, Named(dir, err)
	}
	if e.fill(st); e.IsDir() {
		a.tops = append(a.tops, &folder{self: e})
		return true, nil
	}
	a.fresh = append(a.fresh, e)
	return true, nil
}

// severalNames reports whether a file with several names was among what is replaced, or is now: what happens to one name changes the inode of all of them.
func (a *again) severalNames(fresh []Entry) bool {
	several := func(e Entry) bool { return !e.IsDir() && e.nlink > 1 }
	for _, r := range a.gone {
		if slices.ContainsFunc(a.was[r[0]:r[1]], several) {
			return true
		}
	}
	return slices.ContainsFunc(fresh, several)
}

// merge returns what was not replaced, and what is there now.
func (a *again) merge(fresh []Entry) []Entry {
	for dir, e := range a.parents {
		a.was[a.at(dir)] = e
	}
	slices.SortFunc(a.gone, func(a, b [2]int) int { return a[0] - b[0] })
	out := make([]Entry, 0, len(a.was)+len(fresh))
	for i := 0; i < len(a.was); i++ {
		for len(a.gone) > 0 && a.gone[0][0] == i {
			i, a.gone = a.gone[0][1], a.gone[1:]
		}
		if i == len(a.was) {
			break
		}
		for len(fresh) > 0 && fresh[0].Path < a.was[i].Path {
			out, fresh = append(out, fresh[0]), fresh[1:]
		}
		out = append(out, a.was[i])
	}
	return append(out, fresh...)
}
