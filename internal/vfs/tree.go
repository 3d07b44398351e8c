package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MaxRead limits what ReadFile of Files and Beneath reads of one file, in bytes.
const MaxRead = 1 << 30

// ErrNotRegular is wrapped by the error about a fifo, socket or device in place of a file.
var ErrNotRegular = errors.New("not a regular file")

// ErrTooLarge is wrapped by the error about a file that is larger than the limit.
var ErrTooLarge = errors.New("file too large")

// regularOnly are the flags for opening files that another user may replace: a fifo does not block, a terminal does not become ours.
const regularOnly = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// OpenRegular opens a regular file for reading where another user may have put something else: it does not block on a fifo, and anything
// but a regular file is ErrNotRegular. The last element of path is not followed if it is a link.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, regularOnly|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return regular(f, path, false)
}

// regular refuses everything but regular files, and folders if they are wanted. f is closed when it refuses.
func regular(f *os.File, path string, folders bool) (*os.File, error) {
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() && (!folders || !st.IsDir()) {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFollowed reads a regular file of at most limit bytes; a larger one is ErrTooLarge, and is not read. Links are followed under the rule
// of CheckLinks: another user's link is followed only to that user's files.
func ReadFollowed(path string, limit int64) ([]byte, error) {
	b, _, err := ReadStat(path, limit)
	return b, err
}

// ReadStat is ReadFollowed that also returns the result of stat(2) on the very file that was read.
func ReadStat(path string, limit int64) ([]byte, fs.FileInfo, error) {
	p, err := OpenPlace(path, true)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = p.Close() }()
	f, err := p.Open(regularOnly, 0)
	if err == nil {
		f, err = regular(f, path, true)
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	b, err := readAll(f, path, limit)
	return b, st, err
}

// readAll reads f to its end, but checks the size first: a sparse file may have terabytes.
func readAll(f *os.File, path string, limit int64) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tooLarge := func() error {
		return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)}
	}
	if st.Size() > limit {
		return nil, tooLarge()
	}
	buf := make([]byte, 0, st.Size()+512)
	for {
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, tooLarge() // it grew
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// Files returns a folder as a file system that follows links anywhere, as os.DirFS does. It opens regular files and folders only: it does not
// block on a fifo, and ReadFile refuses files larger than MaxRead.
func Files(dir string) fs.FS {
	return &tree{
		open:  func(name string) (*os.File, error) { return os.OpenFile(filepath.Join(dir, name), regularOnly, 0) },
		stat:  func(name string) (fs.FileInfo, error) { return os.Stat(filepath.Join(dir, name)) },
		lstat: func(name string) (fs.FileInfo, error) { return os.Lstat(filepath.Join(dir, name)) },
		link:  func(name string) (string, error) { return os.Readlink(filepath.Join(dir, name)) },
	}
}

// Beneath is Files for a folder of another user: nothing outside of the folder is found through a link, whenever the link is made. dir
// itself may be a link. The folder is open until the file system is no longer used.
func Beneath(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &tree{
		open:  func(name string) (*os.File, error) { return root.OpenFile(name, regularOnly, 0) },
		stat:  root.Stat,
		lstat: root.Lstat,
		link:  root.Readlink,
	}, nil
}

// tree is an fs.FS of regular files and folders.
type tree struct {
	open        func(name string) (*os.File, error)
	stat, lstat func(name string) (fs.FileInfo, error)
	link        func(name string) (string, error)
}

var (
	_ fs.ReadFileFS = (*tree)(nil)
	_ fs.StatFS     = (*tree)(nil)
	_ fs.ReadLinkFS = (*tree)(nil)
)

func valid(op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

// Open implements fs.FS.
func (t *tree) Open(name string) (fs.File, error) {
	if err := valid("open", name); err != nil {
		return nil, err
	}
	f, err := t.open(name)
	if err != nil {
		return nil, err
	}
	f, err = regular(f, name, true)
	if err != nil {
		return nil, err // a nil *os.File would be a non-nil fs.File
	}
	return f, nil
}

// ReadFile implements fs.ReadFileFS.
func (t *tree) ReadFile(name string) ([]byte, error) {
	if err := valid("open", name); err != nil {
		return nil, err
	}
	f, err := t.open(name)
	if err == nil {
		f, err = regular(f, name, false)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAll(f, name, MaxRead)
}

// Stat implements fs.StatFS.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	if err := valid("stat", name); err != nil {
		return nil, err
	}
	return t.stat(name)
}

// Lstat implements fs.ReadLinkFS.
func (t *tree) Lstat(name string) (fs.FileInfo, error) {
	if err := valid("lstat", name); err != nil {
		return nil, err
	}
	return t.lstat(name)
}

// ReadLink implements fs.ReadLinkFS.
func (t *tree) ReadLink(name string) (string, error) {
	if err := valid("readlink", name); err != nil {
		return "", err
	}
	return t.link(name)
}
