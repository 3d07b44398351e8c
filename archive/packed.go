package archive

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"corpus-git/archive/tree"
)

// packedSuffix ends the name of a tree's file in a packed archive: project.tar.zst, pillar.tar.zst.
const packedSuffix = ".tar.zst"

// Packed reports that the trees of an archive are files, <tree>.tar.zst. The record says so only once the files are durable, were read
// back, and agree with the manifest entry by entry.
type Packed struct {
	At    time.Time             `json:"at"`
	Trees map[string]PackedTree `json:"trees"`
}

// PackedTree is one file of a packed archive, and the one that it shares with others.
type PackedTree struct {
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`  // of the file
	SHA256  string `json:"sha256"` // of the file, as sha256sum prints it
	// Base is the file of an older archive that holds the rest (see increment), nil if this file holds the whole tree.
	Base *PackedBase `json:"base,omitempty"`
}

// PackedBase is a file that archives share by hard links. It is never written to again.
type PackedBase struct {
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
}

const (
	// changedSuffix and baseSuffix end the names of the two files of an incremental tree: project.changed.tar.zst holds what its base
	// lacks.
	changedSuffix = ".changed" + packedSuffix
	baseSuffix    = ".base" + packedSuffix
)

// shares reports whether a tree is in two files.
func (p *Packed) shares() bool {
	if p == nil {
		return false
	}
	for _, t := range p.Trees {
		if t.Base != nil {
			return true
		}
	}
	return false
}

// packedPath returns the file that was written for a tree of a packed archive.
func (a Archive) packedPath(name string) string {
	if a.Packed != nil && a.Packed.Trees[name].Base != nil {
		return filepath.Join(a.Path, name+changedSuffix)
	}
	return filepath.Join(a.Path, name+packedSuffix)
}

func (a Archive) basePath(name string) string { return filepath.Join(a.Path, name+baseSuffix) }

// packedFiles returns the files of a tree in reading order: an entry in an earlier file overrides that of a later one.
func (a Archive) packedFiles(name string) []string {
	if a.Packed != nil && a.Packed.Trees[name].Base != nil {
		return []string{a.packedPath(name), a.basePath(name)}
	}
	return []string{a.packedPath(name)}
}

// allPackedFiles returns all names that the files of a tree may have, regardless of the record.
func (a Archive) allPackedFiles(name string) []string {
	return []string{filepath.Join(a.Path, name+packedSuffix), filepath.Join(a.Path, name+changedSuffix), a.basePath(name)}
}

// packedFile receives the content behind each header of one packed tree, in order. i is the index in the manifest, negative for a name that
// the manifest does not list.
type packedFile func(i int, h *tar.Header, r io.Reader) error

// eachPacked reads the packed trees of an archive completely, including checksums of the stream, and returns which entries of the manifest
// were there. The bytes of the files are written to raw, which may be nil.
func (s *Store) eachPacked(a Archive, m *tree.Manifest, pause func() error, raw func(file string) io.Writer, each packedFile) (seen []bool, err error) {
	idx := make(map[string]int, len(m.Entries))
	for i := range m.Entries {
		idx[m.Entries[i].Path] = i
	}
	seen = make([]bool, len(m.Entries))
	for _, t := range a.Trees {
		own := func(h *tar.Header, r io.Reader) error {
			i, ok := idx[strings.TrimSuffix(h.Name, "/")]
			if !ok || !within(t, m.Entries[i].Path) {
				return each(-1, h, r)
			}
			if seen[i] {
				return fmt.Errorf("%w: %s holds %q twice", ErrNotWhole, filepath.Base(a.packedPath(t)), h.Name)
			}
			seen[i] = true
			return each(i, h, r)
		}
		shared := func(h *tar.Header, r io.Reader) error {
			if _, ok := idx[strings.TrimSuffix(h.Name, "/")]; !ok {
				return nil // an older archive's
			}
			return own(h, r)
		}
		if err := s.readPacked(a, t, pause, raw, own, shared); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// readPacked reads the file of one packed tree. If it has a base, both are read at once, so that entries come in the order of the tree;
// entries of the base that the other file also has are skipped.
func (s *Store) readPacked(a Archive, name string, pause func() error, raw func(file string) io.Writer, own, shared func(*tar.Header, io.Reader) error) error {
	files := a.packedFiles(name)
	to := func(name string) io.Writer {
		if raw == nil {
			return io.Discard
		}
		return raw(name)
	}
	if len(files) == 1 {
		return s.readTar(files[0], pause, to(files[0]), own)
	}
	var ownErr error
	next, stop := iter.Pull2(func(yield func(*tar.Header, io.Reader) bool) {
		ownErr = s.readTar(files[0], pause, to(files[0]), func(h *tar.Header, r io.Reader) error {
			if !yield(h, r) {
				return errStopped
			}
			return nil
		})
	})
	defer stop()
	h, r, ok := next()
	err := s.readTar(files[1], pause, to(files[1]), func(bh *tar.Header, br io.Reader) error {
		for ; ok; h, r, ok = next() {
			switch order := compareTree(h.Name, bh.Name); {
			case order > 0:
				return shared(bh, br)
			case order == 0:
				return nil // its own comes with the next header
			}
			if err := own(h, r); err != nil {
				return err
			}
		}
		return errors.Join(ownErr, shared(bh, br))
	})
	for ; ok && err == nil; h, r, ok = next() {
		err = own(h, r)
	}
	if err == nil {
		err = ownErr
	}
	return err
}

// errStopped ends the reading of a file whose rest is not needed.
var errStopped = errors.New("stopped")

func within(name, path string) bool { return path == name || strings.HasPrefix(path, name+"/") }

// readTar reads one tar.zst to its end.
func (s *Store) readTar(name string, pause func() error, raw io.Writer, each func(*tar.Header, io.Reader) error) error {
	f, err := s.fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading
	return readTarFrom(io.TeeReader(f, raw), name, pause, each)
}

// readTarFrom reads a stream that is the content of the file name.
func readTarFrom(r io.Reader, name string, pause func() error, each func(*tar.Header, io.Reader) error) error {
	in := &pausingReader{r: r, pause: pause}
	z, err := decompressed(in)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	damaged := func(err error) error {
		if in.err != nil {
			return in.err // the cause, without the text that the layers added
		}
		return fmt.Errorf("%w: %s: %w", ErrNotWhole, filepath.Base(name), err)
	}
	if err := eachHeader(z, each); err != nil {
		var de *damageError
		if errors.As(err, &de) {
			return damaged(de.error)
		}
		return err
	}
	if _, err := io.Copy(io.Discard, z); err != nil {
		return damaged(err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	return nil
}

// damageError is an error in reading a tar, not one of what its entries are given to.
type damageError struct{ error }

func (e *damageError) Unwrap() error { return e.error }

// tarBuffer is how much of a tar is read at once.
const tarBuffer = 64 << 10

// eachHeader reads a tar to its last entry. It may read further.
func eachHeader(from io.Reader, each func(*tar.Header, io.Reader) error) error {
	in := bufio.NewReaderSize(from, tarBuffer)
	for {
		h, content, err := nextHeader(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &damageError{err}
		}
		body := &pausingReader{r: content}
		if err := each(h, body); err != nil {
			if body.err != nil {
				return &damageError{body.err}
			}
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		// Some readers end early without an error: what is left of the content, and what fills its last block.
		_, err = io.Copy(io.Discard, content)
		if err == nil {
			_, err = in.Discard(int(-h.Size & (tree.TarBlock - 1)))
		}
		if err != nil {
			return &damageError{noEOF(err)}
		}
	}
}

// nextHeader reads a header, a usual one in a fraction of the time that archive/tar takes; content is to be read to its end. The error is io.EOF after the last entry.
func nextHeader(in *bufio.Reader) (h *tar.Header, content io.Reader, err error) {
	if b, err := in.Peek(tree.UsualHeader); err == nil {
		h = &tar.Header{}
		if tree.ParseHeader(b, h) {
			_, err := in.Discard(len(b))
			return h, &wholeReader{io.LimitedReader{R: in, N: h.Size}}, err
		}
	}
	tr := tar.NewReader(in)
	h, err = tr.Next()
	return h, tr, err
}

// wholeReader reads a content that must not end early.
type wholeReader struct{ io.LimitedReader }

func (w *wholeReader) Read(p []byte) (int, error) {
	n, err := w.LimitedReader.Read(p)
	if w.N > 0 {
		err = noEOF(err)
	}
	return n, err
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// pausingReader keeps the error of a reader, and calls a function before each read, which may stop it.
type pausingReader struct {
	r     io.Reader
	pause func() error
	err   error
}

func (b *pausingReader) Read(p []byte) (n int, err error) {
	if b.pause != nil {
		err = b.pause()
	}
	if err == nil {
		n, err = b.r.Read(p)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// headerDiffers reports how a header of a tar differs from its entry, "" if it does not.
func headerDiffers(m *tree.Manifest, i int, h *tar.Header) string {
	e := &m.Entries[i]
	if h.Typeflag == tar.TypeLink {
		if t := m.Find(h.Linkname); t == nil || t == e || t.Link == 0 || t.Link != e.Link {
			return "links"
		}
		return ""
	}
	switch want := tree.TarType(e); {
	case h.Typeflag != want:
		return "type"
	case want == tar.TypeSymlink && h.Linkname != e.Target:
		return "target"
	case (want == tar.TypeChar || want == tar.TypeBlock) && (h.Devmajor != int64(unix.Major(e.Rdev)) || h.Devminor != int64(unix.Minor(e.Rdev))):
		return "device"
	case uint32(h.Mode)&0o7777 != e.Mode&0o7777:
		return "mode"
	case h.Uid != int(e.UID) || h.Gid != int(e.GID):
		return "owner"
	case want == tar.TypeReg && h.Size != e.Size:
		return "size"
	case h.ModTime.UnixNano() != e.Mtime:
		return "mtime"
	}
	xs, err := tree.TarXattrs(h)
	if err != nil || (e.Flags&tree.FlagXattr == 0 && tree.XattrDigest(xs) != e.Xattrs) {
		return "xattrs"
	}
	return ""
}

// provePacked compares the packed trees of an archive with its manifest, including content if its checksum is known, and the files with
// the checksums of the record.
func (s *Store) provePacked(a Archive, m *tree.Manifest, pause func() error) (tree.Proof, error) {
	v := &prover{m: m}
	diff := v.p.Differ
	files := map[string]hash.Hash{}
	raw := func(file string) io.Writer {
		files[file] = sha256.New()
		return files[file]
	}
	seen, err := s.eachPacked(a, m, pause, raw, v.entry)
	if err != nil {
		return v.p, err
	}
	for i := range m.Entries {
		if !seen[i] && m.Entries[i].Flags&tree.FlagSkipped == 0 {
			v.p.Entries++
			diff(m.Entries[i].Path, "missing")
		}
	}
	for _, t := range a.Trees {
		if a.Packed == nil {
			break
		}
		want := []string{a.Packed.Trees[t].SHA256}
		if b := a.Packed.Trees[t].Base; b != nil {
			want = append(want, b.SHA256)
		}
		for i, f := range a.packedFiles(t) {
			if hex.EncodeToString(files[f].Sum(nil)) != want[i] {
				diff(filepath.Base(f), "content") // in a bit that readers ignore; otherwise reading would have failed
			}
		}
	}
	return v.p, nil
}

// prover compares entries of packed trees with a manifest, including content if its checksum is known.
type prover struct {
	m   *tree.Manifest
	p   tree.Proof
	buf []byte
}

// entry is a packedFile.
func (v *prover) entry(i int, hd *tar.Header, r io.Reader) error {
	v.p.Entries++
	if i < 0 {
		v.p.Differ(hd.Name, "extra")
		return nil
	}
	e := &v.m.Entries[i]
	if what := headerDiffers(v.m, i, hd); what != "" {
		v.p.Differ(e.Path, what)
		return nil
	}
	if hd.Typeflag != tar.TypeReg || !e.Sum.Known() {
		return nil
	}
	if v.buf == nil {
		v.buf = make([]byte, 256<<10)
	}
	h := sha256.New()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{r}, v.buf); err != nil {
		return err
	}
	v.p.Hashed++
	if tree.SumOf(h) != e.Sum {
		v.p.Differ(e.Path, "content")
	}
	return nil
}

// reexport writes a packed archive as Export does.
func (s *Store) reexport(ctx context.Context, a Archive, m *tree.Manifest, record []byte, w io.Writer) (Exported, error) {
	out := &stickyWriter{w: w}
	x := Exported{Entries: 1}
	err := compressed(out, zstd.SpeedDefault, 0, a.Sizes.tar(), func(enc io.Writer) error {
		tw := tar.NewWriter(enc)
		rec := (&exporter{}).record(record, a.At)
		if err := writeEntry(tw, rec, make([]byte, 64<<10)); err != nil {
			return err
		}
		seen, err := s.eachPacked(a, m, ctx.Err, nil, func(i int, h *tar.Header, r io.Reader) error {
			if i < 0 {
				return fmt.Errorf("%w: %q is not in its manifest", ErrNotWhole, h.Name)
			}
			if what := headerDiffers(m, i, h); what != "" {
				return fmt.Errorf("%w: %s of %q is not as its manifest says", ErrNotWhole, what, h.Name)
			}
			h.Format = tar.FormatPAX
			if err := tw.WriteHeader(h); err != nil {
				return err
			}
			sum := sha256.New()
			n, err := io.Copy(io.MultiWriter(struct{ io.Writer }{tw}, sum), r)
			if e := &m.Entries[i]; err == nil && h.Typeflag == tar.TypeReg && e.Sum.Known() && tree.SumOf(sum) != e.Sum {
				err = fmt.Errorf("%w: %q has another content than was recorded", ErrNotWhole, e.Path)
			}
			x.Entries++
			x.Bytes += n
			return err
		})
		if err != nil {
			return err
		}
		if err := complete(m, seen); err != nil {
			return err
		}
		return tw.Close()
	})
	x.Written = out.n
	return x, err
}

// complete returns an error if an entry that the archive holds was missing.
func complete(m *tree.Manifest, seen []bool) error {
	for i := range m.Entries {
		if !seen[i] && m.Entries[i].Flags&tree.FlagSkipped == 0 {
			return fmt.Errorf("%w: %q is missing", ErrNotWhole, m.Entries[i].Path)
		}
	}
	return nil
}
