package refs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// LockedError reports that the lock of a ref is held.
type LockedError struct{ Name string }

func (e *LockedError) Error() string {
	name := printable.Line(e.Name)
	return fmt.Sprintf("%s is being changed by somebody else (%s.lock is there)", name, name)
}

// ClashError reports that a ref would be a folder of another one's name: refs/heads/a and refs/heads/a/b.
type ClashError struct{ Name, With string }

func (e *ClashError) Error() string {
	return fmt.Sprintf("%s cannot be beside %s", printable.Line(e.Name), printable.Line(e.With))
}

// lockFile is <name>.lock, which holds the new content until it becomes the file.
type lockFile struct {
	s    *Store
	name string
	file vfs.File
	made bool // the lock file exists
	// synced reports that its content is durable; otherwise it must not be renamed, because a power cut could leave the ref empty.
	synced bool
}

// lock takes the lock of a ref, of HEAD or of packed-refs, and creates the folders it needs.
func (s *Store) lock(name string) (*lockFile, error) {
	wait := s.LockWait
	if wait == 0 {
		wait = time.Second
	}
	return s.lockFor(name, wait)
}

// lockFor is lock that waits for at most the given time; a negative time does not wait.
func (s *Store) lockFor(name string, wait time.Duration) (*lockFile, error) {
	path := s.path(name) + ".lock"
	for pause, waited := 5*time.Millisecond, time.Duration(0); ; pause = min(2*pause, 100*time.Millisecond) {
		f, err := s.fs().OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		switch {
		case err == nil:
			return &lockFile{s: s, name: name, file: f, made: true}, nil
		case errors.Is(err, fs.ErrExist):
			if waited >= wait {
				return nil, &LockedError{name}
			}
			time.Sleep(pause)
			waited += pause
		case errors.Is(err, fs.ErrNotExist):
			// The folder does not exist, or is being removed as an empty one: try again.
			if err := s.mkdirs(name); err != nil {
				return nil, err
			}
			if waited > max(wait, time.Second) {
				return nil, err
			}
			waited += time.Millisecond
		case errors.Is(err, syscall.ENOTDIR):
			return nil, s.parentRef(name, err)
		default:
			return nil, err
		}
	}
}

// mkdirs makes the folders above a ref.
func (s *Store) mkdirs(name string) error {
	parts := strings.Split(name, "/")
	for i := 1; i < len(parts); i++ {
		err := s.mkdir(s.path(strings.Join(parts[:i], "/")))
		switch {
		case err == nil, errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, syscall.ENOTDIR):
			return s.parentRef(name, err)
		default:
			return err
		}
	}
	return nil
}

// parentRef returns the name of the ref that exists where name needs a folder.
func (s *Store) parentRef(name string, err error) error {
	parts := strings.Split(name, "/")
	for i := 1; i < len(parts); i++ {
		dir := strings.Join(parts[:i], "/")
		if st, serr := s.fs().Lstat(s.path(dir)); serr == nil && !st.IsDir() {
			return &ClashError{name, dir}
		}
	}
	return err
}

// write fills the lock and makes its content durable.
func (l *lockFile) write(data []byte) error {
	if _, err := l.file.Write(data); err != nil {
		return err
	}
	return l.sync(0)
}

// sync makes the content durable, once; on the file system covered it already is.
func (l *lockFile) sync(covered uint64) error {
	if l.synced {
		return nil
	}
	err := vfs.SyncUnlessCovered(l.file, covered)
	if cerr := l.file.Close(); err == nil {
		err = cerr
	}
	l.file, l.synced = nil, err == nil
	return err
}

// publish turns the lock into the file.
func (l *lockFile) publish() error {
	if !l.synced {
		return fmt.Errorf("%s.lock is not durable", l.name)
	}
	l.s.places.Lock()
	defer l.s.places.Unlock()
	f, from, to := l.s.fs(), l.s.path(l.name)+".lock", l.s.path(l.name)
	err := f.Rename(from, to)
	for n := 0; n < 3 && (errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY)); n++ {
		// Refs below this one were deleted and left their folders.
		if err := l.s.removeEmpty(to); err != nil {
			return err
		}
		err = f.Rename(from, to)
	}
	if err != nil {
		return err
	}
	l.made = false
	return nil
}

// commit is write, publish and sync of the folder.
func (l *lockFile) commit(data []byte) error {
	if err := l.write(data); err != nil {
		return err
	}
	if err := l.publish(); err != nil {
		return err
	}
	return vfs.SyncDir(l.s.fs(), filepath.Dir(l.s.path(l.name)))
}

// unlock removes the lock, if it still exists.
func (l *lockFile) unlock() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
	if l.made {
		_ = l.s.fs().Remove(l.s.path(l.name) + ".lock")
		l.made = false
	}
}

// removeEmpty removes a folder that holds only empty folders. Other content stays, and is an error.
func (s *Store) removeEmpty(path string) error {
	names, err := s.fs().ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range names {
		sub := filepath.Join(path, n)
		st, err := s.fs().Lstat(sub)
		if err != nil {
			return err
		}
		if !st.IsDir() {
			return fmt.Errorf("%s: folder is not empty: %w", path, syscall.ENOTEMPTY)
		}
		if err := s.removeEmpty(sub); err != nil {
			return err
		}
	}
	return s.rmdir(path)
}

// prune removes empty folders above a deleted ref, except those that every repository has.
func (s *Store) prune(name string) {
	for {
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return
		}
		name = name[:i]
		if strings.Count(name, "/") < 2 {
			return // refs, refs/heads, refs/tags
		}
		if slices.Contains(s.Keep, name) || !s.removeFolder(name) {
			return
		}
	}
}

// removeFolder removes an empty folder, and never a ref that replaced it: files are created under the same mutex.
func (s *Store) removeFolder(name string) bool {
	s.places.Lock()
	defer s.places.Unlock()
	st, err := s.fs().Lstat(s.path(name))
	return err == nil && st.IsDir() && s.rmdir(s.path(name)) == nil
}

// SweepLocks removes the lock files of refs, HEAD and packed-refs that a crash left, and returns their names. Call it only while no other
// process and no goroutine changes refs, as a server that owns its state does when it starts.
func (s *Store) SweepLocks() ([]string, error) {
	var gone []string
	remove := func(name string) error {
		err := s.fs().Remove(s.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			gone = append(gone, name)
		}
		return err
	}
	for _, name := range []string{"HEAD.lock", "packed-refs.lock"} {
		if err := remove(name); err != nil {
			return gone, err
		}
	}
	todo := []string{"refs"}
	for len(todo) > 0 {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		names, err := s.fs().ReadDir(s.path(dir))
		if err != nil {
			return gone, err
		}
		for _, n := range names {
			name := dir + "/" + n
			st, err := s.fs().Lstat(s.path(name))
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return gone, err
			case st.IsDir():
				todo = append(todo, name)
			case strings.HasSuffix(n, ".lock"):
				if err := remove(name); err != nil {
					return gone, err
				}
			}
		}
	}
	return gone, nil
}
