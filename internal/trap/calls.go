package trap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Call is one system call that is about to happen.
type Call struct {
	// Name is that of the call: openat, write, renameat2 …
	Name string
	// Path is what it changes, absolute, as the kernel knows it; Old is where something comes from (rename, link), or the
	// target of a symbolic link, unchanged.
	Path, Old string
	// Args are the raw arguments.
	Args [6]uint64

	tid int
}

// where describes in which arguments a call has its paths.
type where int

const (
	atPath   where = iota // folder, path
	atTwo                 // folder, path, folder, path
	target                // target, folder, path
	fd                    // descriptor
	copied                // descriptor, offset, descriptor
	path                  // path
	timesFor              // folder, path or nothing
)

// kind is a system call that is trapped.
type kind struct {
	name string
	in   where
	// reads: it changes nothing, and is trapped only if reading is.
	reads bool
}

// frFICLONE is FICLONE of linux/fs.h: _IOW(0x94, 9, int).
const frFICLONE = 0x40049409

// writing are the flags of openat(2) with which it may change something.
const writing = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

func kinds() map[uint32]kind {
	return map[uint32]kind{
		unix.SYS_OPENAT: {name: "openat"}, unix.SYS_RENAMEAT: {name: "renameat", in: atTwo}, unix.SYS_RENAMEAT2: {name: "renameat2", in: atTwo},
		unix.SYS_UNLINKAT: {name: "unlinkat"}, unix.SYS_MKDIRAT: {name: "mkdirat"}, unix.SYS_MKNODAT: {name: "mknodat"},
		unix.SYS_LINKAT: {name: "linkat", in: atTwo}, unix.SYS_SYMLINKAT: {name: "symlinkat", in: target},
		unix.SYS_FCHMODAT: {name: "fchmodat"}, unix.SYS_FCHMODAT2: {name: "fchmodat2"}, unix.SYS_FCHOWNAT: {name: "fchownat"},
		unix.SYS_UTIMENSAT: {name: "utimensat", in: timesFor},
		unix.SYS_WRITE:     {name: "write", in: fd}, unix.SYS_PWRITE64: {name: "pwrite64", in: fd}, unix.SYS_WRITEV: {name: "writev", in: fd},
		unix.SYS_FTRUNCATE: {name: "ftruncate", in: fd}, unix.SYS_FALLOCATE: {name: "fallocate", in: fd},
		unix.SYS_FCHMOD: {name: "fchmod", in: fd}, unix.SYS_FCHOWN: {name: "fchown", in: fd},
		unix.SYS_FSYNC: {name: "fsync", in: fd}, unix.SYS_FDATASYNC: {name: "fdatasync", in: fd}, unix.SYS_SYNCFS: {name: "syncfs", in: fd},
		unix.SYS_FSETXATTR: {name: "fsetxattr", in: fd}, unix.SYS_FREMOVEXATTR: {name: "fremovexattr", in: fd},
		unix.SYS_SETXATTR: {name: "setxattr", in: path}, unix.SYS_LSETXATTR: {name: "lsetxattr", in: path},
		unix.SYS_REMOVEXATTR: {name: "removexattr", in: path}, unix.SYS_LREMOVEXATTR: {name: "lremovexattr", in: path},
		unix.SYS_COPY_FILE_RANGE: {name: "copy_file_range", in: copied}, unix.SYS_SENDFILE: {name: "sendfile", in: fd}, unix.SYS_IOCTL: {name: "ficlone", in: fd},

		sysFstatat: {name: "fstatat", reads: true}, unix.SYS_STATX: {name: "statx", reads: true}, unix.SYS_READLINKAT: {name: "readlinkat", reads: true},
		unix.SYS_GETDENTS64: {name: "getdents64", in: fd, reads: true}, unix.SYS_READ: {name: "read", in: fd, reads: true},
		unix.SYS_PREAD64: {name: "pread64", in: fd, reads: true}, unix.SYS_FSTAT: {name: "fstat", in: fd, reads: true},
	}
}

