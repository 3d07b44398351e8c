package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"corpus-git/internal/vfs"
)

const (
	// smallFile is what is handed to a worker in memory; larger files are written by whoever reads the tar.
	smallFile = 1 << 20
	// sparseBlock is the smallest hole.
	sparseBlock = 4096
)

// unpacker makes folders of the packed trees of an archive. The manifest says what there is and what it is like: names in
// the tar only choose among its entries, everything is made anew below an open folder, and no link is ever followed.
// One goroutine reads, the others write.
type unpacker struct {
	*builder
	ctx     context.Context
	m       *Manifest
	batches chan []unpacked
	wg      sync.WaitGroup
	failed  context.CancelCauseFunc

	batch   []unpacked
	bytes   int64
	leaders map[uint32]int
	links   []int // entries to link to their leaders in the end
	dirs    map[int][]vfs.Xattr
}

// unpacked is one entry to write.
type unpacked struct {
	i       int
	content []byte
	xattrs  []vfs.Xattr
}

// unpack writes the packed trees of an archive to a folder that is there and empty. Nothing is synced. It gives the
// entries with the identities of the new files.
func (s *Store) unpack(ctx context.Context, a Archive, m *Manifest, dst vfs.Dir, progress func(Progress)) ([]Entry, error) {
	entries := slices.Clone(m.Entries)
	b := &builder{dst: dst, entries: entries, acts: make([]action, len(entries)), workers: s.cfg.Workers, trustAttrs: true, version: newVersions(), progress: progress}
	for i := range entries {
		if !entries[i].IsDir() {
			b.done.TotalFiles++
			b.done.TotalBytes += entries[i].Size
		}
	}
	if err := b.mkdirs(ctx); err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u := &unpacker{
		builder: b, ctx: inner, m: m, failed: cancel, batches: make(chan []unpacked, s.cfg.Workers),
		leaders: map[uint32]int{}, dirs: map[int][]vfs.Xattr{},
	}
	for range s.cfg.Workers {
		u.wg.Go(u.work)
	}
	seen, err := s.eachPacked(a, m, nil, func() error { return context.Cause(inner) }, nil, u.take)
	if err == nil {
		err = u.flush()
	}
	close(u.batches)
	u.wg.Wait()
	if cause := context.Cause(inner); cause != nil {
		err = cause
	}
	if err == nil {
		err = complete(m, seen)
	}
	if err == nil {
		err = u.finish()
	}
	return entries, err
}

// take handles what the tar has next.
func (u *unpacker) take(i int, h *tar.Header, r io.Reader) error {
	if i < 0 {
		return fmt.Errorf("%w: %q is not in its manifest", ErrNotWhole, h.Name)
	}
	if what := headerDiffers(u.m, i, h); what != "" {
		return fmt.Errorf("%w: %s of %q is not as its manifest says", ErrNotWhole, what, h.Name)
	}
	xs, err := tarXattrs(h)
	if err != nil {
		return err
	}
	e := &u.entries[i]
	switch {
	case e.IsDir():
		if len(xs) > 0 {
			u.dirs[i] = xs
		}
		return nil
	case h.Typeflag == tar.TypeLink:
		u.links = append(u.links, i)
		return nil
	case e.Link != 0:
		if _, ok := u.leaders[e.Link]; ok { // the other tree has it too
			u.links = append(u.links, i)
			return u.drain(e, r)
		}
		u.leaders[e.Link] = i
	}
	if e.IsRegular() && e.Size > smallFile {
		c := cursor{root: u.dst}
		defer c.close()
		if err := u.write(e, r, xs, &c); err != nil {
			return err
		}
		u.report(1, e.Size)
		return nil
	}
	next := unpacked{i: i, xattrs: xs}
	if e.IsRegular() {
		next.content = make([]byte, e.Size)
		if _, err := io.ReadFull(r, next.content); err != nil {
			return err
		}
	}
	u.batch = append(u.batch, next)
	u.bytes += e.Size
	if len(u.batch) >= batchFiles || u.bytes >= batchBytes {
		return u.flush()
	}
	return nil
}

// drain reads content that is there already, and proves it.
func (u *unpacker) drain(e *Entry, r io.Reader) error {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return err
	}
	if e.Sum.Known() && sumOf(h) != e.Sum {
		return rotten(e)
	}
	return nil
}

func rotten(e *Entry) error {
	return fmt.Errorf("%w: %q has another content than was recorded", ErrNotWhole, e.Path)
}

func (u *unpacker) flush() error {
	if len(u.batch) == 0 {
		return nil
	}
	select {
	case u.batches <- u.batch:
	case <-u.ctx.Done():
		return context.Cause(u.ctx)
	}
	u.batch, u.bytes = nil, 0
	return nil
}

