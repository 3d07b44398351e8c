package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Place is an opened path: a folder, held by a descriptor, and a name in it. The owner of a folder in the path can't redirect what is done
// with it. Only the name itself may become a link: calls that open or change it do not follow links (O_NOFOLLOW, lchown(2)).
type Place struct {
	fd         int
	name, path string
}

// OpenPlace opens a path element by element, each by a descriptor, under the rule of CheckLinks; follow includes a link at the last
// element. The last element need not exist; the folder must. A relative path begins at the working directory.
func OpenPlace(path string, follow bool) (*Place, error) {
	if path == "" {
		return nil, pathErr("open", path, unix.ENOENT)
	}
	w := &walker{rest: strings.Split(path, "/"), at: -1}
	defer w.close()
	err := w.top(path)
	for err == nil && !w.last(follow) {
		err = w.step()
	}
	if bad := w.checkLinks(); bad != nil {
		err = bad
	}
	if err != nil {
		return nil, pathErr("open", path, err)
	}
	p := &Place{fd: w.at, name: w.name, path: path}
	w.at = -1
	return p, nil
}

// Path returns a path of the place for this process, for as long as it is open. No element of it but the name itself can be a link.
func (p *Place) Path() string { return p.Dir() + "/" + p.name }

// Dir returns a path of the folder, as Path does.
func (p *Place) Dir() string { return "/proc/self/fd/" + strconv.Itoa(p.fd) }

// Folder opens the folder again, for the caller to close, and returns the path of the place: absolute, and without links, as the folder is named now.
// A place whose name is "." has no folder above it: then dir is nil. A folder that was removed since is fs.ErrNotExist. Source: proc(5), /proc/pid/fd.
func (p *Place) Folder() (folder Dir, path string, err error) {
	real, err := os.Readlink(p.Dir())
	if err != nil {
		return nil, "", p.Named(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(p.fd, &st); err != nil {
		return nil, "", pathErr("stat", p.path, err)
	}
	if st.Nlink == 0 || !filepath.IsAbs(real) { // removed, or out of reach
		return nil, "", pathErr("open", p.path, unix.ENOENT)
	}
	if p.name == "." {
		return nil, real, nil
	}
	folder, err = dir{fd: p.fd}.OpenDir(".")
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return nil, "", pathErr(e.Op, p.path, e.Err)
	}
	return folder, filepath.Join(real, p.name), err
}

// Open opens the name; a link is not followed (ELOOP).
func (p *Place) Open(flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(p.Path(), flag|unix.O_NOFOLLOW, mode)
	return f, p.Named(err)
}

// Named returns an error with the requested path in place of Path.
func (p *Place) Named(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) && strings.HasPrefix(e.Path, p.Dir()) {
		return &fs.PathError{Op: e.Op, Path: p.path, Err: e.Err}
	}
	if e := (*os.LinkError)(nil); errors.As(err, &e) && strings.HasPrefix(e.New, p.Dir()) {
		return &os.LinkError{Op: e.Op, Old: e.Old, New: p.path, Err: e.Err}
	}
	return err
}

// Close closes the descriptor.
func (p *Place) Close() error { return unix.Close(p.fd) }

// walker follows a path. at is the current folder, end what was opened last: it, or an entry in it.
type walker struct {
	rest    []string
	at      int
	name    string // of the last element
	end     unix.Stat_t
	known   bool // end is
	links   int
	foreign []uint32 // the owners of links that may be followed to them
}

func (w *walker) close() {
	if w.at >= 0 {
		_ = unix.Close(w.at)
	}
}

// top goes to the start of a path.
func (w *walker) top(path string) error {
	start := "."
	if filepath.IsAbs(path) {
		start = "/"
	}
	fd, st, err := w.open(unix.AT_FDCWD, start)
	if err != nil {
		return err
	}
	w.enter(fd, st)
	return nil
}

func (w *walker) open(at int, name string) (fd int, st unix.Stat_t, err error) {
	err = retry(func() (e error) {
		fd, e = unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return e
	})
	if err != nil {
		return -1, st, err
	}
	if err = unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

func (w *walker) enter(fd int, st unix.Stat_t) {
	w.close()
	w.at, w.end, w.known = fd, st, true
}

// last reports whether the rest of the path is a name in the folder at, and consumes that name.
func (w *walker) last(follow bool) bool {
	for len(w.rest) > 0 && (w.rest[0] == "" || w.rest[0] == ".") {
		w.rest = w.rest[1:]
	}
	if len(w.rest) == 0 {
		w.name = "."
		return true
	}
	if w.rest[0] == ".." || slices.ContainsFunc(w.rest[1:], func(el string) bool { return el != "" && el != "." }) {
		return false
	}
	fd, st, err := w.open(w.at, w.rest[0])
	if err == nil {
		_ = unix.Close(fd)
		if follow && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return false
		}
		w.end = st
	}
	w.name = w.rest[0] // what cannot be inspected, or is created there, is the folder's
	return true
}

// step processes one element of the path.
func (w *walker) step() error {
	el := w.rest[0]
	w.rest = w.rest[1:]
	fd, st, err := w.open(w.at, el)
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		w.enter(fd, st)
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	target, err := linkTarget(fd)
	if err != nil {
		return err
	}
	if w.links++; w.links > maxLinks {
		w.foreign = nil // it leads nowhere
		return unix.ELOOP
	}
	var in unix.Stat_t
	if err := unix.Fstat(w.at, &in); err != nil {
		return err
	}
	if !trustedOwner(st.Uid) && (!trustedOwner(in.Uid) || in.Mode&0o022 != 0) {
		w.foreign = append(w.foreign, st.Uid)
	}
	w.rest = append(strings.Split(target, "/"), w.rest...)
	if !filepath.IsAbs(target) {
		return nil
	}
	return w.top(target)
}

// checkLinks refuses links that lead to files of users other than the link's owner.
func (w *walker) checkLinks() error {
	for _, uid := range w.foreign {
		if !w.known || w.end.Uid != uid {
			return fmt.Errorf("%w (%d), and leads to what is not that user's", ErrUntrusted, uid)
		}
	}
	return nil
}

// trustedOwner reports whether a user is root or the one that this process runs as.
func trustedOwner(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// OpenRoot is os.OpenRoot for a folder that is found as OpenPlace finds it, following links.
func OpenRoot(path string) (*os.Root, error) {
	p, err := OpenPlace(path, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	f, err := p.Open(unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	return root, p.Named(err)
}
