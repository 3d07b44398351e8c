package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// gitSkipped reports names in a git directory that belong to pushes being received or files being written.
func gitSkipped(p string) bool {
	base := filepath.Base(p)
	if strings.HasSuffix(base, ".lock") || strings.HasPrefix(base, "tmp_") || strings.HasPrefix(base, ".tmp-") {
		return true
	}
	return slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.HasPrefix(part, "incoming-") })
}

// inObjects reports whether a path below the folder git/ is in an object store, or is one.
func inObjects(p string) bool { return slices.Contains(strings.Split(p, "/"), "objects") }

// stateSkipped reports names in the state directory that belong to this process, to running commands, or to single projects.
func stateSkipped(state layout.State, p string) bool {
	top, _, _ := strings.Cut(p, "/")
	for _, path := range []string{
		state.Lock(), state.Socket(), state.Addresses(), state.Clean(), state.Processes(), state.Underway(), state.Trash(), state.ReserveFile(), state.Recipes(), state.Containers(), state.Cluster(),
		state.Journals(), filepath.Dir(state.Events("x")), filepath.Dir(state.Undo("x")), filepath.Dir(state.Passwords("x")), filepath.Dir(state.Extends("x")), filepath.Dir(filepath.Dir(state.SaltConfig("x", "y"))),
	} {
		if rel, err := filepath.Rel(state.Path(), path); err == nil && top == rel {
			return true
		}
	}
	if rel, err := filepath.Rel(state.Path(), state.JetStream()); err == nil && (p == rel || strings.HasPrefix(p, rel+"/")) {
		return true // the log that several hubs share; what is restored is a server without others
	}
	return strings.HasPrefix(top, filepath.Base(state.Database())) || strings.HasPrefix(top, filepath.Base(state.ServerLog())) || strings.HasPrefix(top, ".tmp-")
}

// dir writes folders and files below base, named relative to it, nil for all of them, as prefix/name. skip is called for each path below
// base; the contents of a skipped folder are skipped only if skip returns true for each of them.
func (w *writer) dir(ctx context.Context, base string, names []string, prefix string, skip func(string) bool) error {
	d, err := w.fs.OpenDir(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if names == nil {
		if names, err = d.ReadDir("."); err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(n string) bool { return skip != nil && skip(n) })
	}
	for _, name := range names {
		st, err := d.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		scanned, err := scan(ctx, d, name, st)
		if err != nil {
			return err
		}
		leaders := map[uint32]string{}
		for i := range scanned {
			e := &scanned[i]
			if skip != nil && skip(e.Path) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.one(ctx, d, e, leaders, prefix); err != nil {
				return fmt.Errorf("%s: %w", printable.Text(filepath.Join(base, e.Path)), err)
			}
		}
	}
	return nil
}

// top writes a folder without its contents.
func (w *writer) top(ctx context.Context, base, name, prefix string) error {
	d, err := w.fs.OpenDir(base)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	st, err := d.Lstat(name)
	if err != nil {
		return err
	}
	e := tree.EntryOf(name, st)
	return w.one(ctx, d, &e, map[uint32]string{}, prefix)
}

// scan lists a folder with all its contents, or a single file.
func scan(ctx context.Context, d vfs.Dir, name string, st vfs.Stat) ([]tree.Entry, error) {
	if !st.IsDir() {
		e := tree.EntryOf(name, st)
		if st.IsSymlink() {
			target, err := d.Readlink(name)
			if err != nil {
				return nil, err
			}
			e.Target = target
		}
		return []tree.Entry{e}, nil
	}
	found, err := tree.Scan(ctx, d, []string{name}, scanners)
	if err != nil {
		return nil, err
	}
	return found.Entries, nil
}

// one writes one entry. Sockets are omitted, since their processes are not running after a restore.
func (w *writer) one(ctx context.Context, d vfs.Dir, e *tree.Entry, leaders map[uint32]string, prefix string) error {
	if e.Type() == syscall.S_IFSOCK {
		return nil
	}
	xs, err := d.Xattrs(e.Path)
	if err != nil {
		return err
	}
	e.Xattrs = tree.XattrDigest(xs)
	h, err := tree.TarHeader(e, leaders, func() ([]vfs.Xattr, error) { return xs, nil })
	if errors.Is(err, tree.ErrNotForTar) {
		w.remark("%s/%s: an extended attribute that no tar can hold was left out", prefix, e.Path)
		plain := *e
		plain.Xattrs = 0
		h, err = tree.TarHeader(&plain, leaders, nil)
	}
	if err != nil {
		return err
	}
	h.Name = prefix + "/" + h.Name
	if h.Typeflag == tar.TypeLink {
		h.Linkname = prefix + "/" + h.Linkname
	}
	w.names.fill(h)
	if h.Typeflag != tar.TypeReg {
		return w.entry(ctx, h, nil)
	}
	f, err := d.OpenFile(e.Path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Busy, "back up", "it was removed while the backup was made").WithHint("try again")
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	whole := &padded{r: f, left: e.Size}
	if err := w.entry(ctx, h, whole); err != nil {
		return err
	}
	if st, err := f.Stat(); err == nil && (st.Mtime != e.Mtime || st.Size != e.Size) || whole.short > 0 {
		w.remark("%s/%s was written to while it was read", prefix, e.Path)
	}
	return nil
}

// scanners is the number of goroutines that list folders.
const scanners = 2

// padded is a file of exactly the size in its header: truncated content is padded with zeros, appended content is omitted.
type padded struct {
	r           io.Reader
	left, short int64
	ended       bool
}

func (p *padded) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), p.left)]
	n := len(b)
	var err error
	if p.ended {
		clear(b)
		p.short += int64(n)
	} else if n, err = p.r.Read(b); errors.Is(err, io.EOF) {
		p.ended, err = true, nil
	}
	p.left -= int64(n)
	return n, err
}

// accountNames are the names of users and groups, looked up once each.
type accountNames struct{ users, groups map[int]string }

// fill sets the names of the owner and group of an entry, if they have names.
func (a accountNames) fill(h *tar.Header) {
	name, ok := a.users[h.Uid]
	if !ok {
		if u, err := user.LookupId(strconv.Itoa(h.Uid)); err == nil {
			name = u.Username
		}
		a.users[h.Uid] = name
	}
	h.Uname = name
	if name, ok = a.groups[h.Gid]; !ok {
		if g, err := user.LookupGroupId(strconv.Itoa(h.Gid)); err == nil {
			name = g.Name
		}
		a.groups[h.Gid] = name
	}
	h.Gname = name
}
