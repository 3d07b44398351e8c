package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"corpus-git/cluster/wal"
	"corpus-git/internal/vfs"
)

// ErrDiffers means that a batch does not fit the files here, which must be copied.
var ErrDiffers = errors.New("the state of this hub differs from what the log continues")

// synced is how many files of a batch are made durable one by one; more are with their whole file system.
const synced = 24

// applier applies one batch.
type applier struct {
	Files
	r *records
	// loose allows a tail that does not follow what is in the file: a copy was made while the file grew, and the log has the rest.
	loose bool
	files int
	dirs  map[string]bool
}

// Apply applies a batch. It is durable on return. loose is for batches that were captured while this hub's copy was made. After an error it must be applied again, or a copy be made.
func (f Files) Apply(ctx context.Context, batch io.Reader, loose bool) error {
	r, err := readBatch(batch)
	if err != nil {
		return err
	}
	defer r.z.Close()
	a := &applier{Files: f, r: r, loose: loose, dirs: map[string]bool{}}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			return a.sync()
		}
		if err == nil {
			err = a.apply(rec)
		}
		if err != nil {
			if rec.Kind == pages {
				return fmt.Errorf("change of the database: %w", err)
			}
			return fmt.Errorf("change of %q: %w", rec.Name, err)
		}
	}
}

// apply applies one record, and reads its content.
func (a *applier) apply(rec record) error {
	if rec.Kind == pages {
		return a.pages(rec)
	}
	name := string(rec.Name)
	if !a.valid(name) {
		return errors.New("hubs do not have this in common")
	}
	path := a.at(name)
	if rec.Kind != gone {
		if err := vfs.MkdirAll(a.FS, filepath.Dir(path), 0o700); err != nil {
			return err
		}
	}
	switch rec.Kind {
	case whole:
		return a.whole(path, rec)
	case tail:
		return a.tail(path, rec)
	case attrs:
		return a.attributes(path, rec)
	case folder:
		return a.folder(path, rec)
	case link:
		return a.link(path, rec)
	case gone:
		a.dirs[filepath.Dir(path)] = true
		return vfs.RemoveAll(a.FS, path)
	}
	return fmt.Errorf("this version does not know changes of the kind %q", rec.Kind)
}

// sync makes everything durable.
func (a *applier) sync() error {
	if a.files > synced || len(a.dirs) > synced {
		for _, path := range []string{a.State.Path(), a.Root.Projects()} {
			if err := a.FS.SyncFS(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	}
	for dir := range a.dirs {
		if err := vfs.SyncDir(a.FS, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// temp returns the name beside a path where its new content is written: the same each time, so that nothing is left when a batch is applied again.
func temp(path string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(filepath.Base(path))) // never fails: hash.Hash
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".tmp-%016x", h.Sum64()))
}

// whole replaces a file.
func (a *applier) whole(path string, rec record) error {
	if err := a.make(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, rec, func(h vfs.File) error {
		n, err := io.Copy(struct{ io.Writer }{h}, io.LimitReader(a.r.r, rec.Size))
		if err == nil && n != rec.Size {
			err = io.ErrUnexpectedEOF
		}
		return err
	}); err != nil {
		return err
	}
	return a.place(path)
}

// make writes the file at temp(path).
func (a *applier) make(path string, flag int, rec record, write func(vfs.File) error) error {
	h, err := a.FS.OpenFile(temp(path), flag, 0o600)
	if err != nil {
		return err
	}
	err = write(h)
	if err == nil {
		err = a.finish(h, rec)
	}
	return errors.Join(err, h.Close())
}

// finish sets the attributes of an open file, and makes it durable.
func (a *applier) finish(h vfs.File, rec record) error {
	if err := permitted(h.Chown(int(rec.UID), int(rec.GID))); err != nil {
		return err
	}
	if err := h.Chmod(rec.Mode); err != nil {
		return err
	}
	if err := h.Utimes(rec.Mtime); err != nil {
		return err
	}
	a.files++
	if a.files > synced {
		return nil
	}
	return h.Sync()
}

// permitted ignores that only root may give a file to others.
func permitted(err error) error {
	if errors.Is(err, syscall.EPERM) {
		return nil
	}
	return err
}

// place gives what is at temp(path) its name.
func (a *applier) place(path string) error {
	if st, err := a.FS.Lstat(path); err == nil && st.IsDir() {
		if err := vfs.RemoveAll(a.FS, path); err != nil {
			return err
		}
	}
	a.dirs[filepath.Dir(path)] = true
	return a.FS.Rename(temp(path), path)
}

// tail writes the end of a file.
func (a *applier) tail(path string, rec record) error {
	h, err := a.FS.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = func() error {
		st, err := h.Stat()
		if err != nil {
			return err
		}
		if st.Size < rec.At && !a.loose {
			return ErrDiffers
		}
		if _, err := h.Seek(rec.At, io.SeekStart); err != nil {
			return err
		}
		n, err := io.Copy(struct{ io.Writer }{h}, io.LimitReader(a.r.r, rec.Size))
		if err == nil && n != rec.Size {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = h.Truncate(rec.At + rec.Size)
		}
		if err == nil {
			err = a.finish(h, rec)
		}
		return err
	}()
	a.dirs[filepath.Dir(path)] = true
	return errors.Join(err, h.Close())
}

// attributes sets those of a file.
func (a *applier) attributes(path string, rec record) error {
	h, err := a.FS.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if a.loose {
			return nil // it is removed later on
		}
		return ErrDiffers
	}
	if err != nil {
		return err
	}
	return errors.Join(a.finish(h, rec), h.Close())
}

func (a *applier) folder(path string, rec record) error {
	st, err := a.FS.Lstat(path)
	if err == nil && !st.IsDir() {
		if err := a.FS.Remove(path); err != nil {
			return err
		}
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = a.FS.Mkdir(path, 0o700)
	}
	if err == nil {
		err = permitted(a.FS.Lchown(path, int(rec.UID), int(rec.GID)))
	}
	if err == nil {
		err = a.FS.Chmod(path, rec.Mode)
	}
	a.dirs[path], a.dirs[filepath.Dir(path)] = true, true
	return err
}

func (a *applier) link(path string, rec record) error {
	if err := a.FS.Remove(temp(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := a.FS.Symlink(string(rec.Target), temp(path)); err != nil {
		return err
	}
	if err := permitted(a.FS.Lchown(temp(path), int(rec.UID), int(rec.GID))); err != nil {
		return err
	}
	return a.place(path)
}

// pages applies a change of the database.
func (a *applier) pages(rec record) error {
	if rec.PageSize < 512 || rec.PageSize > 65536 || rec.Size%int64(4+rec.PageSize) != 0 {
		return errors.New("a change of the database has a wrong size")
	}
	path := a.State.Database()
	if err := wal.RemoveLog(a.FS, path); err != nil {
		return err
	}
	c, err := wal.OpenCopy(a.FS, path, rec.PageSize)
	if err != nil {
		return err
	}
	page := make([]byte, 4+rec.PageSize)
	for left := rec.Size; left > 0; left -= int64(len(page)) {
		_, err := io.ReadFull(a.r.r, page)
		if err == nil {
			err = c.Page(binary.BigEndian.Uint32(page), page[4:])
		}
		if err != nil {
			c.Abandon()
			return noEOF(err)
		}
	}
	a.dirs[filepath.Dir(path)] = true
	return c.Close(rec.Pages)
}
