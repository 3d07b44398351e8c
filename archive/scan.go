package archive

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// tree is the result of a scan.
type tree struct {
	entries  []Entry // in byte order of paths
	vanished int
}

// scan lists named folders below d and everything in them, in parallel, following no link. A named folder that is not
// there is no error. What vanishes while it is scanned is counted and left out.
func scan(ctx context.Context, d vfs.Dir, names []string, workers int) (*tree, error) {
	sc := &scanner{root: d, pool: newPool(ctx), gone: map[string]bool{}}
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
		e := Entry{Path: n}
		e.fill(st)
		sc.out = append(sc.out, e)
		sc.pool.add(func() error { return sc.dir(n) })
	}
	if err := sc.pool.run(workers); err != nil {
		return nil, readable(err)
	}
	if len(sc.gone) > 0 {
		sc.out = slices.DeleteFunc(sc.out, func(e Entry) bool { return sc.gone[e.Path] })
	}
	slices.SortFunc(sc.out, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return &tree{entries: sc.out, vanished: sc.vanished}, nil
}

type scanner struct {
	root     vfs.Dir
	pool     *pool
	mu       sync.Mutex
	out      []Entry
	gone     map[string]bool // folders that vanished before they were listed
	vanished int
}

// vanishedErr tells that a thing is no longer what it was when it was listed.
func vanishedErr(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

func (sc *scanner) dir(path string) error {
	d, err := sc.root.OpenDir(path)
	if vanishedErr(err) {
		sc.mu.Lock()
		sc.gone[path] = true
		sc.vanished++
		sc.mu.Unlock()
		return nil
	}
	if err != nil {
		return err
	}
	found, vanished, err := list(d, path)
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	for i := range found {
		if found[i].IsDir() {
			sub := found[i].Path
			sc.pool.add(func() error { return sc.dir(sub) })
		}
	}
	sc.mu.Lock()
	sc.out = append(sc.out, found...)
	sc.vanished += vanished
	sc.mu.Unlock()
	return nil
}

// list describes what lies in one open folder.
func list(d vfs.Dir, path string) (found []Entry, vanished int, err error) {
	names, err := d.ReadDir(".")
	if err != nil {
		return nil, 0, named(path, err)
	}
	found = make([]Entry, 0, len(names))
	for _, n := range names {
		e := Entry{Path: path + "/" + n}
		st, err := d.Lstat(n)
		if err == nil && st.IsSymlink() {
			e.Target, err = d.Readlink(n)
			if errors.Is(err, syscall.EINVAL) {
				err = fs.ErrNotExist // no longer a link
			}
		}
		if vanishedErr(err) {
			vanished++
			continue
		}
		if err != nil {
			return nil, 0, named(path, err)
		}
		e.fill(st)
		found = append(found, e)
	}
	return found, vanished, nil
}

// named puts the folder in front of the relative path of an error.
func named(dir string, err error) error {
	var pe *fs.PathError
	if dir != "" && errors.As(err, &pe) && !strings.HasPrefix(pe.Path, "/") {
		return &fs.PathError{Op: pe.Op, Path: dir + "/" + pe.Path, Err: pe.Err}
	}
	return err
}

// readable explains an error of reading a tree.
func readable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.New(fault.Refused, "read tree", "%w", err).
			WithHint("an archive must be whole: run the server as root, or let its user read this file")
	}
	return err
}
