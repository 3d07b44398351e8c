package archive

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archiver/v4"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Only this file uses mholt/archiver. Its own Tar rounds times to seconds, loses extended attributes and hard links, fails on sockets,
// drops errors of closing, and checks the context only between files; so this package has its own Archival, opens and closes the compressor
// itself, and keeps errors of the output.

// Exported counts what an export wrote.
type Exported struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`   // of content
	Written int64 `json:"written"` // compressed
}

// Export writes an archive as a tar.zst: deployment.json, then the trees, in PAX format with nanoseconds, extended attributes
// (SCHILY.xattr), ACLs (SCHILY.acl), hard links, fifos and devices. Holes become zeros. Any tar with zstd reads it (tar --zstd --xattrs
// --acls -xpf). Every file is compared with the manifest while it is read. On an error, such as content that differs from the archive's,
// the caller must discard what was written. w is not closed.
func (s *Store) Export(ctx context.Context, id string, w io.Writer) (Exported, error) {
	const op = "export archive"
	a, m, err := s.whole(id)
	if err != nil {
		return Exported{}, err
	}
	record, err := vfs.ReadFile(s.fs, filepath.Join(a.Path, recordFile))
	if err != nil {
		return Exported{}, fault.New(fault.Internal, op, "%w", err)
	}
	var x Exported
	if a.Packed != nil {
		x, err = s.reexport(ctx, a, m, record, w)
	} else {
		x, err = s.exportTrees(ctx, a, m, record, w)
	}
	if err != nil {
		return Exported{}, explain(op, err)
	}
	return x, nil
}

// exportTrees exports an archive whose trees are folders.
func (s *Store) exportTrees(ctx context.Context, a Archive, m *tree.Manifest, record []byte, w io.Writer) (Exported, error) {
	src, err := s.fs.OpenDir(a.Path)
	if err != nil {
		return Exported{}, err
	}
	defer func() { _ = src.Close() }()
	x := &exporter{pause: ctx.Err, src: src, leaders: map[uint32]string{}}
	all := make([]*tree.Entry, len(m.Entries))
	for i := range m.Entries {
		all[i] = &m.Entries[i]
	}
	treeOrder(all)
	files, err := x.files(all)
	if err != nil {
		return Exported{}, err
	}
	files = append([]archiver.File{x.record(record, a.At)}, files...)
	out := &stickyWriter{w: w}
	err = compressed(out, zstd.SpeedDefault, 0, a.Sizes.tar(), func(enc io.Writer) error {
		return archiver.CompressedArchive{Archival: exactTar{}}.Archive(ctx, enc, files)
	})
	return Exported{Entries: int64(len(files)), Bytes: x.bytes, Written: out.n}, err
}

// compressed opens a zstd stream into out around write, and closes it. workers 0 means one for each core; size is about how much will be
// written, so that a small tree takes little memory.
func compressed(out *stickyWriter, level zstd.EncoderLevel, workers int, size int64, write func(io.Writer) error) error {
	window := zstd.MinWindowSize
	for window < 8<<20 && int64(window) < size {
		window *= 2
	}
	opts := []zstd.EOption{zstd.WithEncoderLevel(level), zstd.WithWindowSize(window)}
	if workers > 0 {
		opts = append(opts, zstd.WithEncoderConcurrency(workers))
	}
	enc, err := archiver.Zstd{EncoderOptions: opts}.OpenWriter(out)
	if err != nil {
		return err
	}
	err = write(enc)
	if cerr := enc.Close(); err == nil {
		err = cerr
	}
	if out.err != nil {
		err = out.err // the cause, without the text that the layers added
	}
	return err
}

// decompressed opens a zstd stream for reading. The caller closes it.
func decompressed(r io.Reader) (io.ReadCloser, error) { return archiver.Zstd{}.OpenReader(r) }

// treeOrder sorts everything below a folder right after it, because tar sets a folder's times when it leaves it: in byte order "dir-x" is
// between "dir" and "dir/a".
func treeOrder(entries []*tree.Entry) {
	slices.SortFunc(entries, func(a, b *tree.Entry) int { return compareTree(a.Path, b.Path) })
}

// compareTree compares paths in the order of treeOrder; a slash at the end is ignored.
func compareTree(a, b string) int {
	a, b = strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/")
	for i := range min(len(a), len(b)) {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		default:
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// stickyWriter keeps the first error of a writer, and fails from then on.
type stickyWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (l *stickyWriter) Write(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.w.Write(p)
	l.n += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	l.err = err
	return n, err
}

type exporter struct {
	pause   func() error // checked between blocks
	src     vfs.Dir
	leaders map[uint32]string // first path of each hard-link group
	bytes   int64
}

// files describes entries, except those that an archive can't hold.
func (x *exporter) files(entries []*tree.Entry) ([]archiver.File, error) {
	out := make([]archiver.File, 0, len(entries)+1)
	for _, e := range entries {
		if e.Flags&tree.FlagSkipped != 0 {
			continue
		}
		f, err := x.file(e)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func (x *exporter) record(content []byte, at time.Time) archiver.File {
	return archiver.File{
		Header:        &tar.Header{Typeflag: tar.TypeReg, Name: recordFile, Mode: 0o600, Size: int64(len(content)), ModTime: at, Format: tar.FormatPAX},
		NameInArchive: recordFile,
		Open:          func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(content))), nil },
	}
}

// file describes one entry. Its attributes come from the manifest, which has those that an ordinary user's copy could not take.
func (x *exporter) file(e *tree.Entry) (archiver.File, error) {
	h, err := tree.TarHeader(e, x.leaders, func() ([]vfs.Xattr, error) { return x.src.Xattrs(e.Path) })
	if err != nil {
		return archiver.File{}, err
	}
	f := archiver.File{Header: h, NameInArchive: e.Path, LinkTarget: h.Linkname}
	if h.Typeflag == tar.TypeReg {
		f.Open = func() (io.ReadCloser, error) { return x.open(e) }
	}
	return f, nil
}

// open returns the content of a regular file; the reader ends with an error if the content differs from the manifest.
func (x *exporter) open(e *tree.Entry) (io.ReadCloser, error) {
	f, err := x.src.OpenFile(e.Path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && (st.Size != e.Size || st.Mtime != e.Mtime || !st.IsRegular()) {
		err = fmt.Errorf("%w: %q is not as the manifest says", ErrNotWhole, e.Path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	x.bytes += e.Size
	return &checked{File: f, pause: x.pause, e: e, left: e.Size, sum: sha256.New()}, nil
}

// checked reads one file of an archive and checks that its content has the entry's Sum; if the Sum is unknown, it sets it.
type checked struct {
	vfs.File
	pause func() error
	e     *tree.Entry
	left  int64
	sum   hash.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	if err := c.pause(); err != nil {
		return 0, err
	}
	if c.left == 0 {
		st, err := c.File.Stat()
		if err != nil {
			return 0, err
		}
		if st.Size != c.e.Size || st.Mtime != c.e.Mtime {
			return 0, fmt.Errorf("%w: %q changed while it was read", ErrNotWhole, c.e.Path)
		}
		got := tree.SumOf(c.sum)
		if c.e.Sum.Known() && c.e.Sum != got {
			return 0, fmt.Errorf("%w: %q has another content than was recorded", ErrNotWhole, c.e.Path)
		}
		c.e.Sum = got
		return 0, io.EOF
	}
	n, err := c.File.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	_, _ = c.sum.Write(p[:n]) // never fails: hash.Hash
	if errors.Is(err, io.EOF) {
		return n, fmt.Errorf("%w: %q ends %d bytes early", ErrNotWhole, c.e.Path, c.left)
	}
	return n, err
}

// exactTar is the Archival: each File carries its whole header.
type exactTar struct{}

var _ archiver.Archival = exactTar{}

func (exactTar) Name() string { return ".tar" }

func (exactTar) Match(name string, r io.Reader) (archiver.MatchResult, error) {
	return archiver.Tar{}.Match(name, r)
}

func (exactTar) Archive(ctx context.Context, w io.Writer, files []archiver.File) error {
	buffered := bufio.NewWriterSize(w, 256<<10)
	tw := tar.NewWriter(buffered)
	buf := make([]byte, 64<<10)
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeEntry(tw, f, buf); err != nil {
			return fmt.Errorf("%q: %w", f.NameInArchive, err)
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return buffered.Flush()
}

func writeEntry(tw *tar.Writer, f archiver.File, buf []byte) error {
	h, ok := f.Header.(*tar.Header)
	if !ok {
		return fmt.Errorf("%w: no header", fs.ErrInvalid)
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if f.Open == nil {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{tw}, r, buf) // read to the end, for errors there
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}

// Extract calls handle for each entry. It writes nothing.
func (exactTar) Extract(ctx context.Context, r io.Reader, paths []string, handle archiver.FileHandler) error {
	return archiver.Tar{}.Extract(ctx, r, paths, handle)
}
