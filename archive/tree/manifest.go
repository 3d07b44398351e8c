package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"syscall"

	"corpus-git/internal/vfs"
)

// Ident identifies a file and its state: while none of the three changes, nobody has written its content or attributes.
type Ident struct {
	Dev, Ino uint64
	Ctime    int64 // nanoseconds since 1970
}

// Flags of an entry.
type Flags uint8

const (
	// FlagRacy marks a file that changed so shortly before the scan that a later change may not show.
	FlagRacy Flags = 1 << iota
	// FlagUnstable marks a file that changed during every read.
	FlagUnstable
	// FlagSkipped marks an entry that is listed but not copied (a socket, a device).
	FlagSkipped
	// FlagOwner marks a copy whose owner differs from the original's.
	FlagOwner
	// FlagXattr marks a copy that lacks an extended attribute.
	FlagXattr
)

// Entry is one file, folder, link or other thing in a manifest.
type Entry struct {
	// Path is relative to the project's folder and to the archive's: "project", "project/a". Any byte but NUL.
	Path   string
	Target string // of a symbolic link
	Mode   uint32 // st_mode
	UID    uint32
	GID    uint32
	Size   int64
	Blocks int64 // of 512 bytes, of the live file
	Mtime  int64
	Rdev   uint64
	Link   uint32 // hard-link group, counted from 1; 0 for a file with one name in the tree
	Flags  Flags
	Xattrs uint64 // digest of the extended attributes, 0 for none
	// Live is the file that was archived, Copy the one in the archive.
	Live, Copy Ident
	// Version identifies a state of the content: two entries of one path with the same version are equal.
	Version uint64
	// Sum is the first half of the SHA-256 of a regular file's content; zero if it was never read completely.
	Sum Sum

	nlink uint64
}

// Sum is a checksum of content, the first sixteen bytes of its SHA-256. The zero value means unknown.
type Sum [16]byte

// SumOf returns the sum of what a SHA-256 has read.
func SumOf(h hash.Hash) Sum { return Sum(h.Sum(nil)[:len(Sum{})]) }

// Known reports whether the sum is known.
func (s Sum) Known() bool { return s != Sum{} }

// Type returns the file type bits of st_mode.
func (e *Entry) Type() uint32 { return e.Mode & syscall.S_IFMT }

// IsDir reports a folder.
func (e *Entry) IsDir() bool { return e.Type() == syscall.S_IFDIR }

// IsRegular reports a regular file.
func (e *Entry) IsRegular() bool { return e.Type() == syscall.S_IFREG }

// IdentOf returns the identity of a file from its stat.
func IdentOf(st vfs.Stat) Ident { return Ident{Dev: st.Dev, Ino: st.Ino, Ctime: st.Ctime} }

// EntryOf describes a file from its lstat.
func EntryOf(path string, st vfs.Stat) Entry {
	e := Entry{Path: path}
	e.fill(st)
	return e
}

// fill copies what stat reports of a live file.
func (e *Entry) fill(st vfs.Stat) {
	e.Mode, e.UID, e.GID, e.Rdev, e.nlink = st.Mode, st.UID, st.GID, 0, st.Nlink
	e.Size, e.Blocks, e.Mtime, e.Live = st.Size, st.Blocks, st.Mtime, IdentOf(st)
	switch e.Type() {
	case syscall.S_IFDIR:
		e.Size, e.Blocks = 0, 0 // meaningless for other types
	case syscall.S_IFBLK, syscall.S_IFCHR:
		e.Rdev = st.Rdev
	}
}

// Manifest lists what an archive holds, in byte order of paths.
type Manifest struct {
	ID      string // of the deployment
	Scanned int64  // when the scan began, nanoseconds since 1970
	Entries []Entry
}

// Find returns the entry of a path, or nil.
func (m *Manifest) Find(path string) *Entry { return find(m.Entries, path) }

func find(entries []Entry, path string) *Entry {
	i, ok := search(entries, path)
	if !ok {
		return nil
	}
	return &entries[i]
}

// search returns where a path is among entries, or would be.
func search(entries []Entry, path string) (i int, ok bool) {
	return slices.BinarySearchFunc(entries, path, func(e Entry, p string) int { return strings.Compare(e.Path, p) })
}

// AsRead makes entries as DecodeManifest would return them.
func AsRead(entries []Entry) {
	for i := range entries {
		entries[i].nlink = 0
	}
}

func (m *Manifest) index() map[string]*Entry {
	if m == nil {
		return nil
	}
	idx := make(map[string]*Entry, len(m.Entries))
	for i := range m.Entries {
		idx[m.Entries[i].Path] = &m.Entries[i]
	}
	return idx
}

