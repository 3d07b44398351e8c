package tree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"corpus-git/internal/vfs"
)

// one makes one entry that is not a folder. ok is false if it vanished or was skipped.
func (b *Copier) one(ctx context.Context, i int, src, dst *Cursor) (ok bool, err error) {
	e := &b.Entries[i]
	sd, sname, serr := src.At(e.Path)
	if serr != nil && !Vanished(serr) {
		return false, serr
	}
	dd, dname, err := dst.At(e.Path)
	if err != nil {
		return false, err
	}
	name := dname
	if b.InPlace {
		name = vfs.TempName(dname)
	}
	switch {
	case serr != nil:
		err = errVanished
	case e.IsRegular():
		err = b.regular(ctx, e, sd, sname, dd, name, dst.plain)
	default:
		err = b.special(e, sd, sname, dd, name)
	}
	switch {
	case errors.Is(err, errSkip):
		return false, nil
	case errors.Is(err, errVanished):
		_ = dd.Remove(name) // left from an earlier archive or an interrupted copy
		b.vanish(i)
		return false, nil
	case err != nil:
		if b.InPlace {
			_ = dd.Remove(name)
		}
		return false, Named(dst.path, err)
	}
	if b.InPlace {
		if err := dd.Rename(name, dname); err != nil {
			_ = dd.Remove(name)
			return false, err
		}
		st, err := dd.Lstat(dname)
		if err != nil {
			return false, err
		}
		e.Copy = IdentOf(st)
	}
	if b.made != nil {
		b.made[i] = true
	}
	return true, nil
}

var (
	errVanished = errors.New("vanished")
	errSkip     = errors.New("skipped")
)

func (b *Copier) vanish(i int) {
	b.mu.Lock()
	b.dropped[i] = true
	b.notes.Vanished++
	b.mu.Unlock()
}

// clear makes a name available: if something exists there, creating fails with EEXIST, and it is removed before a second attempt.
func clear(dd vfs.Dir, name string, create func() error) error {
	err := create()
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := dd.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return create()
}

// regular copies a regular file. A file that changes while it is read is read again; one that changes every time is kept as last read, and
// recorded in the notes. plain is that of the cursor.
func (b *Copier) regular(ctx context.Context, e *Entry, sd vfs.Dir, sname string, dd vfs.Dir, name string, plain bool) (err error) {
	in, err := sd.OpenFile(sname, os.O_RDONLY, 0)
	if err != nil {
		if Vanished(err) {
			return errVanished
		}
		return err
	}
	defer func() { _ = in.Close() }() // opened for reading: nothing is lost
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if !st.IsRegular() {
		return errVanished
	}
	perm := e.Mode & 0o777 // nobody else has access to the folder of an unfinished copy
	if b.InPlace {
		perm = 0o600
	}
	var out vfs.File
	old := int64(-1)
	if !b.Rewrite || st.Blocks*512 < st.Size { // a hole is one only in a new file
		err = clear(dd, name, func() (err error) {
			out, err = dd.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
			return err
		})
	} else {
		out, old, err = Recreate(dd, name, perm)
	}
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	if err := b.content(ctx, e, in, out, st); err != nil {
		return err
	}
	want, err := in.Xattrs()
	if err != nil {
		return err
	}
	if !b.TrustAttrs {
		e.Xattrs = XattrDigest(want)
	}
	if old > e.Size {
		if err := out.Truncate(e.Size); err != nil {
			return err
		}
	}
	if old >= 0 && plain {
		has, err := out.Xattrs()
		if err != nil {
			return err
		}
		plain = len(has) == 0
	}
	made, err := out.Stat()
	if err != nil {
		return err
	}
	// After chown(2), which may clear mode bits, and before ACLs, which contain the mode.
	chmod := made.Perm() != e.Mode&0o7777
	if made.UID != e.UID || made.GID != e.GID {
		chmod = true
		if err := b.own(e, out.Chown); err != nil {
			return err
		}
	}
	if len(want) > 0 || !plain {
		chmod = true
		if _, err := b.setXattrs(e, want, dd, name); err != nil {
			return err
		}
	}
	if chmod {
		if err := out.Chmod(e.Mode & 0o7777); err != nil {
			return err
		}
	}
	if err := out.Utimes(e.Mtime); err != nil {
		return err
	}
	made, err = out.Stat()
	e.Copy = IdentOf(made)
	return err
}

// content copies the content of a file whose stat at opening was st.
func (b *Copier) content(ctx context.Context, e *Entry, in, out vfs.File, st vfs.Stat) error {
	return b.settle(e, st, func(try int) (int64, vfs.Stat, error) {
		if try > 0 {
			if err := rewind(in, out); err != nil {
				return 0, vfs.Stat{}, err
			}
		}
		n, err := out.CopyFrom(ctx, in)
		if err != nil {
			return 0, vfs.Stat{}, err
		}
		after, err := in.Stat()
		return n, after, err
	})
}

