package vfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// CheckLinks looks at the symbolic links that an absolute path leads over, for who has more rights than the owner of some folder on the way. ErrUntrusted
// is one that another user made, in a folder that is not root's and this process's alone, and that leads to what is not that user's: what cannot be
// reached with the rights of who made the link is not reached with more. follow says that the last element is followed, too. It looks before
// something is done: who replaces a link in between is not kept from that. Everything that cannot be looked at passes: what follows fails by itself.
func CheckLinks(path string, follow bool) error {
	if !filepath.IsAbs(path) {
		return nil
	}
	mine := func(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }
	at, end := "/", ownerOf("/")
	rest, links := strings.Split(path, "/"), 0
	var foreign []uint32
	for len(rest) > 0 && end != nil {
		el := rest[0]
		rest = rest[1:]
		switch el {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			end = ownerOf(at)
			continue
		}
		next := filepath.Join(at, el)
		st := ownerOf(next)
		if st == nil {
			rest = nil // what is made there is made in the folder
			continue
		}
		if st.Mode&syscall.S_IFMT != syscall.S_IFLNK || !follow && strings.Trim(strings.Join(rest, ""), ".") == "" {
			at, end = next, st
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return nil //nolint:nilerr // see above
		}
		if !mine(st.Uid) && (!mine(end.Uid) || end.Mode&0o022 != 0) {
			foreign = append(foreign, st.Uid)
		}
		if filepath.IsAbs(target) {
			at, end = "/", ownerOf("/")
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	for _, uid := range foreign {
		if end == nil || end.Uid != uid {
			return pathErr("open", path, fmt.Errorf("%w (%d), and leads to what is not that user's", ErrUntrusted, uid))
		}
	}
	return nil
}

// ownerOf is what stands at a path, nil for nothing that can be looked at.
func ownerOf(path string) *syscall.Stat_t {
	st := new(syscall.Stat_t)
	if err := syscall.Lstat(path, st); err != nil {
		return nil
	}
	return st
}
