package tree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Snapshot is the scan of the live trees by Make. It is read-only.
type Snapshot struct {
	// Begun is when it began, by the file system's clock. Each file was read once, after that.
	Begun   time.Time
	entries []Entry
}

// NewSnapshot keeps the entries of a scan that began at the given time.
func NewSnapshot(begun time.Time, entries []Entry) *Snapshot {
	return &Snapshot{Begun: begun, entries: entries}
}

// Tree returns everything below the folder name ("project"), by its path below that, in byte order of paths, as it was when scanned. No
// link was followed.
func (s *Snapshot) Tree(name string) iter.Seq2[string, *Entry] {
	return func(yield func(string, *Entry) bool) {
		dir := name + "/"
		i, _ := search(s.entries, dir)
		for ; i < len(s.entries); i++ {
			path, in := strings.CutPrefix(s.entries[i].Path, dir)
			if !in || !yield(path, &s.entries[i]) {
				return
			}
		}
	}
}

// Scanned is the result of a scan.
type Scanned struct {
	Entries  []Entry // in byte order of paths
	Vanished int
	// Cold reports that the scan had to wait for the disk: the tree was not in the page cache.
	Cold bool
}

// Find returns the entry at a path, nil if there is none.
func (t *Scanned) Find(path string) *Entry { return find(t.Entries, path) }

const (
	// coldAfter is how long a scan continues with few workers. A cached tree of 70,000 entries takes about 0.1 s.
	coldAfter = 200 * time.Millisecond
	// coldEach is the least time that a scan takes for an entry from the disk; a cached one takes less than a third of it.
	coldEach = 6 * time.Microsecond
	// coldCount is the number of entries from which the order of reading matters.
	coldCount = 2000
)

// Scan lists named folders below d and everything in them, in parallel, following no link. A named folder that does not exist is not an
// error. Entries that vanish during the scan are counted and skipped.
func Scan(ctx context.Context, d vfs.Dir, names []string, workers int) (*Scanned, error) {
	return scan(ctx, d, names, workers, noneKnown)
}

func scan(ctx context.Context, d vfs.Dir, names []string, workers int, known func() *Known) (*Scanned, error) {
	sc := &scanner{root: d, pool: NewPool(ctx), known: known}
	var tops []*folder
	for _, n := range names {
		st, err := d.Lstat(n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			return nil, fault.New(fault.Refused, "scan", "%s is not a folder", n).WithHint("a project's tree must be a real folder, not a link to one")
		}
		top := &folder{self: Entry{Path: n}}
		top.self.fill(st)
		tops = append(tops, top)
		sc.pool.addAt(st.Ino, func() error { return sc.dir(top) })
	}
	t, err := sc.run(tops, workers)
	if err == nil {
		groupLinks(t.Entries)
	}
	return t, err
}

// run scans below folders, and returns them with everything in them.
func (sc *scanner) run(tops []*folder, workers int) (*Scanned, error) {
	begun := time.Now() // a monotonic clock: only the difference counts
	if err := sc.pool.runCold(workers, coldAfter); err != nil {
		return nil, ReadError(err)
	}
	took := time.Since(begun)
	t := &Scanned{Cold: sc.count.Load() >= coldCount && took > coldEach*time.Duration(sc.count.Load()), Entries: make([]Entry, 0, sc.count.Load()+int64(len(tops))), Vanished: int(sc.vanished.Load())}
	slices.SortFunc(tops, func(a, b *folder) int { return strings.Compare(a.self.Path, b.self.Path) })
	for _, top := range tops {
		if !top.gone {
			t.Entries = top.flatten(append(t.Entries, top.self))
		}
	}
	return t, nil
}

type scanner struct {
	root     vfs.Dir
	pool     *Pool
	known    func() *Known
	count    atomic.Int64
	vanished atomic.Int64
}

// folder is a folder and its content.
type folder struct {
	self Entry
	in   []Entry   // in byte order, folders included
	subs []*folder // in byte order
	gone bool      // it vanished before it was listed
}

