package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/vfs"
)

// packedSuffix makes the name of a tree's file in a packed archive: project.tar.zst, pillar.tar.zst.
const packedSuffix = ".tar.zst"

// Packed tells that the trees of an archive are files, <tree>.tar.zst. Such a record is written when the files are
// durable, were read back, and agree with the manifest entry by entry.
type Packed struct {
	At    time.Time             `json:"at"`
	Trees map[string]PackedTree `json:"trees"`
}

// PackedTree is one file of a packed archive.
type PackedTree struct {
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`  // of the file
	SHA256  string `json:"sha256"` // of the file, as sha256sum prints it
}

func (a Archive) packedPath(tree string) string { return filepath.Join(a.Path, tree+packedSuffix) }

// packedFile gives what is behind each header of one packed tree, in order. i is the index in the manifest, below 0 for
// what it does not list.
type packedFile func(i int, h *tar.Header, r io.Reader) error

// eachPacked reads the packed trees of an archive from their first byte to their last, checksums of the stream included.
// It returns which entries of the manifest came.
// raw is written what the files are made of; nil is fine.
func (s *Store) eachPacked(a Archive, m *Manifest, breath func() error, raw func(tree string) io.Writer, each packedFile) (seen []bool, err error) {
	idx := make(map[string]int, len(m.Entries))
	for i := range m.Entries {
		idx[m.Entries[i].Path] = i
	}
	seen = make([]bool, len(m.Entries))
	for _, t := range a.Trees {
		name := a.packedPath(t)
		file := io.Discard
		if raw != nil {
			file = raw(t)
		}
		err := s.readTar(name, breath, file, func(h *tar.Header, r io.Reader) error {
			i, ok := idx[strings.TrimSuffix(h.Name, "/")]
			if !ok || !within(t, m.Entries[i].Path) {
				return each(-1, h, r)
			}
			if seen[i] {
				return fmt.Errorf("%w: %s holds %q twice", ErrNotWhole, filepath.Base(name), h.Name)
			}
			seen[i] = true
			return each(i, h, r)
		})
		if err != nil {
			return nil, err
		}
	}
	return seen, nil
}

func within(tree, path string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

// readTar reads one tar.zst to its end.
func (s *Store) readTar(name string, breath func() error, raw io.Writer, each func(*tar.Header, io.Reader) error) (err error) {
	f, err := s.fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading
	in := &breathing{r: io.TeeReader(f, raw), breath: breath}
	z, err := decompressed(in)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	damaged := func(err error) error {
		if in.err != nil {
			return in.err // the cause, whatever the layers made of it
		}
		return fmt.Errorf("%w: %s: %w", ErrNotWhole, filepath.Base(name), err)
	}
	tr := tar.NewReader(z)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damaged(err)
		}
		body := &breathing{r: tr}
		if err := each(h, body); err != nil {
			if body.err != nil {
				return damaged(body.err)
			}
			return err
		}
	}
	if _, err := io.Copy(io.Discard, z); err != nil {
		return damaged(err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	return nil
}

// breathing keeps the error of a reader, and asks before each read whether to go on.
type breathing struct {
	r      io.Reader
	breath func() error
	err    error
}

func (b *breathing) Read(p []byte) (n int, err error) {
	if b.breath != nil {
		err = b.breath()
	}
	if err == nil {
		n, err = b.r.Read(p)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// headerDiffers tells how a header of a tar is not its entry, "" when it is.
func headerDiffers(m *Manifest, i int, h *tar.Header) string {
	e := &m.Entries[i]
	if h.Typeflag == tar.TypeLink {
		if t := m.find(h.Linkname); t == nil || t == e || t.Link == 0 || t.Link != e.Link {
			return "links"
		}
		return ""
	}
	switch want := tarType(e); {
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
	xs, err := tarXattrs(h)
	if err != nil || (e.Flags&FlagXattr == 0 && xattrDigest(xs) != e.Xattrs) {
		return "xattrs"
	}
	return ""
}

func tarType(e *Entry) byte {
	switch e.Type() {
	case syscall.S_IFDIR:
		return tar.TypeDir
	case syscall.S_IFLNK:
		return tar.TypeSymlink
	case syscall.S_IFIFO:
		return tar.TypeFifo
	case syscall.S_IFCHR:
		return tar.TypeChar
	case syscall.S_IFBLK:
		return tar.TypeBlock
	}
	return tar.TypeReg
}

// tarXattrs are the extended attributes of a header, in byte order of names.
func tarXattrs(h *tar.Header) ([]vfs.Xattr, error) {
	var out []vfs.Xattr
	for k, v := range h.PAXRecords {
		name, ok := strings.CutPrefix(k, "SCHILY.xattr.")
		value := []byte(v)
		switch k {
		case "SCHILY.acl.access", "SCHILY.acl.default":
			name, ok = "system.posix_acl_"+strings.TrimPrefix(k, "SCHILY.acl."), true
			var err error
			if value, err = aclBytes(v); err != nil {
				return nil, err
			}
		}
		if ok {
			out = append(out, vfs.Xattr{Name: name, Value: value})
		}
	}
	slices.SortFunc(out, func(a, b vfs.Xattr) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// aclBytes is the inverse of aclText.
func aclBytes(text string) ([]byte, error) {
	bad := fmt.Errorf("%w: ACL %q", ErrNotWhole, text)
	out := []byte{2, 0, 0, 0}
	for entry := range strings.SplitSeq(text, ",") {
		part := strings.Split(entry, ":")
		if len(part) != 3 || len(part[2]) != 3 {
			return nil, bad
		}
		tag, ok := map[string]uint16{"user": 1, "group": 4, "mask": 16, "other": 32}[part[0]]
		id := uint64(1<<32 - 1)
		if part[1] != "" {
			var err error
			if id, err = strconv.ParseUint(part[1], 10, 32); err != nil || tag > 4 {
				return nil, bad
			}
			tag *= 2 // a named one
		}
		perm := uint16(0)
		for i, c := range []byte("rwx") {
			switch part[2][i] {
			case c:
				perm |= 4 >> i
			case '-':
			default:
				return nil, bad
			}
		}
		if !ok {
			return nil, bad
		}
		out = binary.LittleEndian.AppendUint16(out, tag)
		out = binary.LittleEndian.AppendUint16(out, perm)
		out = binary.LittleEndian.AppendUint32(out, uint32(id))
	}
	return out, nil
}

// provePacked compares the packed trees of an archive with its manifest, content included where its sum is known, and
// the files with the sums of the record.
func (s *Store) provePacked(a Archive, m *Manifest, breath func() error) (Proof, error) {
	var p Proof
	diff := p.differ
	h := sha256.New()
	buf := make([]byte, 256<<10)
	files := map[string]hash.Hash{}
	raw := func(tree string) io.Writer {
		files[tree] = sha256.New()
		return files[tree]
	}
	seen, err := s.eachPacked(a, m, breath, raw, func(i int, hd *tar.Header, r io.Reader) error {
		p.Entries++
		if i < 0 {
			diff(hd.Name, "extra")
			return nil
		}
		e := &m.Entries[i]
		if what := headerDiffers(m, i, hd); what != "" {
			diff(e.Path, what)
			return nil
		}
		if hd.Typeflag != tar.TypeReg || !e.Sum.Known() {
			return nil
		}
		h.Reset()
		if _, err := io.CopyBuffer(h, struct{ io.Reader }{r}, buf); err != nil {
			return err
		}
		p.Hashed++
		if sumOf(h) != e.Sum {
			diff(e.Path, "content")
		}
		return nil
	})
	if err != nil {
		return p, err
	}
	for i := range m.Entries {
		if !seen[i] && m.Entries[i].Flags&FlagSkipped == 0 {
			p.Entries++
			diff(m.Entries[i].Path, "missing")
		}
	}
	for _, t := range a.Trees {
		if got := hex.EncodeToString(files[t].Sum(nil)); a.Packed != nil && a.Packed.Trees[t].SHA256 != got {
			diff(t+packedSuffix, "content") // in a bit that means nothing to its readers, or nothing would have come of it
		}
	}
	return p, nil
}

func sumOf(h hash.Hash) Sum { return Sum(h.Sum(nil)[:len(Sum{})]) }

// reexport writes a packed archive as Export does.
func (s *Store) reexport(ctx context.Context, a Archive, m *Manifest, record []byte, w io.Writer) (Exported, error) {
	out := &latch{w: w}
	x := Exported{Entries: 1}
	err := compressed(out, 0, a.Sizes.tar(), func(enc io.Writer) error {
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
			if e := &m.Entries[i]; err == nil && h.Typeflag == tar.TypeReg && e.Sum.Known() && sumOf(sum) != e.Sum {
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

// complete refuses where an entry that the archive holds did not come.
func complete(m *Manifest, seen []bool) error {
	for i := range m.Entries {
		if !seen[i] && m.Entries[i].Flags&FlagSkipped == 0 {
			return fmt.Errorf("%w: %q is missing", ErrNotWhole, m.Entries[i].Path)
		}
	}
	return nil
}
