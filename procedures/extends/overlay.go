package extends

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Overlay shows several recipes as one: at each path the entry of the first recipe that has one, with folders merged. Links stay links of
// their recipe, and are followed there.
func Overlay(layers ...fs.FS) fs.FS { return overlay(layers) }

type overlay []fs.FS

var (
	_ fs.ReadDirFS  = overlay{}
	_ fs.StatFS     = overlay{}
	_ fs.ReadFileFS = overlay{}
	_ fs.ReadLinkFS = overlay{}
)

// at returns the layers that contribute to a path: one for a file or a link, all merged ones for a folder.
func (o overlay) at(op, name string) ([]fs.FS, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	left := []fs.FS(o)
	elements := strings.Split(name, "/")
	if name == "." {
		elements = nil
	}
	for i := range elements {
		p := path.Join(elements[:i+1]...)
		var have, dirs []fs.FS
		for _, l := range left {
			fi, err := fs.Lstat(l, p)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if have = append(have, l); fi.IsDir() {
				dirs = append(dirs, l)
			}
			if len(have) == 1 && !fi.IsDir() {
				break // it hides what is below, and a link is followed in its own layer
			}
		}
		switch {
		case len(have) == 0:
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		case len(dirs) > 0:
			left = dirs
		default:
			left = have[:1]
		}
	}
	return left, nil
}

// Open implements fs.FS.
func (o overlay) Open(name string) (fs.File, error) {
	layers, err := o.at("open", name)
	if err != nil {
		return nil, err
	}
	f, err := layers[0].Open(name)
	if err != nil || len(layers) == 1 {
		return f, err
	}
	list, err := o.ReadDir(name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &folder{File: f, left: list}, nil
}

// ReadDir implements fs.ReadDirFS.
func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	layers, err := o.at("readdir", name)
	if err != nil {
		return nil, err
	}
	var out []fs.DirEntry
	seen := map[string]bool{}
	for _, l := range layers {
		list, err := fs.ReadDir(l, name)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if !seen[e.Name()] {
				seen[e.Name()] = true
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// Stat implements fs.StatFS.
func (o overlay) Stat(name string) (fs.FileInfo, error) {
	layers, err := o.at("stat", name)
	if err != nil {
		return nil, err
	}
	return fs.Stat(layers[0], name)
}

// Lstat implements fs.ReadLinkFS.
func (o overlay) Lstat(name string) (fs.FileInfo, error) {
	layers, err := o.at("lstat", name)
	if err != nil {
		return nil, err
	}
	return fs.Lstat(layers[0], name)
}

// ReadLink implements fs.ReadLinkFS.
func (o overlay) ReadLink(name string) (string, error) {
	layers, err := o.at("readlink", name)
	if err != nil {
		return "", err
	}
	return fs.ReadLink(layers[0], name)
}

// ReadFile implements fs.ReadFileFS.
func (o overlay) ReadFile(name string) ([]byte, error) {
	layers, err := o.at("open", name)
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(layers[0], name)
}

// folder is a merged folder that is open.
type folder struct {
	fs.File
	left []fs.DirEntry
}

// ReadDir implements fs.ReadDirFile.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 || n >= len(f.left) {
		out := f.left
		f.left = nil
		if n > 0 && len(out) == 0 {
			return nil, io.EOF
		}
		return out, nil
	}
	out := f.left[:n]
	f.left = f.left[n:]
	return out, nil
}
