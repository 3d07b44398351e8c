package tree

import (
	"archive/tar"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/vfs"
)

// ErrNotForTar is wrapped if a tree holds what tar can't: an extended attribute with "=" in its name.
var ErrNotForTar = errors.New("a tar can't hold this")

// ErrBadACL is wrapped if a tar holds an invalid ACL.
var ErrBadACL = errors.New("not an ACL")

// TarHeader describes an entry in PAX format: nanoseconds, extended attributes (SCHILY.xattr), ACLs (SCHILY.acl), hard links. leaders holds
// the first path of each hard-link group; TarHeader adds to it. xattrs is called if the entry has any.
func TarHeader(e *Entry, leaders map[uint32]string, xattrs func() ([]vfs.Xattr, error)) (*tar.Header, error) {
	h := &tar.Header{
		Typeflag: TarType(e), Name: e.Path, Mode: int64(e.Mode & 0o7777), Uid: int(e.UID), Gid: int(e.GID), ModTime: time.Unix(0, e.Mtime), Format: tar.FormatPAX,
	}
	if e.Link != 0 {
		if first, ok := leaders[e.Link]; ok {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			return h, nil
		}
		leaders[e.Link] = e.Path
	}
	switch h.Typeflag {
	case tar.TypeDir:
		h.Name += "/"
	case tar.TypeReg:
		h.Size = e.Size
	case tar.TypeSymlink:
		h.Linkname = e.Target
	case tar.TypeChar, tar.TypeBlock:
		h.Devmajor, h.Devminor = int64(unix.Major(e.Rdev)), int64(unix.Minor(e.Rdev))
	}
	if e.Xattrs == 0 {
		return h, nil
	}
	xs, err := xattrs()
	if err != nil {
		return nil, err
	}
	h.PAXRecords = map[string]string{}
	for _, a := range xs {
		switch {
		case a.Name == "system.posix_acl_access":
			h.PAXRecords["SCHILY.acl.access"] = aclText(a.Value)
		case a.Name == "system.posix_acl_default":
			h.PAXRecords["SCHILY.acl.default"] = aclText(a.Value)
		case strings.ContainsAny(a.Name, "=\x00"):
			return nil, fmt.Errorf("%w: %q has an attribute named %q", ErrNotForTar, e.Path, a.Name)
		default:
			h.PAXRecords["SCHILY.xattr."+a.Name] = string(a.Value)
		}
	}
	return h, nil
}

// TarHolds reports whether a tar can hold an entry of this type: it can't hold a socket.
func TarHolds(e *Entry) bool { return e.Type() != syscall.S_IFSOCK }

// TarType returns the type of an entry in the header of a tar.
func TarType(e *Entry) byte {
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

// TarXattrs returns the extended attributes of a header, in byte order of names.
func TarXattrs(h *tar.Header) ([]vfs.Xattr, error) {
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
	bad := fmt.Errorf("%w: ACL %q", ErrBadACL, text)
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

// aclText returns the text form of a POSIX ACL as Linux stores it in an attribute: a version, then tag, permissions and ID of each entry,
// little-endian (linux/posix_acl_xattr.h). IDs stay numbers. It returns "" for any other input.
func aclText(b []byte) string {
	const head, size = 4, 8
	if len(b) < head || (len(b)-head)%size != 0 || b[0] != 2 {
		return ""
	}
	var out []string
	for b = b[head:]; len(b) > 0; b = b[size:] {
		tag := uint16(b[0]) | uint16(b[1])<<8
		id := uint32(b[4]) | uint32(b[5])<<8 | uint32(b[6])<<16 | uint32(b[7])<<24
		who := map[uint16]string{1: "user:", 2: fmt.Sprintf("user:%d", id), 4: "group:", 8: fmt.Sprintf("group:%d", id), 16: "mask:", 32: "other:"}[tag]
		if who == "" {
			return ""
		}
		perm := []byte("---")
		for i, c := range []byte("rwx") {
			if b[2]&(4>>i) != 0 {
				perm[i] = c
			}
		}
		out = append(out, who+":"+string(perm))
	}
	return strings.Join(out, ",")
}
