package tree

import (
	"archive/tar"
	"encoding/binary"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// TarBlock is the size of the blocks of a tar: headers and contents are filled up to it.
const TarBlock = 512

const (
	// tarName is the size of the fields for names, tarID that of owners, modes and devices, tarSize that of sizes and times.
	tarName, tarID, tarSize = 100, 8, 12
)

// AppendHeader appends the header of an entry as archive/tar writes the one of TarHeader, byte for byte. It reports false, and appends nothing, for an entry that needs anything but the usual: a file, folder or
// symbolic link with one name, times in nanoseconds and neither attributes nor names that need a record (POSIX.1-2017, pax, ustar Interchange Format).
func AppendHeader(b []byte, e *Entry) ([]byte, bool) {
	t := e.Type()
	usual := e.Link == 0 && e.Xattrs == 0 && (t == syscall.S_IFREG || t == syscall.S_IFDIR || (t == syscall.S_IFLNK && plainName(e.Target) && e.Target != ""))
	secs, nanos := time.Unix(0, e.Mtime).Unix(), time.Unix(0, e.Mtime).Nanosecond()
	if !usual || !plainName(e.Path) || secs < 0 || nanos == 0 || e.UID >= 1<<21 || e.GID >= 1<<21 || e.Size >= 1<<33 {
		return b, false
	}
	// The record of the time: its length, which counts itself, a space, and the rest.
	var text [64]byte
	rest := append(text[:0], " mtime="...)
	rest = strconv.AppendInt(rest, secs, 10)
	frac := strconv.AppendInt(append(make([]byte, 0, 16), '.'), int64(nanos)+1_000_000_000, 10)
	frac = append(frac[:1], frac[2:]...) // without the leading 1
	rest = append(rest, strings.TrimRight(string(frac), "0")...)
	rest = append(rest, '\n')
	size := len(rest) + 2 // at least ten and fewer than a hundred bytes

	at := len(b)
	b = append(b, make([]byte, 3*TarBlock)...)
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

// putFields fills the other fields of a header, and then its checksum.
func putFields(h []byte, kind byte, mode, uid, gid uint32, size, secs int64) {
	at := tarName
	for _, f := range []struct {
		n int
		v int64
	}{{tarID, int64(mode & 0o7777)}, {tarID, int64(uid)}, {tarID, int64(gid)}, {tarSize, size}, {tarSize, secs}} {
		putOctal(h[at:at+f.n-1], f.v)
		at += f.n
	}
	h[156] = kind
	copy(h[257:], "ustar\x0000")
	if kind != tar.TypeXHeader { // the device
		putOctal(h[329:336], 0)
		putOctal(h[337:344], 0)
	}
	for i := 148; i < 156; i++ {
		h[i] = ' '
	}
	// The checksum is the sum of all bytes; eight are added at once.
	const low = 0x00ff00ff00ff00ff
	var sum uint64
	for i := 0; i < TarBlock; i += 8 {
		v := binary.LittleEndian.Uint64(h[i:])
		sum += v&low + v>>8&low
	}
	sum = sum&0xffff + sum>>16&0xffff + sum>>32&0xffff + sum>>48
	putOctal(h[148:154], int64(sum))
	h[154], h[155] = 0, ' '
}

// putOctal fills a field, but for the byte that ends it.
func putOctal(field []byte, v int64) {
	for i := len(field) - 1; i >= 0; i-- {
		field[i] = '0' + byte(v&7)
		v >>= 3
	}
}
