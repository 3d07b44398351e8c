package vfs

import (
	"fmt"
	"io"
	"io/fs"
)

// Bounded reads no file of FS that is larger than Max bytes, or that is not a regular file.
type Bounded struct {
	FS  fs.FS
	Max int64
}

var (
	_ fs.ReadFileFS = Bounded{}
	_ fs.StatFS     = Bounded{}
	_ fs.ReadDirFS  = Bounded{}
)

// Open implements fs.FS.
func (b Bounded) Open(name string) (fs.File, error) { return b.FS.Open(name) }

// Stat implements fs.StatFS.
func (b Bounded) Stat(name string) (fs.FileInfo, error) { return fs.Stat(b.FS, name) }

// ReadDir implements fs.ReadDirFS.
func (b Bounded) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(b.FS, name) }

// ReadFile implements fs.ReadFileFS.
func (b Bounded) ReadFile(name string) ([]byte, error) {
	f, err := b.FS.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	data, err := io.ReadAll(io.LimitReader(f, b.Max+1))
	if err == nil && int64(len(data)) > b.Max {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, b.Max)}
	}
	return data, err
}
