package vfs

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrUntrusted reports that a path contains a symbolic link of another user.
var ErrUntrusted = errors.New("a symbolic link of another user is in the way")

// maxLinks is how many links one path may contain, as in path_resolution(7).
const maxLinks = 40

// OpenTrusted opens a folder by its absolute path, for a process with more privileges than the owner of some folder in it: element by
// element, each by a descriptor, following only links that root or this process's user made. Otherwise the owner of a folder could redirect
// the path between a check and its use. Nothing below the opened folder follows a link; see Dir.
func OpenTrusted(path string) (Dir, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, pathErr("open", path, errors.New("the path is not absolute"))
	}
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	open := func(at int, name string) (fd int, err error) {
		err = retry(func() (e error) { fd, e = unix.Openat(at, name, flags, 0); return e })
		return fd, err
	}
	at, err := open(unix.AT_FDCWD, "/")
	if err != nil {
		return nil, pathErr("open", path, err)
	}
	defer func() { _ = unix.Close(at) }()
	rest, links := strings.Split(path, "/"), 0
	for len(rest) > 0 {
		el := rest[0]
		rest = rest[1:]
		if el == "" || el == "." {
			continue
		}
		fd, err := open(at, el)
		if err != nil {
			return nil, pathErr("open", path, err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			_ = unix.Close(fd)
			return nil, pathErr("stat", path, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			_ = unix.Close(at)
			at = fd
			continue
		}
		target, err := linkTarget(fd)
		_ = unix.Close(fd)
		if links++; err == nil && links > maxLinks {
			err = unix.ELOOP
		}
		if err == nil && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
			err = fmt.Errorf("%s: %w (%d)", el, ErrUntrusted, st.Uid)
		}
		if err != nil {
			return nil, pathErr("open", path, err)
		}
		if strings.HasPrefix(target, "/") {
			top, err := open(unix.AT_FDCWD, "/")
			if err != nil {
				return nil, pathErr("open", path, err)
			}
			_ = unix.Close(at)
			at = top
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	fd, err := openFD(at, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, pathErr("open", path, err)
	}
	return dir{fd: fd, h: &handle{}}, nil
}

// linkTarget reads the link that fd is (readlinkat(2) with an empty path).
func linkTarget(fd int) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}