// manifestMagic starts every manifest. Varints follow; each path is stored without the prefix that it shares with the previous one; a
// SHA-256 of everything before it ends the manifest. Version 1, without checksums of content, is read too.
const (
	manifestMagic  = "corpus-git manifest 2\n"
	manifestMagic1 = "corpus-git manifest 1\n"
)

// Encode returns the bytes of a manifest.
func (m *Manifest) Encode() []byte {
	b := make([]byte, 0, 64+len(m.Entries)*90)
	b = append(b, manifestMagic...)
	str := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	u := func(vs ...uint64) {
		for _, v := range vs {
			b = binary.AppendUvarint(b, v)
		}
	}
	str(m.ID)
	b = binary.AppendVarint(b, m.Scanned)
	u(uint64(len(m.Entries)))
	prev := ""
	for i := range m.Entries {
		e := &m.Entries[i]
		n := 0
		for n < len(prev) && n < len(e.Path) && prev[n] == e.Path[n] {
			n++
		}
		u(uint64(n))
		str(e.Path[n:])
		prev = e.Path
		str(e.Target)
		u(uint64(e.Mode), uint64(e.UID), uint64(e.GID), uint64(e.Size), uint64(e.Blocks), e.Rdev, uint64(e.Link), uint64(e.Flags))
		b = binary.AppendVarint(b, e.Mtime)
		b = binary.LittleEndian.AppendUint64(b, e.Xattrs)
		b = binary.LittleEndian.AppendUint64(b, e.Version)
		for _, id := range []Ident{e.Live, e.Copy} {
			u(id.Dev, id.Ino)
			b = binary.AppendVarint(b, id.Ctime)
		}
		if e.Sum.Known() {
			b = append(append(b, 1), e.Sum[:]...)
		} else {
			b = append(b, 0)
		}
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// ErrManifest is wrapped in errors about a damaged manifest.
var ErrManifest = errors.New("damaged manifest")

// DecodeManifest reads what Encode wrote. For any other input the error is ErrManifest.
func DecodeManifest(b []byte) (*Manifest, error) {
	bad := func(why string) (*Manifest, error) { return nil, fmt.Errorf("%w: %s", ErrManifest, why) }
	sums := bytes.HasPrefix(b, []byte(manifestMagic))
	if len(b) < len(manifestMagic)+sha256.Size || !(sums || bytes.HasPrefix(b, []byte(manifestMagic1))) {
		return bad("no manifest")
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return bad("checksum differs")
	}
	r := decoder{b: body[len(manifestMagic):]}
	m := &Manifest{ID: r.str()}
	m.Scanned = r.int()
	count := r.uint()
	if count > uint64(len(r.b)) { // an entry takes more than a byte
		return bad("count")
	}
	m.Entries = make([]Entry, count)
	prev := ""
	for i := range m.Entries {
		e := &m.Entries[i]
		n := r.uint()
		if n > uint64(len(prev)) {
			return bad("prefix")
		}
		e.Path = prev[:n] + r.str()
		if r.bad || e.Path <= prev {
			return bad("order of paths")
		}
		prev = e.Path
		e.Target = r.str()
		e.Mode, e.UID, e.GID = uint32(r.uint()), uint32(r.uint()), uint32(r.uint())
		e.Size, e.Blocks, e.Rdev = int64(r.uint()), int64(r.uint()), r.uint()
		e.Link, e.Flags = uint32(r.uint()), Flags(r.uint())
		e.Mtime = r.int()
		e.Xattrs, e.Version = r.fixed(), r.fixed()
		for _, id := range []*Ident{&e.Live, &e.Copy} {
			id.Dev, id.Ino, id.Ctime = r.uint(), r.uint(), r.int()
		}
		if sums && r.uint() != 0 {
			copy(e.Sum[:], r.take(len(e.Sum)))
		}
	}
	if r.bad || len(r.b) != 0 {
		return bad("length")
	}
	return m, nil
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if n <= 0 || n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.take(n)
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	d.take(n)
	return v
}

func (d *decoder) fixed() uint64 {
	if v := d.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

func (d *decoder) str() string {
	n := d.uint()
	if n == 0 {
		return ""
	}
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return ""
	}
	return string(d.take(int(n)))
}

// XattrDigest returns 0 for no attributes, otherwise the start of a hash over names and values.
func XattrDigest(xs []vfs.Xattr) uint64 {
	if len(xs) == 0 {
		return 0
	}
	h := sha256.New()
	var n [8]byte
	part := func(b []byte) {
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		_, _ = h.Write(n[:])
		_, _ = h.Write(b)
	}
	for _, x := range xs {
		part([]byte(x.Name))
		part(x.Value)
	}
	return binary.LittleEndian.Uint64(h.Sum(nil)) | 1
}
