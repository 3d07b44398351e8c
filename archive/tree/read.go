package tree

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"corpus-git/internal/vfs"
)

// Reader reads the entries of a live tree into memory, for an archive that is written as a file at once. Like a Copier it records in the
// entries what it found: changes since the scan, and extended attributes.
type Reader struct{ b *Copier }

// NewReader prepares to read entries, in byte order of paths, that a Plan was made for.
func NewReader(src vfs.Dir, entries []Entry, p *Plan) *Reader {
	return &Reader{NewCopier(CopyOptions{Src: src, Entries: entries, Plan: p})}
}

// Content is what a Reader read of an entry, besides what is in the entry.
type Content struct {
	Data   []byte // of a regular file
	Xattrs []vfs.Xattr
}

// ErrTooLarge is wrapped if a file is too large to be read into memory.
var ErrTooLarge = errors.New("too large to be read at once")

// maxRead is the size of the largest file that is read into memory.
const maxRead = 16 << 20

// Read reads the entry with this index; ok is false if it vanished, or is something that no archive holds. Different entries may be read at
// the same time, each with a cursor of its own goroutine.
func (r *Reader) Read(ctx context.Context, i int, c *Cursor) (out Content, ok bool, err error) {
	e := &r.b.Entries[i]
	if e.IsDir() {
		out.Xattrs, err = r.b.wantedDir(e)
		if errors.Is(err, errVanished) {
			r.b.note(func(n *Notes) { n.Vanished++ })
			e.Xattrs = XattrDigest(nil) // the rest is as it was when the folder was listed
			err = nil
		}
		return out, err == nil, err
	}
	d, name, err := c.At(e.Path)
	switch {
	case Vanished(err):
		err = errVanished
	case err != nil:
		return out, false, err
	case e.IsRegular():
		out, err = r.regular(ctx, e, d, name)
	case !TarHolds(e):
		err = r.b.skip(e)
	default:
		out.Xattrs, err = r.b.wanted(e, d, name)
	}
	switch {
	case errors.Is(err, errSkip):
		return out, false, nil
	case errors.Is(err, errVanished):
		r.b.vanish(i)
		return out, false, nil
	}
	return out, err == nil, Named(c.path, err)
}

func (r *Reader) regular(ctx context.Context, e *Entry, d vfs.Dir, name string) (out Content, err error) {
	in, err := d.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		if Vanished(err) {
			return out, errVanished
		}
		return out, err
	}
	defer func() { _ = in.Close() }() // opened for reading
	st, err := in.Stat()
	if err != nil {
		return out, err
	}
	if !st.IsRegular() {
		return out, errVanished
	}
	err = r.b.settle(e, st, func(try int) (int64, vfs.Stat, error) {
		if err := ctx.Err(); err != nil {
			return 0, vfs.Stat{}, err
		}
		if try > 0 {
			if _, err := in.Seek(0, io.SeekStart); err != nil {
				return 0, vfs.Stat{}, err
			}
		}
		if out.Data, err = readAll(in, st.Size); err != nil {
			return 0, vfs.Stat{}, err
		}
		st, err = in.Stat()
		return int64(len(out.Data)), st, err
	})
	if err != nil {
		return out, err
	}
	// Content that differs although every time is the same is another version.
	if sum := sha256.Sum256(out.Data); e.Sum != Sum(sum[:len(Sum{})]) {
		if e.Sum.Known() {
			e.Version = r.b.Plan.version.Add(1)
		}
		e.Sum = Sum(sum[:len(Sum{})])
	}
	out.Xattrs, err = in.Xattrs()
	e.Xattrs = XattrDigest(out.Xattrs)
	return out, err
}

// readAll reads a file to its end. size is what it should have: a read that ends there has come to the end, or the file has changed since,
// which its stat shows afterwards.
func readAll(in io.Reader, size int64) ([]byte, error) {
	data := make([]byte, 0, min(size, maxRead)+1)
	for {
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF), err == nil && int64(len(data)) == size:
			return data, nil
		case err != nil:
			return nil, err
		case len(data) > maxRead:
			return nil, fmt.Errorf("%w: %d bytes and more", ErrTooLarge, len(data))
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

// Follow gives an entry what was read of another name of the same file.
func (r *Reader) Follow(i, first int) {
	name := r.b.Entries[i].Path
	r.b.Entries[i] = r.b.Entries[first]
	r.b.Entries[i].Path = name
}

// Entries returns the entries without those that vanished, once everything was read.
func (r *Reader) Entries() []Entry {
	r.b.drop()
	return r.b.Entries
}

// Notes returns what could not be read exactly.
func (r *Reader) Notes() Notes { return r.b.notes }
