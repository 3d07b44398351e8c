package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// maxWindow limits the memory that a compressed file can require.
const maxWindow = 128 << 20

func decompressed(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// Verify reads a whole backup, and returns its contents. database is called with the path of a temporary copy of its database in the
// folder dir. If it returns no error, the backup is as it was written.
func Verify(ctx context.Context, r io.Reader, dir string, database func(path string) error) (Contents, error) {
	f, err := os.CreateTemp(dir, "corpus-git-backup-*.db")
	if err != nil {
		return Contents{}, err
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	found := false
	c, err := read(ctx, r, func(Head) error { return nil }, func(h *tar.Header, content io.Reader) error {
		if err := place(h); err != nil {
			return err
		}
		if h.Name != databaseName {
			return nil
		}
		found = true
		_, err := io.Copy(f, content)
		return err
	})
	if err != nil {
		return Contents{}, err
	}
	if !found {
		return Contents{}, damaged("it has no database")
	}
	if err := database(f.Name()); err != nil {
		return Contents{}, damaged("its database: %w", err)
	}
	return c, nil
}

// RestoreOptions say what to do if the machine differs.
type RestoreOptions struct {
	// MissingToRoot changes the owner of files of accounts that this machine does not have to root. Otherwise a backup with such files is
	// refused.
	MissingToRoot bool
	// Account finds a user, or a group, of this machine by its name; nil asks the system.
	Account func(name string, group bool) (id int, ok bool)
	// Settle is called with the folder of the restored state before that has its final name, for what a restored server must not continue; nil does nothing.
	Settle func(ctx context.Context, state layout.State) error
}

// systemAccount asks the system.
func systemAccount(name string, group bool) (int, bool) {
	text := ""
	if group {
		if g, err := user.LookupGroup(name); err == nil {
			text = g.Gid
		}
	} else if u, err := user.Lookup(name); err == nil {
		text = u.Uid
	}
	id, err := strconv.Atoi(text)
	return id, err == nil
}

// Restored says what a restore did.
type Restored struct {
	Contents
	// Unowned reports that owners and groups were not restored: this requires root.
	Unowned bool `json:"unowned,omitempty"`
}

// Restore restores a backup to an empty root and state directory. open opens the file, which is read twice: damage, and missing accounts,
// are found before anything is written. On return everything is durable; after an error root and state contain nothing that a server
// reads.
func Restore(ctx context.Context, open func() (io.ReadCloser, error), root layout.Root, state layout.State, o RestoreOptions) (Restored, error) {
	if o.Account == nil {
		o.Account = systemAccount
	}
	r := &restorer{fs: vfs.OS{}, root: root, state: state, o: o, users: map[string]int{}, groups: map[string]int{}}
	done, err := r.run(ctx, open)
	if err == nil || vfs.IsFull(err) || fault.KindOf(err) != fault.Internal {
		return done, err
	}
	return done, fault.New(fault.Internal, "restore", "%w", err)
}

// restorer is one restore.
type restorer struct {
	fs    vfs.FS
	root  layout.Root
	state layout.State
	o     RestoreOptions
	// users and groups are the IDs of accounts here, -1 for one that is missing.
	users, groups map[string]int
	done          Restored
	folders       []folder // in the order in which they were read
}

// folder is one whose attributes are set when its content is complete.
type folder struct {
	dir vfs.Dir
	h   *tar.Header
	rel string
}

func (r *restorer) run(ctx context.Context, open func() (io.ReadCloser, error)) (Restored, error) {
	if err := r.empty(); err != nil {
		return Restored{}, err
	}
	if err := r.pass(ctx, open, r.inspect); err != nil {
		return Restored{}, err
	}
	if err := r.accounts(); err != nil {
		return Restored{}, err
	}
	for _, tmp := range []string{r.root.RestoreTemp(), r.state.RestoreTemp()} {
		if err := vfs.RemoveAll(r.fs, tmp); err != nil {
			return Restored{}, err
		}
		if err := vfs.MkdirAll(r.fs, tmp, 0o700); err != nil {
			return Restored{}, err
		}
	}
	err := r.extract(ctx, open)
	if err == nil {
		err = r.settle(ctx)
	}
	if err == nil {
		err = r.publish()
	}
	return r.done, errors.Join(err, vfs.RemoveAll(r.fs, r.root.RestoreTemp()), vfs.RemoveAll(r.fs, r.state.RestoreTemp()))
}

// pass reads the whole backup once.
func (r *restorer) pass(ctx context.Context, open func() (io.ReadCloser, error), entry entryFunc) error {
	f, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	c, err := read(ctx, f, func(Head) error { return nil }, entry)
	r.done.Contents = c
	return err
}

// empty refuses directories that a server has used.
func (r *restorer) empty() error {
	for _, path := range r.places() {
		names, err := r.fs.ReadDir(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
			continue
		}
		if err != nil {
			return err
		}
		return fault.New(fault.Refused, "restore", "%s is not empty: a backup is restored where no server was", path).
			WithHint("name an empty place with --root, or move what is there away")
	}
	return nil
}

// places returns the folders that a restore creates.
func (r *restorer) places() []string {
	return []string{r.root.Projects(), r.root.Salt(), r.root.Pillar(), r.state.Path()}
}

// inspect checks each entry before anything is written.
func (r *restorer) inspect(h *tar.Header, _ io.Reader) error {
	if err := place(h); err != nil {
		return err
	}
	r.note(r.users, h.Uname, false)
	r.note(r.groups, h.Gname, true)
	return nil
}

// note looks up an account once.
func (r *restorer) note(known map[string]int, name string, group bool) {
	if _, ok := known[name]; ok || name == "" {
		return
	}
	id, ok := r.o.Account(name, group)
	if !ok {
		id = -1
	}
	known[name] = id
}

// databaseName is the entry of the database.
var databaseName = stateDir + "/" + filepath.Base(layout.State("").Database())

// place refuses names outside the folders of a backup.
func place(h *tar.Header) error {
	top, below, _ := strings.Cut(strings.TrimSuffix(h.Name, "/"), "/")
	known := top == projectsDir || top == stateDir || top == rootDir && (below == "salt" || below == "pillar" || strings.HasPrefix(below, "salt/") || strings.HasPrefix(below, "pillar/"))
	if !known || below == "" || !filepath.IsLocal(below) || below != filepath.Clean(below) {
		return damaged("it has an entry %s", printable.Word(h.Name))
	}
	return nil
}

// accounts refuses owners that do not exist on this machine.
func (r *restorer) accounts() error {
	if os.Geteuid() != 0 {
		r.done.Unowned = true
		return nil
	}
	var users, groups []string
	for _, name := range slices.Sorted(maps.Keys(r.users)) {
		if r.users[name] < 0 {
			users = append(users, printable.Word(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.groups)) {
		if r.groups[name] < 0 {
			groups = append(groups, printable.Word(name))
		}
	}
	if r.o.MissingToRoot || len(users)+len(groups) == 0 {
		return nil
	}
	var what, how []string
	if len(groups) > 0 {
		what = append(what, "the groups "+strings.Join(groups, ", "))
		how = append(how, "for g in "+strings.Join(groups, " ")+"; do groupadd --system $g; done")
	}
	if len(users) > 0 {
		what = append(what, "the users "+strings.Join(users, ", "))
		how = append(how, "for u in "+strings.Join(users, " ")+"; do useradd --system $u; done")
	}
	return fault.New(fault.Refused, "restore", "files of the backup belong to %s, who are not on this machine", strings.Join(what, " and ")).
		WithHint("make them:  %s ; or give those files to root with --missing-to-root: the next deployment of each project makes its own accounts", strings.Join(how, "; "))
}

// extract writes every entry below the temporary folders.
func (r *restorer) extract(ctx context.Context, open func() (io.ReadCloser, error)) error {
	roots := map[string]*tree.Cursor{}
	for top, path := range map[string]string{projectsDir: r.root.RestoreTemp(), rootDir: r.root.RestoreTemp(), stateDir: r.state.RestoreTemp()} {
		d, err := r.fs.OpenDir(path)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		roots[top] = tree.NewCursor(d)
		defer roots[top].Close()
	}
	made := map[string]bool{}
	err := r.pass(ctx, open, func(h *tar.Header, content io.Reader) error {
		if err := place(h); err != nil {
			return err
		}
		top, _, _ := strings.Cut(h.Name, "/")
		if err := r.one(roots[top], made, h, content); err != nil {
			return fmt.Errorf("%s: %w", printable.Text(h.Name), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(r.folders) {
		if err := r.attributes(f.dir, f.rel, f.h); err != nil {
			return fmt.Errorf("%s: %w", printable.Text(f.h.Name), err)
		}
	}
	return nil
}

// target returns the path of an entry below a temporary folder: root/salt is salt, state/x is x.
func target(name string) string {
	name = strings.TrimSuffix(name, "/")
	if top, below, _ := strings.Cut(name, "/"); top != projectsDir {
		return below
	}
	return name
}

// one creates one entry.
func (r *restorer) one(at *tree.Cursor, made map[string]bool, h *tar.Header, content io.Reader) error {
	rel := target(h.Name)
	top, _, _ := strings.Cut(h.Name, "/")
	root := at.Root()
	for i, c := range rel { // folders that have no entry of their own
		if c == '/' && !made[top+"/"+rel[:i]] {
			if err := root.Mkdir(rel[:i], 0o700); err != nil {
				return err
			}
			made[top+"/"+rel[:i]] = true
		}
	}
	d, name, err := at.At(rel)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if !made[top+"/"+rel] {
			if err := d.Mkdir(name, 0o700); err != nil {
				return err
			}
			made[top+"/"+rel] = true
		}
		r.folders = append(r.folders, folder{root, h, rel})
		return nil
	case tar.TypeReg:
		if err := r.file(d, name, content); err != nil {
			return err
		}
	case tar.TypeLink:
		if err := place(&tar.Header{Name: h.Linkname}); err != nil {
			return err
		}
		return root.Link(target(h.Linkname), rel)
	case tar.TypeSymlink:
		if err := d.Symlink(h.Linkname, name); err != nil {
			return err
		}
	case tar.TypeFifo, tar.TypeChar, tar.TypeBlock:
		kind := map[byte]uint32{tar.TypeFifo: syscall.S_IFIFO, tar.TypeChar: syscall.S_IFCHR, tar.TypeBlock: syscall.S_IFBLK}[h.Typeflag]
		if kind != syscall.S_IFIFO && os.Geteuid() != 0 {
			return nil // only root can create devices
		}
		if err := d.Mknod(name, kind|0o600, unix.Mkdev(uint32(h.Devmajor), uint32(h.Devminor))); err != nil { //nolint:gosec // of a header that was made from 32 bits
			return err
		}
	default:
		return damaged("it has an entry of type %q", h.Typeflag)
	}
	return r.attributes(d, name, h)
}

func (r *restorer) file(d vfs.Dir, name string, content io.Reader) error {
	f, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// attributes sets owner, mode, extended attributes and time, in this order: an owner clears bits of the mode.
func (r *restorer) attributes(d vfs.Dir, name string, h *tar.Header) error {
	if !r.done.Unowned {
		if err := d.Lchown(name, r.id(r.users, h.Uname, h.Uid), r.id(r.groups, h.Gname, h.Gid)); err != nil {
			return err
		}
	}
	xs, err := tree.TarXattrs(h)
	if err != nil {
		return damaged("%w", err)
	}
	for _, x := range xs {
		err := d.SetXattr(name, x)
		if os.Geteuid() != 0 && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EOPNOTSUPP)) {
			continue // only root can set security.* and trusted.*
		}
		if err != nil {
			return fmt.Errorf("%s: %w", x.Name, err)
		}
	}
	if h.Typeflag != tar.TypeSymlink {
		if err := d.Chmod(name, r.mode(h)); err != nil {
			return err
		}
	}
	return d.Lutimes(name, h.ModTime.UnixNano())
}

// mode returns the mode of a file or folder. A file that gets another owner loses set-user-ID: its former owner set that for themselves.
func (r *restorer) mode(h *tar.Header) uint32 {
	mode := uint32(h.Mode) & 0o7777 //nolint:gosec // twelve bits
	if h.Typeflag == tar.TypeDir {
		return mode
	}
	if r.done.Unowned || h.Uname != "" && r.users[h.Uname] < 0 {
		mode &^= syscall.S_ISUID
	}
	if r.done.Unowned || h.Gname != "" && r.groups[h.Gname] < 0 {
		mode &^= syscall.S_ISGID
	}
	return mode
}

// id returns the ID of an account here; an entry without an account name keeps its number.
func (r *restorer) id(known map[string]int, name string, number int) int {
	if name == "" {
		return number
	}
	return max(known[name], 0)
}

// settle lets the caller change the restored state.
func (r *restorer) settle(ctx context.Context) error {
	if r.o.Settle == nil {
		return nil
	}
	return r.o.Settle(ctx, layout.State(r.state.RestoreTemp()))
}

// publish renames everything into place, the state last, since a server starts from that.
func (r *restorer) publish() error {
	keep := map[string]bool{}
	for _, p := range r.done.Projects {
		keep[p.Name] = true
	}
	tmp := r.root.RestoreTemp()
	projects := filepath.Join(tmp, projectsDir)
	names, err := r.fs.ReadDir(projects)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		if !keep[name] { // destroyed while the backup was made
			if err := vfs.RemoveAll(r.fs, filepath.Join(projects, name)); err != nil {
				return err
			}
		}
	}
	for _, path := range []string{tmp, r.state.RestoreTemp()} {
		if err := r.fs.SyncFS(path); err != nil {
			return err
		}
	}
	if err := r.fs.Chmod(r.state.RestoreTemp(), 0o700); err != nil {
		return err
	}
	for _, path := range r.places() {
		from := filepath.Join(tmp, filepath.Base(path))
		if path == r.state.Path() {
			from = r.state.RestoreTemp()
		}
		if there, err := vfs.Exists(r.fs, from); err != nil || !there {
			if err != nil {
				return err
			}
			continue
		}
		if err := r.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := vfs.RenameDurable(r.fs, from, path); err != nil {
			return err
		}
	}
	return nil
}