// settle reads a file, whose stat at opening was st, until it did not change meanwhile, and records in its entry what was read. read
// returns how much it read, and the stat afterwards.
func (b *Copier) settle(e *Entry, st vfs.Stat, read func(try int) (int64, vfs.Stat, error)) error {
	stable := false
	var copied int64
	for try := 0; try < readTries && !stable; try++ {
		n, after, err := read(try)
		if err != nil {
			return err
		}
		copied = n
		stable = n == after.Size && after.Size == st.Size && after.Mtime == st.Mtime && after.Ctime == st.Ctime
		st = after
	}
	if !b.TrustAttrs {
		if IdentOf(st) != e.Live || st.Size != e.Size {
			e.Version, e.Sum = b.Plan.version.Add(1), Sum{}
		}
		e.fill(st)
	}
	if !stable {
		if !b.TrustAttrs {
			e.Size, e.Sum = copied, Sum{} // what the archive has
		}
		e.Flags |= FlagUnstable
		b.note(func(n *Notes) { n.Unstable++; n.UnstableNames = noteName(n.UnstableNames, e.Path) })
	}
	return nil
}

func rewind(in, out vfs.File) error {
	for _, f := range []vfs.File{in, out} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return out.Truncate(0)
}

// special creates a symbolic link, a fifo or a device.
func (b *Copier) special(e *Entry, sd vfs.Dir, sname string, dd vfs.Dir, name string) error {
	if err := clear(dd, name, func() error { return b.makeSpecial(e, dd, name) }); err != nil {
		return err
	}
	return b.attrs(e, sd, sname, dd, name)
}

func (b *Copier) makeSpecial(e *Entry, dd vfs.Dir, name string) error {
	var err error
	switch e.Type() {
	case syscall.S_IFLNK:
		err = dd.Symlink(e.Target, name)
	case syscall.S_IFIFO:
		err = dd.Mknod(name, syscall.S_IFIFO|0o600, 0)
	case syscall.S_IFCHR, syscall.S_IFBLK:
		if err = dd.Mknod(name, e.Type()|0o600, e.Rdev); errors.Is(err, syscall.EPERM) {
			return b.skip(e)
		}
	default:
		return b.skip(e)
	}
	return err
}

func (b *Copier) skip(e *Entry) error {
	e.Flags |= FlagSkipped
	e.Copy = Ident{}
	b.note(func(n *Notes) { n.Skipped++; n.SkippedNames = noteName(n.SkippedNames, e.Path) })
	return errSkip
}

// attrs sets everything but content by path, and records the identity of the copy.
func (b *Copier) attrs(e *Entry, sd vfs.Dir, sname string, dd vfs.Dir, name string) error {
	want, err := b.wanted(e, sd, sname)
	if err != nil {
		return err
	}
	return b.setAttrs(e, want, dd, name)
}

// setAttrs is attrs with known extended attributes. chown clears setuid, so modes come after.
func (b *Copier) setAttrs(e *Entry, want []vfs.Xattr, dd vfs.Dir, name string) error {
	st, err := dd.Lstat(name)
	if err != nil {
		return err
	}
	chmod := st.Perm() != e.Mode&0o7777
	if st.UID != e.UID || st.GID != e.GID {
		chmod = true
		if err := b.own(e, func(uid, gid int) error { return dd.Lchown(name, uid, gid) }); err != nil {
			return err
		}
	}
	changed, err := b.setXattrs(e, want, dd, name)
	if err != nil {
		return err
	}
	// Times before the mode: a folder without x refuses its own ".".
	if err := dd.Lutimes(name, e.Mtime); err != nil {
		return err
	}
	if e.Type() != syscall.S_IFLNK && (chmod || changed) {
		if err := dd.Chmod(name, e.Mode&0o7777); err != nil {
			return err
		}
	}
	st, err = dd.Lstat(name)
	e.Copy = IdentOf(st)
	return err
}

// own sets the owner; it distinguishes an ordinary user's lack of permission from a failure.
func (b *Copier) own(e *Entry, chown func(uid, gid int) error) error {
	err := chown(int(e.UID), int(e.GID))
	if !errors.Is(err, syscall.EPERM) {
		return err
	}
	_ = chown(-1, int(e.GID)) // the group alone may be allowed
	b.flag(e, FlagOwner)
	b.note(func(n *Notes) { n.Owners++ })
	return nil
}

// wanted reads the extended attributes of a source.
func (b *Copier) wanted(e *Entry, sd vfs.Dir, sname string) ([]vfs.Xattr, error) {
	want, err := sd.Xattrs(sname)
	if err != nil {
		if Vanished(err) {
			return nil, errVanished
		}
		return nil, err
	}
	if !b.TrustAttrs {
		e.Xattrs = XattrDigest(want)
	}
	return want, nil
}

