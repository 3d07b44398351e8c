package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"corpus-git/internal/vfs"
)

// Writer creates the entries of a tree one by one, with content from any source, such as a tar. Write may be called from many goroutines,
// the rest from one.
type Writer struct {
	b       *Copier
	leaders map[uint32]int
	links   []int // entries to be linked at the end
	dirs    map[int][]vfs.Xattr
}

// NewWriter prepares to write entries, in byte order of paths, to an existing empty folder. It records the identities of the new files in
// them.
func NewWriter(dst vfs.Dir, entries []Entry, workers int, progress func(Progress)) *Writer {
	b := NewCopier(CopyOptions{Dst: dst, Entries: entries, Plan: PlanAll(entries), Workers: workers, TrustAttrs: true, Progress: progress})
	for i := range entries {
		if !entries[i].IsDir() {
			b.done.TotalFiles++
			b.done.TotalBytes += entries[i].Size
		}
	}
	return &Writer{b: b, leaders: map[uint32]int{}, dirs: map[int][]vfs.Xattr{}}
}

// Mkdirs makes all folders; call it first.
func (w *Writer) Mkdirs(ctx context.Context) error { return w.b.mkdirs(ctx) }

// Done counts finished entries, for the progress.
func (w *Writer) Done(files, bytes int64) { w.b.report(files, bytes) }

// Dir sets the extended attributes that Finish gives to the folder with this index.
func (w *Writer) Dir(i int, xs []vfs.Xattr) {
	if len(xs) > 0 {
		w.dirs[i] = xs
	}
}

// Link makes the entry with this index a hard link in Finish.
func (w *Writer) Link(i int) { w.links = append(w.links, i) }

// First reports whether the entry with this index is the first of its hard-link group, which must be written; the others are linked in
// Finish.
func (w *Writer) First(i int) bool {
	link := w.b.Entries[i].Link
	if _, ok := w.leaders[link]; ok {
		w.Link(i)
		return false
	}
	w.leaders[link] = i
	return true
}

// Write creates one entry that is not a folder, with extended attributes; content writes that of a regular file, which is new and empty.
func (w *Writer) Write(e *Entry, xs []vfs.Xattr, c *Cursor, content func(vfs.File) error) error {
	d, name, err := c.At(e.Path)
	if err != nil {
		return err
	}
	if !e.IsRegular() {
		if err := w.special(e, xs, d, name); err != nil {
			return Named(c.path, err)
		}
		return nil
	}
	return Named(c.path, w.regular(e, content, xs, d, name))
}

func (w *Writer) special(e *Entry, xs []vfs.Xattr, d vfs.Dir, name string) error {
	err := w.b.makeSpecial(e, d, name)
	if err != nil {
		if errors.Is(err, errSkip) {
			return nil
		}
		return err
	}
	return w.b.setAttrs(e, xs, d, name)
}

func (w *Writer) regular(e *Entry, content func(vfs.File) error, xs []vfs.Xattr, d vfs.Dir, name string) (err error) {
	out, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	if err := content(out); err != nil {
		return err
	}
	if err := w.b.own(e, out.Chown); err != nil {
		return err
	}
	if _, err := w.b.setXattrs(e, xs, d, name); err != nil {
		return err
	}
	if err := out.Chmod(e.Mode & 0o7777); err != nil {
		return err
	}
	if err := out.Utimes(e.Mtime); err != nil {
		return err
	}
	made, err := out.Stat()
	e.Copy = IdentOf(made)
	return err
}

// ErrLink is wrapped if a hard link comes without its file.
var ErrLink = errors.New("nothing to link to")

// Finish creates the hard links, and sets the attributes of folders bottom-up.
func (w *Writer) Finish() error {
	for _, i := range w.links {
		e := &w.b.Entries[i]
		l, ok := w.leaders[e.Link]
		if !ok {
			return fmt.Errorf("%w: %q", ErrLink, e.Path)
		}
		if err := w.b.Dst.Link(w.b.Entries[l].Path, e.Path); err != nil {
			return err
		}
	}
	for _, l := range w.leaders {
		st, err := w.b.Dst.Lstat(w.b.Entries[l].Path) // its ctime moved with every link
		if err != nil {
			return err
		}
		w.b.Entries[l].Copy = IdentOf(st)
	}
	for _, i := range w.links {
		w.b.Entries[i].Copy = w.b.Entries[w.leaders[w.b.Entries[i].Link]].Copy
	}
	w.b.report(int64(len(w.links)), 0)
	for i := range slices.Backward(w.b.Entries) {
		e := &w.b.Entries[i]
		if !e.IsDir() {
			continue
		}
		d, err := w.b.Dst.OpenDir(e.Path)
		if err != nil {
			return err
		}
		err = w.b.setDir(e, w.dirs[i], d)
		if cerr := d.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