func (u *unpacker) work() {
	for batch := range u.batches {
		if u.ctx.Err() != nil {
			continue // drain
		}
		if err := u.some(batch); err != nil {
			u.failed(err)
		}
	}
}

func (u *unpacker) some(batch []unpacked) error {
	c := cursor{root: u.dst}
	defer c.close()
	var bytes int64
	for _, n := range batch {
		e := &u.entries[n.i]
		var r io.Reader
		if e.IsRegular() {
			r = &bytesReader{n.content}
		}
		if err := u.write(e, r, n.xattrs, &c); err != nil {
			return err
		}
		bytes += e.Size
	}
	u.report(int64(len(batch)), bytes)
	return nil
}

// bytesReader is a bytes.Reader without WriteTo: copies go through the blocks that find holes.
type bytesReader struct{ b []byte }

func (r *bytesReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

// write makes one entry that is no folder; r is the content of a regular file.
func (u *unpacker) write(e *Entry, r io.Reader, xs []vfs.Xattr, c *cursor) error {
	d, name, err := c.at(e.Path)
	if err != nil {
		return err
	}
	if !e.IsRegular() {
		if err := u.special(e, xs, d, name); err != nil {
			return named(c.path, err)
		}
		return nil
	}
	return named(c.path, u.regular(e, r, xs, d, name))
}

func (u *unpacker) special(e *Entry, xs []vfs.Xattr, d vfs.Dir, name string) error {
	err := u.makeSpecial(e, d, name)
	if err != nil {
		if errors.Is(err, errSkip) {
			return nil
		}
		return err
	}
	return u.setAttrs(e, xs, d, name)
}

func (u *unpacker) regular(e *Entry, r io.Reader, xs []vfs.Xattr, d vfs.Dir, name string) (err error) {
	out, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	if err := writeContent(e, out, r); err != nil {
		return err
	}
	if err := u.own(e, out.Chown); err != nil {
		return err
	}
	if _, err := u.setXattrs(e, xs, d, name); err != nil {
		return err
	}
	if err := out.Chmod(e.Mode & 0o7777); err != nil {
		return err
	}
	if err := out.Utimes(e.Mtime); err != nil {
		return err
	}
	made, err := out.Stat()
	e.Copy = ident(made)
	return err
}

// writeContent writes the content of a regular file, and proves it while it does. Where the file had holes, whole blocks
// of zeros become holes.
func writeContent(e *Entry, out vfs.File, r io.Reader) error {
	sum := sha256.New()
	buf := make([]byte, min(max(e.Size, 1), 256<<10))
	sparse := e.Blocks*512 < e.Size
	var off int64
	hole := false
	for off < e.Size {
		n, err := io.ReadFull(r, buf[:min(int64(len(buf)), e.Size-off)])
		if err != nil {
			return err
		}
		_, _ = sum.Write(buf[:n]) // never fails: hash.Hash
		for block := range slices.Chunk(buf[:n], chunk(sparse, n)) {
			if sparse && zero(block) {
				hole = true
			} else {
				if hole {
					if _, err := out.Seek(off, io.SeekStart); err != nil {
						return err
					}
					hole = false
				}
				if _, err := out.Write(block); err != nil {
					return err
				}
			}
			off += int64(len(block))
		}
	}
	if e.Sum.Known() && sumOf(sum) != e.Sum {
		return rotten(e)
	}
	if sparse {
		return out.Truncate(e.Size)
	}
	return nil
}

func chunk(sparse bool, n int) int {
	if sparse {
		return sparseBlock
	}
	return n
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// finish gives files their further names and folders their attributes, from the bottom.
func (u *unpacker) finish() error {
	for _, i := range u.links {
		e := &u.entries[i]
		l, ok := u.leaders[e.Link]
		if !ok {
			return fmt.Errorf("%w: nothing for %q to link to", ErrNotWhole, e.Path)
		}
		if err := u.dst.Link(u.entries[l].Path, e.Path); err != nil {
			return err
		}
	}
	for _, l := range u.leaders {
		st, err := u.dst.Lstat(u.entries[l].Path) // its ctime moved with every link
		if err != nil {
			return err
		}
		u.entries[l].Copy = ident(st)
	}
	for _, i := range u.links {
		u.entries[i].Copy = u.entries[u.leaders[u.entries[i].Link]].Copy
	}
	u.report(int64(len(u.links)), 0)
	for i := range slices.Backward(u.entries) {
		e := &u.entries[i]
		if !e.IsDir() {
			continue
		}
		d, err := u.dst.OpenDir(e.Path)
		if err != nil {
			return err
		}
		err = u.setDir(e, u.dirs[i], d)
		if cerr := d.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