// setXattrs makes the extended attributes equal to the wanted ones; changed reports whether it had to write.
func (b *Copier) setXattrs(e *Entry, want []vfs.Xattr, dd vfs.Dir, name string) (changed bool, err error) {
	have, err := dd.Xattrs(name)
	if err != nil {
		return false, err
	}
	if len(want) == 0 && len(have) == 0 {
		return false, nil
	}
	lost := false
	set := func(x vfs.Xattr) error {
		changed = true
		err := dd.SetXattr(name, x)
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EOPNOTSUPP) {
			lost = true
			return nil
		}
		return err
	}
	for _, h := range have {
		if !slices.ContainsFunc(want, func(w vfs.Xattr) bool { return w.Name == h.Name }) {
			if err := set(vfs.Xattr{Name: h.Name}); err != nil {
				return changed, err
			}
		}
	}
	for _, w := range want {
		if slices.ContainsFunc(have, func(h vfs.Xattr) bool { return h.Name == w.Name && string(h.Value) == string(w.Value) }) {
			continue
		}
		if err := set(w); err != nil {
			return changed, err
		}
	}
	if lost {
		b.flag(e, FlagXattr)
		b.note(func(n *Notes) { n.Xattrs++ })
	}
	return changed, nil
}

// finishDir sets the attributes of a folder once its content is complete.
func (b *Copier) finishDir(i int) error {
	e := &b.Entries[i]
	d, err := b.Dst.OpenDir(e.Path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	want, err := b.wantedDir(e)
	if errors.Is(err, errVanished) {
		b.note(func(n *Notes) { n.Vanished++ })
		if !b.TrustAttrs {
			e.Xattrs = XattrDigest(nil) // the rest is as it was when the folder was listed
		}
		err = nil
	}
	if err != nil {
		return err
	}
	return b.setDir(e, want, d)
}

// wantedDir is wanted for a folder, and notes a folder that has changed since it was listed.
func (b *Copier) wantedDir(e *Entry) ([]vfs.Xattr, error) {
	if b.TrustAttrs {
		return b.wanted(e, b.Src, e.Path)
	}
	st, err := b.Src.Lstat(e.Path)
	switch {
	case Vanished(err) || (err == nil && !st.IsDir()):
		return nil, errVanished
	case err != nil:
		return nil, err
	case st.Ctime != e.Live.Ctime:
		e.Flags |= FlagUnstable
		b.note(func(n *Notes) { n.Unstable++; n.UnstableNames = noteName(n.UnstableNames, e.Path) })
	}
	return b.wanted(e, b.Src, e.Path)
}

// setDir sets the attributes of an open folder.
func (b *Copier) setDir(e *Entry, want []vfs.Xattr, d vfs.Dir) error {
	err := b.setAttrs(e, want, d, ".")
	if errors.Is(err, fs.ErrPermission) && e.Mode&0o100 == 0 {
		// Without x not even the owner may stat "."; stat it from the parent.
		var st vfs.Stat
		if st, err = b.Dst.Lstat(e.Path); err == nil {
			e.Copy = IdentOf(st)
		}
	}
	return Named(e.Path, err)
}

// Cursor opens the folder of a path, and keeps it open for following paths in it.
type Cursor struct {
	root vfs.Dir
	path string
	d    vfs.Dir
	// target is set if files are created here.
	target bool
	// plain reports that files created in the folder get no extended attributes from it: neither from a default ACL (acl(5), "Object
	// creation and default ACLs") nor a label of a security module.
	plain bool
}

// NewCursor starts at the root of a tree.
func NewCursor(root vfs.Dir) *Cursor { return &Cursor{root: root} }

// Root returns the folder that the cursor started at.
func (c *Cursor) Root() vfs.Dir { return c.root }

// Path returns the path of the open folder.
func (c *Cursor) Path() string { return c.path }

// At opens the folder of a path, which stays open until the next call, and returns it with the last part of the path.
func (c *Cursor) At(p string) (d vfs.Dir, name string, err error) {
	i := strings.LastIndexByte(p, '/')
	if i < 0 {
		c.plain = false
		return c.root, p, nil
	}
	if c.d == nil || c.path != p[:i] {
		c.Close()
		d, err := c.root.OpenDir(p[:i])
		if err != nil {
			return nil, "", err
		}
		c.d, c.path = d, p[:i]
		if c.target {
			xs, err := d.Xattrs(".")
			if err != nil {
				return nil, "", Named(c.path, err)
			}
			c.plain = len(xs) == 0
		}
	}
	return c.d, p[i+1:], nil
}

// Close closes the folders.
func (c *Cursor) Close() {
	if c.d != nil {
		_ = c.d.Close() // opened for reading
		c.d = nil
	}
}
