package changed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// wanted are the events: changes of owner, mode, access control list (FAN_ATTRIB), and new names. The bits FAN_ONDIR and FAN_EVENT_ON_CHILD
// say of what.
const wanted = unix.FAN_ATTRIB | unix.FAN_CREATE | unix.FAN_MOVED_TO | unix.FAN_ONDIR | unix.FAN_EVENT_ON_CHILD

// content are further events: changes of content (of a file that was mapped, or written asynchronously, when the last that did so closes it), and names that
// are gone.
const content = unix.FAN_MODIFY | unix.FAN_CLOSE_WRITE | unix.FAN_DELETE | unix.FAN_MOVED_FROM

// ErrUnknown is wrapped by every error: what changed is not known.
var ErrUnknown = errors.New("changes are not known")

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnknown, fmt.Errorf(format, args...))
}

// Watches is a fitting limit for New: enough that a quiet server always has one, and few enough that changes do not take noticeably longer.
const Watches = 4

// Notifier limits how many watches there are at a time: each of them is told of each change of the file system.
type Notifier struct{ free chan struct{} }

// New returns a Notifier of at most limit watches.
func New(limit int) *Notifier { return &Notifier{free: make(chan struct{}, limit)} }

// Watch collects the changes of some folders. It belongs to one goroutine.
type Watch struct {
	n *Notifier
	// mask is which events are collected.
	mask uint64
	// events is the descriptor of the notification group, mounts that of the table of mounts as it was at Begin; -1 when closed.
	events, mounts int
	folders        map[string]folder
	systems        map[fsid]system
	// ended: End was called; known: it succeeded, and seen has every event.
	ended, known bool
	seen         []seen
}

type fsid [8]byte

// folder is a watched folder as it was at Begin.
type folder struct {
	fs  fsid
	top handle
}

// system is a watched file system; mark is a folder by which it was marked, dev its device, inode finds an inode's number in a handle.
type system struct {
	mark  string
	dev   uint64
	inode func(handle) (uint64, bool)
}

// Begin begins to watch folders; those that do not exist, or that can't be watched, are left out, and the error says why none is watched.
// Close the watch.
func (n *Notifier) Begin(dirs ...string) (*Watch, error) { return n.watch(wanted, dirs) }

// BeginAll is Begin for everything that a look at the inodes of the folders shows: In names also what was written and removed. What a process writes to a
// file that it has mapped, or asynchronously, is known only once it has closed the file.
func (n *Notifier) BeginAll(dirs ...string) (*Watch, error) { return n.watch(wanted|content, dirs) }

func (n *Notifier) watch(mask uint64, dirs []string) (*Watch, error) {
	select {
	case n.free <- struct{}{}:
	default:
		return nil, unknown("%d watches already", cap(n.free))
	}
	w := &Watch{n: n, mask: mask, events: -1, mounts: -1, folders: map[string]folder{}, systems: map[fsid]system{}}
	if err := w.begin(dirs); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Watch) begin(dirs []string) (err error) {
	const flags = unix.FAN_CLASS_NOTIF | unix.FAN_CLOEXEC | unix.FAN_NONBLOCK | unix.FAN_REPORT_DFID_NAME_TARGET
	if w.events, err = unix.FanotifyInit(flags, unix.O_RDONLY|unix.O_CLOEXEC); err != nil {
		w.events = -1
		return unknown("fanotify_init: %w", err)
	}
	if w.mounts, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		w.mounts = -1
		return unknown("open the table of mounts: %w", err)
	}
	table, err := readAll(w.mounts)
	if err != nil {
		return unknown("read the table of mounts: %w", err)
	}
	points := mountPoints(table)
	var why error
	for _, dir := range dirs {
		if err := w.add(dir, points); err != nil {
			why = errors.Join(why, err)
		}
	}
	if len(w.folders) == 0 {
		return unknown("no folder can be watched: %w", why)
	}
	return nil
}

// add watches one folder.
func (w *Watch) add(dir string, points []string) error {
	fd, real, err := openTop(dir)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for _, p := range points {
		if strings.HasPrefix(p, real+"/") {
			return unknown("%s is a mount", p)
		}
	}
	top, err := handleOf(fd)
	if err != nil {
		return err
	}
	var in unix.Statfs_t
	if err := unix.Fstatfs(fd, &in); err != nil {
		return unknown("statfs %s: %w", dir, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return unknown("stat %s: %w", dir, err)
	}
	id := fsidOf(&in)
	if s, ok := w.systems[id]; !ok {
		s, err := w.system(fd, dir, top, &st, int64(in.Type))
		if err != nil {
			return err
		}
		w.systems[id] = s
	} else if s.dev != st.Dev { // a copy of the file system, with the same UUID
		return unknown("%s: another file system has the same ID as that of %s", dir, s.mark)
	}
	w.folders[dir] = folder{fs: id, top: top}
	return nil
}

// system marks the file system of a folder.
func (w *Watch) system(fd int, dir string, top handle, st *unix.Stat_t, kind int64) (system, error) {
	if kind != unix.EXT4_SUPER_MAGIC && kind != unix.TMPFS_MAGIC {
		return system{}, unknown("%s: the file system (%#x) is not known to report every change", dir, kind)
	}
	s := system{mark: dir, dev: st.Dev, inode: decoder(top, st.Ino)}
	if s.inode == nil {
		return s, unknown("%s: handles of an unknown kind", dir)
	}
	again, err := unix.OpenByHandleAt(fd, top.unix(), unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return s, unknown("open_by_handle_at: %w", err)
	}
	_ = unix.Close(again)
	if err := unix.FanotifyMark(w.events, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, w.mask, fd, "."); err != nil {
		return s, unknown("watch the file system of %s: %w", dir, err)
	}
	return s, nil
}

// openTop opens a folder, and returns its path without links.
func openTop(dir string) (fd int, real string, err error) {
	fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, "", unknown("open %s: %w", dir, err)
	}
	if real, err = pathOf(fd); err != nil || !filepath.IsAbs(real) || real == "/" {
		_ = unix.Close(fd)
		return -1, "", unknown("the path of %s (%s): %w", dir, real, err)
	}
	return fd, real, nil
}

// pathOf returns the path of an open file; it may end in " (deleted)".
func pathOf(fd int) (string, error) {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", unknown("%w", err)
	}
	return path, nil
}

// readAll reads an open file to its end.
func readAll(fd int) ([]byte, error) {
	out, part := []byte(nil), make([]byte, 32<<10)
	for {
		n, err := unix.Read(fd, part)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return out, err
		}
		out = append(out, part[:n]...)
	}
}

// mountPoints returns the fifth field of each line. Source: proc_pid_mountinfo(5).
func mountPoints(table []byte) []string {
	var out []string
	for line := range bytes.Lines(table) {
		if f := bytes.Fields(line); len(f) > 4 {
			out = append(out, mountEscapes.Replace(string(f[4])))
		}
	}
	return out
}

var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Close ends the watch. The kernel waits some milliseconds for it, the caller does not.
func (w *Watch) Close() {
	if w == nil || w.n == nil {
		return
	}
	fds := []int{w.events, w.mounts}
	<-w.n.free
	w.n, w.events, w.mounts, w.seen = nil, -1, -1, nil
	go func() {
		for _, fd := range fds {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
		}
	}()
}
