package tree

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// TarBlock is the size of the blocks of a tar: headers and contents are filled up to it.
const TarBlock = 512

// UsualHeader is the size of what AppendHeader appends: a header with one record, and the header itself.
const UsualHeader = 3 * TarBlock

const (
	// tarName is the size of the fields for names, tarID that of owners, modes and devices, tarSize that of sizes and times.
	tarName, tarID, tarSize = 100, 8, 12
)

// AppendHeader appends the header of an entry as archive/tar writes the one of TarHeader, byte for byte. It reports false, and appends nothing, for an entry that needs anything but the usual: a file, folder or
// symbolic link with one name, times in nanoseconds and neither attributes nor names that need a record (POSIX.1-2017, pax, ustar Interchange Format).
func AppendHeader(b []byte, e *Entry) ([]byte, bool) {
	t := e.Type()
	usual := e.Link == 0 && e.Xattrs == 0 && (t == syscall.S_IFREG || t == syscall.S_IFDIR || (t == syscall.S_IFLNK && plainName(e.Target) && e.Target != ""))
	mtime := time.Unix(0, e.Mtime)
	secs := mtime.Unix()
	if !usual || !plainName(e.Path) || secs < 0 || mtime.Nanosecond() == 0 || e.UID >= 1<<21 || e.GID >= 1<<21 || e.Size >= 1<<33 {
		return b, false
	}
	// The record of the time: its length, which counts itself, a space, and the rest.
	var text [64]byte
	rest := append(text[:0], " mtime="...)
	rest = mtime.AppendFormat(strconv.AppendInt(rest, secs, 10), ".999999999")
	rest = append(rest, '\n')
	size := len(rest) + 2 // at least ten and fewer than a hundred bytes

	at := len(b)
	b = append(b, make([]byte, UsualHeader)...)
	x, record, h := b[at:at+TarBlock], b[at+TarBlock:at+2*TarBlock], b[at+2*TarBlock:]
	dir, name := "", e.Path
	if i := strings.LastIndexByte(e.Path, '/'); i >= 0 {
		dir, name = e.Path[:i+1], e.Path[i:]
	} else {
		name = "/" + name
	}
	if t == syscall.S_IFDIR {
		dir, name = e.Path+"/", ""
	}
	putName(x, dir, "PaxHeaders.0", name)
	putFields(x, tar.TypeXHeader, 0, 0, 0, int64(size), 0)
	copy(strconv.AppendInt(record[:0], int64(size), 10)[2:size:size], rest)
	switch kind := TarType(e); t {
	case syscall.S_IFDIR:
		putName(h, e.Path, "/")
		putFields(h, kind, e.Mode, e.UID, e.GID, 0, secs)
	case syscall.S_IFLNK:
		putName(h, e.Path)
		copy(h[157:257], e.Target)
		putFields(h, kind, e.Mode, e.UID, e.GID, 0, secs)
	default:
		putName(h, e.Path)
		putFields(h, kind, e.Mode, e.UID, e.GID, e.Size, secs)
	}
	return b, true
}

