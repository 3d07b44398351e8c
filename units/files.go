package units

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/sleep"
	"corpus-git/project"
)

// Opener opens log files with the permissions of a user.
type Opener struct {
	// User is the user that opens: the kernel refuses what that user may not read. If it is nil, this process opens, and files are refused that
	// are neither below Within nor readable by everybody.
	User *syscall.Credential
	// Within is the project's folder. Links in its path are followed, others are not.
	Within string
}

// maxFiles limits how many files are read at a time.
const maxFiles = 200

// glob returns the files that match, in order.
func (o Opener) glob(ctx context.Context, globs []string) (out []string, err error) {
	err = o.as(func() error {
		for _, g := range globs {
			list, err := matchingFiles(ctx, g)
			if err != nil {
				return fmt.Errorf("%s: %w", g, err)
			}
			out = append(out, list...)
		}
		return nil
	})
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > maxFiles {
		out = out[:maxFiles]
	}
	return out, err
}

// open opens a regular file to read.
func (o Opener) open(path string) (f *os.File, err error) {
	real, inside := path, false
	if rel, rerr := filepath.Rel(o.Within, path); rerr == nil && filepath.IsLocal(rel) {
		dir, err := filepath.EvalSymlinks(o.Within)
		if err != nil {
			return nil, err
		}
		real, inside = filepath.Join(dir, rel), true
	}
	err = o.as(func() error {
		how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
		fd, err := unix.Openat2(unix.AT_FDCWD, real, &how)
		for errors.Is(err, unix.EINTR) {
			fd, err = unix.Openat2(unix.AT_FDCWD, real, &how)
		}
		if errors.Is(err, unix.ELOOP) {
			return errors.New("it is, or is behind, a symbolic link; the key  logs  names files themselves")
		}
		if err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), path) //nolint:gosec // a descriptor is not negative
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	st, err := f.Stat()
	switch {
	case err != nil:
	case !st.Mode().IsRegular():
		err = fmt.Errorf("%s: not a regular file", path)
	case o.User == nil && !inside && st.Mode()&0o004 == 0:
		err = fmt.Errorf("%s: not everybody may read it, and it is not in the project's folder", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// as runs fn with the file permissions of User: the thread sets that user and group with setfsuid(2). The thread ends with fn.
func (o Opener) as(fn func() error) error {
	if o.User == nil {
		return fn()
	}
	done := make(chan error)
	var on func()
	on = func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // the first thread can't end, so it must not be used
			next := make(chan struct{})
			go func() {
				defer close(next)
				on()
			}()
			<-next
			runtime.UnlockOSThread()
			return
		}
		// Never unlocked: no other goroutine may get this thread.
		if err := become(o.User); err != nil {
			done <- err
			return
		}
		done <- fn()
	}
	go on()
	return <-done
}

// become changes the file permissions of this thread, and no other. Switching from root to another user drops the capabilities that
// override permissions (capabilities(7)).
func become(c *syscall.Credential) error {
	groups := slices.Clone(c.Groups)
	if err := setgroups(groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := unix.Setfsgid(int(c.Gid)); err != nil {
		return fmt.Errorf("setfsgid: %w", err)
	}
	if err := unix.Setfsuid(int(c.Uid)); err != nil {
		return fmt.Errorf("setfsuid: %w", err)
	}
	// Neither call reports a failure; requesting an impossible user reports which is set (setfsuid(2)).
	if now, _ := unix.SetfsuidRetUid(-1); now != int(c.Uid) {
		return fmt.Errorf("setfsuid: this thread is still %d", now)
	}
	if now, _ := unix.SetfsgidRetGid(-1); now != int(c.Gid) {
		return fmt.Errorf("setfsgid: this thread is still in %d", now)
	}
	return nil
}

// tail is one file that is read to its end, and then followed, as by tail -F.
type tail struct {
	path string
	f    *os.File
	r    *bufio.Reader
	part string // of an unterminated line
}

// maxLine is the longest line that is kept in one piece, in bytes.
const maxLine = 64 << 10

// blocks is how much is read at once, backwards, to find the last lines, and lastBytes how far back at most.
const (
	blocks    = 64 << 10
	lastBytes = 16 << 20
)

// openTail opens a file and seeks to the beginning of its last n lines.
func (o Opener) openTail(path string, n int) (*tail, error) {
	f, err := o.open(path)
	if err != nil {
		return nil, err
	}
	at, err := lastLines(f, n)
	if err == nil {
		_, err = f.Seek(at, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &tail{path: path, f: f, r: bufio.NewReader(f)}, nil
}

// lastLines finds where the last n lines of a file begin.
func lastLines(f *os.File, n int) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || n <= 0 {
		return size, err
	}
	least := max(0, size-lastBytes)
	buf := make([]byte, blocks)
	end := size
	for end > least {
		begin := max(least, end-blocks)
		part := buf[:end-begin]
		if _, err := f.ReadAt(part, begin); err != nil {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] != '\n' || begin+int64(i) == size-1 {
				continue
			}
			if n--; n == 0 {
				return begin + int64(i) + 1, nil
			}
		}
		end = begin
	}
	return least, nil
}

// read passes on the complete lines; with end also an unterminated last one. Of a large amount only the last lastBytes are read: a file
// can be made long without writing (ftruncate(2)), and longer while it is read.
func (t *tail) read(ctx context.Context, emit func(source, line string) error, end bool) error {
	at, err := t.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	size, err := t.f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size-at > lastBytes {
		if err := emit(t.path, fmt.Sprintf("... %d bytes are not shown", size-lastBytes-at)); err != nil {
			return err
		}
		at, t.part = size-lastBytes, ""
	}
	if _, err := t.f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	t.r.Reset(io.LimitReader(t.f, size-at))
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		piece, err := t.r.ReadSlice('\n')
		if t.part += string(piece); strings.HasSuffix(t.part, "\n") || len(t.part) > maxLine || end && errors.Is(err, io.EOF) && t.part != "" {
			line := strings.TrimSuffix(t.part, "\n")
			t.part = ""
			if err := emit(t.path, line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// follow reads what was written since. If the file was replaced or truncated, it continues at the beginning of the present one.
func (t *tail) follow(ctx context.Context, o Opener, emit func(source, line string) error) error {
	if err := t.read(ctx, emit, false); err != nil {
		return err
	}
	old, err := t.f.Stat()
	if err != nil {
		return err
	}
	at, err := t.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if old.Size() < at {
		_, err = t.f.Seek(0, io.SeekStart)
		return errors.Join(err, t.read(ctx, emit, false))
	}
	f, err := o.open(t.path)
	if err != nil {
		return nil // rotated or removed: continue with what is written later
	}
	now, err := f.Stat()
	if err != nil || os.SameFile(old, now) {
		_ = f.Close()
		return err
	}
	// What was written to the old one before the check.
	err = t.read(ctx, emit, true)
	_ = t.f.Close()
	t.f = f
	return errors.Join(err, t.read(ctx, emit, false))
}

// files reads the files of the entries.
func (r *Runner) files(ctx context.Context, o Opener, entries []project.LogFiles, req LogRequest, emit func(source, line string) error) error {
	open := map[string]*tail{}
	defer func() {
		for _, t := range open {
			_ = t.f.Close()
		}
	}()
	failed := map[string]bool{}
	var globs []string
	for _, e := range entries {
		globs = append(globs, e.Globs...)
	}
	for first := true; ; first = false {
		paths, err := o.glob(ctx, globs)
		if err != nil {
			return err
		}
		forget(open, failed, paths)
		for _, p := range paths {
			t := open[p]
			switch {
			case t == nil && !failed[p]:
				n := req.Lines
				if !first {
					n = int(^uint(0) >> 1) // a new file is read from its beginning
				}
				if t, err = o.openTail(p, n); err != nil {
					failed[p] = true
					if err := emit("", "not shown: "+err.Error()); err != nil {
						return err
					}
					continue
				}
				open[p] = t
				if err := t.read(ctx, emit, !req.Follow); err != nil {
					return err
				}
			case t != nil:
				if err := t.follow(ctx, o, emit); err != nil {
					return err
				}
			}
		}
		if !req.Follow {
			return nil
		}
		if req.Idle != nil {
			if err := req.Idle(); err != nil {
				return err
			}
		}
		if err := sleep.For(ctx, followEvery); err != nil {
			return err
		}
	}
}

// forget closes files that have no name any more if so many are open that a process which creates and removes files could use up the
// server's descriptors. Few stay open: a file that is being rotated has no name for a moment.
func forget(open map[string]*tail, failed map[string]bool, paths []string) {
	if len(open) <= maxFiles && len(failed) <= maxFiles {
		return
	}
	for path, t := range open {
		if !slices.Contains(paths, path) {
			_ = t.f.Close()
			delete(open, path)
		}
	}
	for path := range failed {
		if !slices.Contains(paths, path) {
			delete(failed, path)
		}
	}
}

// followEvery is the interval at which followed files are checked.
const followEvery = 300 * time.Millisecond
