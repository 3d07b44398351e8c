package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

const (
	// smallFile is the largest file that is handed to a worker in memory; larger ones are written by the goroutine that reads the tar.
	smallFile = 1 << 20
	// sparseBlock is the smallest hole.
	sparseBlock = 4096
)

// unpacker turns the packed trees of an archive into folders. The manifest decides what is created: names in the tar only select its
// entries, everything is created below an open folder, and no link is followed. One goroutine reads, the others write.
type unpacker struct {
	*tree.Writer
	entries []tree.Entry
	dst     vfs.Dir
	ctx     context.Context
	m       *tree.Manifest
	batches chan []unpacked
	wg      sync.WaitGroup
	failed  context.CancelCauseFunc

	batch []unpacked
	bytes int64
}

// unpacked is one entry to write.
type unpacked struct {
	i       int
	content []byte
	xattrs  []vfs.Xattr
}

// unpack writes the packed trees of an archive to an existing empty folder. Nothing is synced. It returns the entries with the identities
// of the new files.
func (s *Store) unpack(ctx context.Context, a Archive, m *tree.Manifest, dst vfs.Dir, progress func(tree.Progress)) ([]tree.Entry, error) {
	entries := slices.Clone(m.Entries)
	w := tree.NewWriter(dst, entries, s.cfg.Workers, progress)
	if err := w.Mkdirs(ctx); err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u := &unpacker{
		Writer: w, dst: dst, entries: entries, ctx: inner, m: m, failed: cancel, batches: make(chan []unpacked, s.cfg.Workers),
	}
	for range s.cfg.Workers {
		u.wg.Go(u.work)
	}
	seen, err := s.eachPacked(a, m, func() error { return context.Cause(inner) }, nil, u.take)
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
		if err = u.Finish(); errors.Is(err, tree.ErrLink) {
			err = fmt.Errorf("%w: %w", ErrNotWhole, err)
		}
	}
	return entries, err
}

// take handles the next entry of the tar.
func (u *unpacker) take(i int, h *tar.Header, r io.Reader) error {
	if i < 0 {
		return fmt.Errorf("%w: %q is not in its manifest", ErrNotWhole, h.Name)
	}
	if what := headerDiffers(u.m, i, h); what != "" {
		return fmt.Errorf("%w: %s of %q is not as its manifest says", ErrNotWhole, what, h.Name)
	}
	xs, err := tree.TarXattrs(h)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotWhole, err)
	}
	e := &u.entries[i]
	switch {
	case e.IsDir():
		u.Dir(i, xs)
		return nil
	case h.Typeflag == tar.TypeLink:
		u.Link(i)
		return nil
	case e.Link != 0 && !u.First(i): // the other tree has it too
		return u.drain(e, r)
	}
	if e.IsRegular() && e.Size > smallFile {
		c := tree.NewCursor(u.dst)
		defer c.Close()
		if err := u.Write(e, xs, c, contentOf(e, r)); err != nil {
			return err
		}
		u.Done(1, e.Size)
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
	if len(u.batch) >= tree.BatchFiles || u.bytes >= tree.BatchBytes {
		return u.flush()
	}
	return nil
}

// drain reads the content of a file that already exists, and checks it.
func (u *unpacker) drain(e *tree.Entry, r io.Reader) error {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return err
	}
	if e.Sum.Known() && tree.SumOf(h) != e.Sum {
		return contentDiffers(e)
	}
	return nil
}

func contentDiffers(e *tree.Entry) error {
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
	c := tree.NewCursor(u.dst)
	defer c.Close()
	var bytes int64
	for _, n := range batch {
		e := &u.entries[n.i]
		var r io.Reader
		if e.IsRegular() {
			r = &bytesReader{n.content}
		}
		if err := u.Write(e, n.xattrs, c, contentOf(e, r)); err != nil {
			return err
		}
		bytes += e.Size
	}
	u.Done(int64(len(batch)), bytes)
	return nil
}

// bytesReader is a bytes.Reader without WriteTo, so that copies go through the code that finds holes.
type bytesReader struct{ b []byte }

func (r *bytesReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

// contentOf writes the content of an entry from r.
func contentOf(e *tree.Entry, r io.Reader) func(vfs.File) error {
	return func(out vfs.File) error { return writeContent(e, out, r) }
}

// writeContent writes the content of a regular file, and checks it on the way. If the file had holes, whole blocks of zeros become
// holes.
func writeContent(e *tree.Entry, out vfs.File, r io.Reader) error {
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
	if e.Sum.Known() && tree.SumOf(sum) != e.Sum {
		return contentDiffers(e)
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