// plainName reports whether a name fits into its field, also as the name of a folder, without a record of its own.
func plainName(s string) bool {
	if len(s) >= tarName {
		return false
	}
	for i := range len(s) {
		if s[i] == 0 || s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// putName fills the field for the name; what is too long is cut, and then does not end with a slash.
func putName(h []byte, parts ...string) {
	field, n, cut := h[:tarName], 0, false
	for _, p := range parts {
		cut = cut || n+len(p) > tarName
		n += copy(field[n:], p)
	}
	for cut && n > 0 && field[n-1] == '/' {
		n--
		field[n] = 0
	}
}

// numeric returns the fields for mode, owner, group, size and time, each with the byte that ends it.
func numeric(h []byte) (out [5][]byte) {
	at := tarName
	for i, n := range [5]int{tarID, tarID, tarID, tarSize, tarSize} {
		out[i] = h[at : at+n]
		at += n
	}
	return out
}

// putFields fills the other fields of a header, and then its checksum.
func putFields(h []byte, kind byte, mode, uid, gid uint32, size, secs int64) {
	values := [5]int64{int64(mode & 0o7777), int64(uid), int64(gid), size, secs}
	for i, f := range numeric(h) {
		putOctal(f[:len(f)-1], values[i])
	}
	h[156] = kind
	copy(h[257:], "ustar\x0000")
	if kind != tar.TypeXHeader { // the device
		putOctal(h[329:336], 0)
		putOctal(h[337:344], 0)
	}
	putOctal(h[148:154], checksum(h))
	h[155] = ' '
}

// checksum returns the sum of all bytes, those of its own field as spaces.
func checksum(h []byte) int64 {
	const low = 0x00ff00ff00ff00ff
	var sum uint64
	for i := 0; i < TarBlock; i += 8 { // eight at once
		if i == 144 {
			for _, c := range h[i : i+4] {
				sum += uint64(c)
			}
			continue
		}
		v := binary.LittleEndian.Uint64(h[i:])
		if i == 152 {
			v &^= 1<<32 - 1
		}
		sum += v&low + v>>8&low
	}
	return int64(sum&0xffff+sum>>16&0xffff+sum>>32&0xffff+sum>>48) + 8*' '
}

// putOctal fills a field, but for the byte that ends it.
func putOctal(field []byte, v int64) {
	for i := len(field) - 1; i >= 0; i-- {
		field[i] = '0' + byte(v&7)
		v >>= 3
	}
}

// ParseHeader reads a header of UsualHeader bytes as archive/tar reads it. It reports false for any that AppendHeader would not have appended, also for a damaged one; h then has no meaning.
func ParseHeader(b []byte, h *tar.Header) bool {
	x, record, f := b[:TarBlock], b[TarBlock:2*TarBlock], b[2*TarBlock:UsualHeader]
	size, ok := fields(x, tar.TypeXHeader)
	if !ok || size.size > TarBlock {
		return false
	}
	is, ok := fields(f, f[156])
	if !ok {
		return false
	}
	secs, nanos, ok := timeRecord(record, int(size.size))
	if !ok || secs != is.secs {
		return false
	}
	*h = tar.Header{
		Typeflag: f[156], Name: text(f[:tarName]), Linkname: text(f[157:257]), Size: is.size, Mode: is.mode, Uid: int(is.uid), Gid: int(is.gid), ModTime: time.Unix(secs, nanos),
		Format: tar.FormatPAX,
	}
	folder := strings.HasSuffix(h.Name, "/")
	switch h.Typeflag {
	case tar.TypeReg:
		return !folder && h.Linkname == "" && h.Name != ""
	case tar.TypeDir:
		return folder && h.Linkname == "" && h.Size == 0
	case tar.TypeSymlink:
		return !folder && h.Linkname != "" && h.Size == 0 && h.Name != ""
	}
	return false
}

// numbers are those of a header.
type numbers struct{ mode, uid, gid, size, secs int64 }

// fields reads the numbers of a header of this kind; ok is false if anything else in it is not as putFields fills it.
func fields(h []byte, kind byte) (n numbers, ok bool) {
	to := [5]*int64{&n.mode, &n.uid, &n.gid, &n.size, &n.secs}
	for i, f := range numeric(h) {
		end := len(f) - 1
		if *to[i], ok = octal(f[:end]); !ok || f[end] != 0 {
			return n, false
		}
	}
	sum, ok := octal(h[148:154])
	if !ok || h[154] != 0 || h[155] != ' ' || h[156] != kind || sum != checksum(h) || string(h[257:265]) != "ustar\x0000" {
		return n, false
	}
	device := h[329:345]
	if kind != tar.TypeXHeader && string(device) != "0000000\x000000000\x00" || kind == tar.TypeXHeader && !zeros(device) {
		return n, false
	}
	return n, zeros(h[265:329]) && zeros(h[345:TarBlock]) && clean(h[:tarName]) && clean(h[157:257])
}

// timeRecord reads the one record of a header, of this size.
func timeRecord(record []byte, size int) (secs, nanos int64, ok bool) {
	const from = len("00 mtime=")
	if size < from+len("0.1\n") || size > 99 || record[0] != '0'+byte(size/10) || record[1] != '0'+byte(size%10) || string(record[2:from]) != " mtime=" || record[size-1] != '\n' || !zeros(record[size:]) {
		return 0, 0, false
	}
	whole, frac, ok := strings.Cut(string(record[from:size-1]), ".")
	if !ok || whole == "" || len(whole) > 11 || frac == "" || len(frac) > 9 || frac[len(frac)-1] == '0' || (whole[0] == '0' && whole != "0") {
		return 0, 0, false
	}
	s, err := strconv.ParseUint(whole, 10, 63)
	if err != nil {
		return 0, 0, false
	}
	n, err := strconv.ParseUint((frac + "00000000")[:9], 10, 32)
	return int64(s), int64(n), err == nil
}

// octal reads a field, but for the byte that ends it.
func octal(field []byte) (v int64, ok bool) {
	for _, c := range field {
		if c < '0' || c > '7' {
			return 0, false
		}
		v = v<<3 | int64(c-'0')
	}
	return v, true
}

func zeros(b []byte) bool {
	var none [TarBlock]byte
	return bytes.Equal(b, none[:len(b)])
}

// clean reports whether a field has a name that needs no record, and nothing after it.
func clean(field []byte) bool {
	n := length(field)
	for _, c := range field[:n] {
		if c >= 0x80 {
			return false
		}
	}
	return zeros(field[n:])
}

// text returns a field up to the byte that ends it.
func text(field []byte) string { return string(field[:length(field)]) }

func length(field []byte) int {
	if i := bytes.IndexByte(field, 0); i >= 0 {
		return i
	}
	return len(field)
}
