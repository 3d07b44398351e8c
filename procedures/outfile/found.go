package outfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"corpus-git/internal/vfs"
)

// found is what a step finds: the folder, the file in it, and the folder for reports.
type found [3]unix.Stat_t

// find looks at a folder that was just made.
func find(dir string) (*found, error) {
	f := new(found)
	for i, path := range pathsOf(dir) {
		if err := unix.Lstat(path, &f[i]); err != nil {
			return nil, &os.PathError{Op: "lstat", Path: path, Err: err}
		}
	}
	return f, nil
}

func pathsOf(dir string) [3]string {
	file := filepath.Join(dir, fileName)
	return [3]string{dir, file, Reports(file)}
}

// still reports whether a folder is as it was found, and whether no process that the step left behind can write to the file without opening it again. The names are
// read, since a file system's times may be as coarse as some milliseconds.
func (f *found) still(dir string) bool {
	now, err := find(dir)
	if err != nil {
		return false
	}
	for i := range f {
		a, b := &f[i], &now[i]
		if a.Dev != b.Dev || a.Ino != b.Ino || a.Mode != b.Mode || a.Uid != b.Uid || a.Gid != b.Gid || a.Nlink != b.Nlink || a.Ctim != b.Ctim {
			return false
		}
	}
	paths := pathsOf(dir)
	return now[1].Size == 0 && holds(paths[0], 2) && holds(paths[2], 0) && closed(paths[1])
}

// holds reports whether a folder has n entries.
func holds(dir string, n int) bool {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = d.Close() }() // it was only read
	names, err := d.Readdirnames(n + 1)
	return len(names) == n && (err == nil || errors.Is(err, io.EOF))
}

// closed reports whether nobody has a file open for writing.
func closed(file string) bool {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }() // it was only read
	return vfs.Unwritten(fd)
}