// decode reads a call's paths out of the process. A path that can't be determined is empty.
func (k kind) decode(tid int, args [6]uint64) Call {
	c := Call{Name: k.name, Args: args, tid: tid}
	switch k.in {
	case atPath:
		c.Path = c.at(args[0], args[1])
	case atTwo:
		c.Old, c.Path = c.at(args[0], args[1]), c.at(args[2], args[3])
	case target:
		c.Old, c.Path = c.text(args[0]), c.at(args[1], args[2])
	case fd:
		c.Path = c.open(args[0])
	case copied:
		c.Old, c.Path = c.open(args[0]), c.open(args[2])
	case path:
		c.Path = c.at(atCWD, args[0])
	case timesFor:
		if args[1] == 0 {
			c.Path = c.open(args[0])
		} else {
			c.Path = c.at(args[0], args[1])
		}
	}
	return c
}

// atCWD is AT_FDCWD as an argument.
const atCWD = 1<<64 - 100

// at returns a path that is relative to an open folder.
func (c *Call) at(dir, ptr uint64) string {
	p := c.text(ptr)
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	at := c.open(dir)
	if int32(dir) == unix.AT_FDCWD {
		at, _ = os.Readlink(c.proc("cwd"))
	}
	if at == "" {
		return ""
	}
	return filepath.Join(at, p)
}

// open returns the path of a descriptor, empty for anything but a file or folder with a name. Of /dev only the file system in memory counts, where
// a test may have its folder.
func (c *Call) open(fd uint64) string {
	p, err := os.Readlink(c.proc("fd/" + strconv.Itoa(int(int32(fd)))))
	device := strings.HasPrefix(p, "/dev/") && !strings.HasPrefix(p, "/dev/shm/")
	if err != nil || !filepath.IsAbs(p) || device || strings.HasPrefix(p, "/proc/") {
		return ""
	}
	return strings.TrimSuffix(p, " (deleted)")
}

func (c *Call) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", c.tid, name) }

// text returns a string of the process, up to its NUL.
func (c *Call) text(ptr uint64) string {
	var out []byte
	for len(out) < unix.PathMax {
		// Never across a page: the next one may not exist.
		b, err := c.memory(ptr, int(4096-ptr%4096))
		if i := bytes.IndexByte(b, 0); i >= 0 {
			return string(append(out, b[:i]...))
		}
		if err != nil || len(b) == 0 {
			return ""
		}
		out, ptr = append(out, b...), ptr+uint64(len(b))
	}
	return ""
}

func (c *Call) memory(ptr uint64, n int) ([]byte, error) {
	b := make([]byte, n)
	if n == 0 {
		return b, nil
	}
	got, err := unix.ProcessVMReadv(c.tid, []unix.Iovec{iovec(b)}, []unix.RemoteIovec{{Base: uintptr(ptr), Len: n}}, 0)
	return b[:max(got, 0)], err
}

func iovec(b []byte) unix.Iovec {
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	return v
}

// Data returns what a write is about to write.
func (c *Call) Data() ([]byte, error) {
	switch c.Name {
	case "write", "pwrite64":
		return c.memory(c.Args[1], int(c.Args[2]))
	case "writev":
		vs, err := c.memory(c.Args[1], int(c.Args[2])*16)
		var out []byte
		for ; err == nil && len(vs) >= 16; vs = vs[16:] {
			var b []byte
			b, err = c.memory(binary.NativeEndian.Uint64(vs), int(binary.NativeEndian.Uint64(vs[8:])))
			out = append(out, b...)
		}
		return out, err
	}
	return nil, fmt.Errorf("%s writes no bytes: %w", c.Name, syscall.EINVAL)
}

// Offset returns the position in the file of the descriptor of a write.
func (c *Call) Offset() (int64, error) {
	if c.Name == "pwrite64" {
		return int64(c.Args[3]), nil
	}
	text, err := os.ReadFile(c.proc("fdinfo/" + strconv.Itoa(int(int32(c.Args[0])))))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "pos:"); ok {
			return strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		}
	}
	return 0, fmt.Errorf("no position in %q", text)
}

// String returns the call for a report.
func (c Call) String() string {
	if c.Old != "" {
		return c.Name + " " + c.Old + " " + c.Path
	}
	return c.Name + " " + c.Path
}
