package store

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/internal/vfs"
)

func (s *source) loosePath(h plumbing.Hash) string {
	x := h.String()
	return filepath.Join(s.dir, x[:2], x[2:])
}

func (s *source) hasLoose(h plumbing.Hash) (bool, error) {
	st, err := os.Stat(s.loosePath(h))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Mode().IsRegular(), err
}

// openLoose opens a loose object; the error is fs.ErrNotExist if there is none.
func (s *source) openLoose(h plumbing.Hash) (*Object, error) {
	f, err := os.Open(s.loosePath(h))
	if err != nil {
		return nil, err
	}
	o, err := readLoose(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("loose object %s: %w", h, err)
	}
	return o, nil
}

// readLoose reads the head of a loose object: "<type> <size>\0" at the beginning of the zlib stream.
func readLoose(f io.ReadCloser) (*Object, error) {
	zr, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", pack.ErrCorrupt, err)
	}
	br := bufio.NewReaderSize(zr, 4096)
	head, err := br.Peek(32)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%w: %w", pack.ErrCorrupt, err)
	}
	end := bytes.IndexByte(head, 0)
	if end < 0 {
		return nil, fmt.Errorf("%w: no head", pack.ErrCorrupt)
	}
	kind, digits, _ := bytes.Cut(head[:end], []byte(" "))
	t, err := plumbing.ParseObjectType(string(kind))
	if err != nil || t > plumbing.TagObject {
		return nil, fmt.Errorf("%w: unknown type %q", pack.ErrCorrupt, kind)
	}
	size, err := strconv.ParseInt(string(digits), 10, 63)
	if err != nil || size < 0 {
		return nil, fmt.Errorf("%w: size %q", pack.ErrCorrupt, digits)
	}
	if _, err := br.Discard(end + 1); err != nil {
		return nil, err
	}
	return &Object{Type: t, Size: size, ReadCloser: &looseReader{r: br, f: f, left: size}}, nil
}

// looseReader returns exactly the promised number of bytes, or an error.
type looseReader struct {
	r    *bufio.Reader
	f    io.Closer
	left int64
}

func (l *looseReader) Read(p []byte) (int, error) {
	if l.left == 0 {
		// Reading further makes the decoder verify its checksum.
		switch _, err := l.r.ReadByte(); err {
		case nil:
			return 0, fmt.Errorf("%w: loose object is longer than it says", pack.ErrCorrupt)
		case io.EOF:
			return 0, io.EOF
		default:
			return 0, fmt.Errorf("%w: %w", pack.ErrCorrupt, err)
		}
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if err == io.EOF && l.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		return n, fmt.Errorf("%w: %w", pack.ErrCorrupt, err)
	}
	return n, nil
}

func (l *looseReader) Close() error { return l.f.Close() }

func readAll(o *Object) (plumbing.ObjectType, []byte, error) {
	defer o.Close()
	// Grow with the data rather than trust the size.
	var b bytes.Buffer
	b.Grow(int(min(o.Size+bytes.MinRead, 1<<20)))
	if _, err := b.ReadFrom(o); err != nil {
		return 0, nil, err
	}
	return o.Type, b.Bytes(), nil
}

// Put writes a loose object, unless it exists. It is durable when Put returns.
func (db *DB) Put(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	h, err := pack.HashObject(t, data)
	if err != nil {
		return h, err
	}
	if ok, err := db.Has(h); ok || err != nil {
		return h, err
	}
	return h, db.main.putLoose(h, t, data)
}

func (s *source) putLoose(h plumbing.Hash, t plumbing.ObjectType, data []byte) error {
	made, err := s.writeLoose(h, t, int64(len(data)), bytes.NewReader(data))
	if err != nil {
		return err
	}
	if made {
		if err := syncDir(s.dir); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(s.loosePath(h)))
}

// writeLoose writes the loose object h from the size bytes of r; made reports that its folder is new. The content is durable when it
// returns; syncing the names of the object and of a new folder is left to the caller.
func (s *source) writeLoose(h plumbing.Hash, t plumbing.ObjectType, size int64, r io.Reader) (made bool, err error) {
	f, err := os.CreateTemp(s.dir, "tmp_obj_")
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	zw, _ := zlib.NewWriterLevel(f, zlib.BestSpeed)
	_, err = fmt.Fprintf(zw, "%s %d\x00", t, size)
	if err == nil {
		_, err = io.Copy(zw, r)
	}
	if err == nil {
		err = zw.Close()
	}
	if err == nil {
		err = f.Chmod(0o444)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	to := s.loosePath(h)
	err = os.Mkdir(filepath.Dir(to), 0o777)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	made = err == nil
	return made, os.Rename(f.Name(), to)
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error { return syncDirUnlessCovered(dir, 0) }

// syncDirUnlessCovered is vfs.SyncDirUnlessCovered.
func syncDirUnlessCovered(dir string, covered uint64) error {
	return vfs.SyncDirUnlessCovered(vfs.OS{}, dir, covered)
}

// syncFile makes a file durable, unless it is on the file system covered: see vfs.SyncUnlessCovered.
func syncFile(name string, covered uint64) error {
	f, err := vfs.OS{}.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(vfs.SyncUnlessCovered(f, covered), f.Close())
}