// flatten appends everything below the folder in byte order of paths, in which "a-b" is between "a" and "a/c".
func (n *folder) flatten(out []Entry) []Entry {
	subs := n.subs // folders whose content comes at the position of "name/"
	pending := make([]*folder, 0, len(subs))
	for i := range n.in {
		e := &n.in[i]
		for len(pending) > 0 && under(pending[0].self.Path, e.Path) < 0 {
			out = pending[0].flatten(out)
			pending = pending[1:]
		}
		if !e.IsDir() {
			out = append(out, *e)
			continue
		}
		sub := subs[0]
		subs = subs[1:]
		if !sub.gone {
			out = append(out, *e)
			pending = insertPending(pending, sub)
		}
	}
	for _, sub := range pending {
		out = sub.flatten(out)
	}
	return out
}

// under compares dir+"/" with a path.
func under(dir, path string) int {
	n := min(len(dir), len(path))
	if c := strings.Compare(dir[:n], path[:n]); c != 0 {
		return c
	}
	if len(path) <= len(dir) {
		return 1
	}
	return cmp.Compare('/', path[len(dir)])
}

// insertPending keeps folders in the order of their contents: "a-b/" comes before "a/".
func insertPending(list []*folder, n *folder) []*folder {
	i := len(list)
	for i > 0 && under(n.self.Path, list[i-1].self.Path+"/") < 0 {
		i--
	}
	return slices.Insert(list, i, n)
}

// Vanished reports whether an error means that an entry changed since it was listed.
func Vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

func (sc *scanner) dir(n *folder) error {
	d, err := sc.root.OpenDir(n.self.Path)
	if Vanished(err) {
		n.gone = true
		sc.vanished.Add(1)
		return nil
	}
	if err != nil {
		return err
	}
	var vanished int
	n.in, vanished, err = sc.known().look(d, &n.self)
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if Vanished(err) { // removed since it was opened
		n.gone = true
		sc.vanished.Add(1)
		return nil
	}
	if err != nil {
		return err
	}
	sc.count.Add(int64(len(n.in)))
	sc.vanished.Add(int64(vanished))
	for i := range n.in {
		if n.in[i].IsDir() {
			sub := &folder{self: n.in[i]}
			n.subs = append(n.subs, sub)
			sc.pool.addAt(sub.self.Live.Ino, func() error { return sc.dir(sub) })
		}
	}
	return nil
}

// list describes the content of one open folder.
func list(d vfs.Dir, path string) (found []Entry, vanished int, err error) {
	names, err := d.ReadDir(".")
	if err != nil {
		return nil, 0, Named(path, err)
	}
	found = make([]Entry, 0, len(names))
	for _, n := range names {
		if found, err = describe(found, d, path+"/"+n, n); err != nil {
			return nil, 0, err
		}
	}
	return found, len(names) - len(found), nil
}

// describe appends what has a name in the open folder d; nothing if it has vanished.
func describe(found []Entry, d vfs.Dir, path, name string) ([]Entry, error) {
	st, err := d.Lstat(name)
	target := ""
	if err == nil && st.IsSymlink() {
		target, err = d.Readlink(name)
		if errors.Is(err, syscall.EINVAL) {
			err = fs.ErrNotExist // no longer a link
		}
	}
	if Vanished(err) {
		return found, nil
	}
	if err != nil {
		return nil, Named(path[:len(path)-len(name)-1], err)
	}
	found = append(found, Entry{Path: path, Target: target})
	found[len(found)-1].fill(st)
	return found, nil
}

// Named adds the folder to the relative path of an error.
func Named(dir string, err error) error {
	var pe *fs.PathError
	if dir != "" && errors.As(err, &pe) && !strings.HasPrefix(pe.Path, "/") {
		return &fs.PathError{Op: pe.Op, Path: dir + "/" + pe.Path, Err: pe.Err}
	}
	return err
}

// ReadError explains an error in reading a tree.
func ReadError(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.New(fault.Refused, "read tree", "%w", err).
			WithHint("an archive must be complete: run the server as root, or let its user read this file")
	}
	return err
}
