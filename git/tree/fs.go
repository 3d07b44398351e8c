package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// FS returns the folder sub ("" or "." for all) of a commit as a read-only file system, straight from objects, without a checkout and without
// conversion. It is an fs.ReadDirFS, fs.ReadFileFS and fs.StatFS.
//
// Symbolic links are followed inside the commit's tree, also out of sub, and never out of the tree: a link to an absolute path or above
// the top is fs.ErrNotExist. ReadDir and Lstat show links as links. Submodules are empty folders. Every file's time is the commit's.
// ctx bounds all reading through the result. A sub that does not exist is an error that matches fs.ErrNotExist.
func FS(ctx context.Context, objs Objects, commit plumbing.Hash, sub string) (fs.FS, error) {
	return treeWith(ctx, objs, commit, sub, nil)
}

// treeWith is FS with the gitlinks in links shown as the folders of their commits.
func treeWith(ctx context.Context, objs Objects, commit plumbing.Hash, sub string, links map[plumbing.Hash]plumbing.Hash) (fs.FS, error) {
	id, data, err := Peel(objs, commit)
	if err != nil {
		return nil, err
	}
	c, err := ParseCommit(id, data)
	if err != nil {
		return nil, err
	}
	t := &treeFS{ctx: ctx, objs: objs, root: c.Tree, when: c.Committer.When, links: links}
	sub = path.Clean(sub)
	if !fs.ValidPath(sub) {
		return nil, &fs.PathError{Op: "open", Path: sub, Err: fs.ErrInvalid}
	}
	n, at, err := t.walk(sub, true)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: sub, Err: err}
	}
	if n.Mode != object.ModeTree {
		return nil, &fs.PathError{Op: "open", Path: sub, Err: errors.New("not a directory")}
	}
	t.sub = at
	return t, nil
}

type treeFS struct {
	ctx  context.Context
	objs Objects
	root plumbing.Hash
	sub  string // resolved, "." for the top
	when time.Time
	// links has the trees of the submodules' commits that exist here.
	links map[plumbing.Hash]plumbing.Hash
}

// items reads a folder, with submodules as the folders that they are.
func (t *treeFS) items(h plumbing.Hash) ([]Item, error) {
	items, err := Read(t.objs, h)
	for i := range items {
		if to, ok := t.links[items[i].Hash]; ok && items[i].Mode == object.ModeGitlink {
			items[i].Mode, items[i].Hash = object.ModeTree, to
		}
	}
	return items, err
}

var (
	_ fs.ReadDirFS  = (*treeFS)(nil)
	_ fs.ReadFileFS = (*treeFS)(nil)
	_ fs.StatFS     = (*treeFS)(nil)
)

// MaxLinks is the number of symbolic links that one path may lead through, as in Linux.
const MaxLinks = 40

var errLinks = errors.New("too many levels of symbolic links")

// walk finds a path from the top, through links; the last element is followed only if follow says so. It returns the
// entry and its path without links.
func (t *treeFS) walk(name string, follow bool) (Item, string, error) {
	top := Item{Name: ".", Mode: object.ModeTree, Hash: t.root}
	// stack has the entries from the top to where the walk is.
	stack := []Item{top}
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		if err := t.ctx.Err(); err != nil {
			return top, "", err
		}
		elem := rest[0]
		rest = rest[1:]
		switch elem {
		case "", ".":
			continue
		case "..":
			if len(stack) == 1 {
				return top, "", fs.ErrNotExist
			}
			stack = stack[:len(stack)-1]
			continue
		}
		here := stack[len(stack)-1]
		if here.Mode != object.ModeTree {
			return top, "", fs.ErrNotExist
		}
		items, err := t.items(here.Hash)
		if err != nil {
			return top, "", err
		}
		i := 0
		for i < len(items) && items[i].Name != elem {
			i++
		}
		if i == len(items) {
			return top, "", fs.ErrNotExist
		}
		if items[i].Mode != object.ModeSymlink || len(rest) == 0 && !follow {
			stack = append(stack, items[i])
			continue
		}
		if links++; links > MaxLinks {
			return top, "", errLinks
		}
		to, err := t.target(items[i].Hash)
		if err != nil {
			return top, "", err
		}
		if path.IsAbs(to) {
			return top, "", fs.ErrNotExist
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	names := make([]string, 0, len(stack))
	for _, s := range stack[1:] {
		names = append(names, s.Name)
	}
	at := strings.Join(names, "/")
	if at == "" {
		at = "."
	}
	return stack[len(stack)-1], at, nil
}

func (t *treeFS) target(h plumbing.Hash) (string, error) {
	_, size, err := t.objs.Header(h)
	if err != nil {
		return "", err
	}
	if size > MaxPath {
		return "", errors.New("symbolic link is not a path")
	}
	data, err := Get(t.objs, h, plumbing.BlobObject)
	return string(data), err
}

func (t *treeFS) find(op, name string, follow bool) (Item, error) {
	if !fs.ValidPath(name) {
		return Item{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n, _, err := t.walk(path.Join(t.sub, name), follow)
	if err != nil {
		return n, &fs.PathError{Op: op, Path: name, Err: err}
	}
	n.Name = path.Base(name)
	return n, nil
}

func (t *treeFS) info(n Item) (fs.FileInfo, error) {
	i := &treeInfo{name: n.Name, when: t.when, mode: 0o644}
	switch n.Mode {
	case object.ModeTree, object.ModeGitlink:
		i.mode = fs.ModeDir | 0o755
		return i, nil
	case object.ModeSymlink:
		i.mode = fs.ModeSymlink | 0o777
	case object.ModeExecutable:
		i.mode = 0o755
	}
	_, size, err := t.objs.Header(n.Hash)
	i.size = size
	return i, err
}

// Stat follows links.
func (t *treeFS) Stat(name string) (fs.FileInfo, error) {
	n, err := t.find("stat", name, true)
	if err != nil {
		return nil, err
	}
	return t.info(n)
}

// Lstat does not follow the last element.
func (t *treeFS) Lstat(name string) (fs.FileInfo, error) {
	n, err := t.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return t.info(n)
}

// ReadLink returns the target of a symbolic link, as the commit has it.
func (t *treeFS) ReadLink(name string) (string, error) {
	n, err := t.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.Mode != object.ModeSymlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return t.target(n.Hash)
}

// ReadFile reads a whole file. The caller owns the bytes.
func (t *treeFS) ReadFile(name string) ([]byte, error) {
	n, err := t.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if n.Mode == object.ModeTree || n.Mode == object.ModeGitlink {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	data, err := Get(t.objs, n.Hash, plumbing.BlobObject)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return bytes.Clone(data), nil
}

// ReadDir lists a folder by name.
func (t *treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("open", name, true)
	if err == nil && n.Mode != object.ModeTree && n.Mode != object.ModeGitlink {
		err = &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	if err != nil || n.Mode == object.ModeGitlink {
		return nil, err
	}
	items, err := t.items(n.Hash)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	out := make([]fs.DirEntry, len(items))
	for i, it := range items {
		out[i] = treeEntry{t, it}
	}
	// git sorts a folder as if its name ended in a slash.
	sort.Slice(out, func(i, j int) bool { return out[i].Name() < out[j].Name() })
	return out, nil
}

// Open opens a file or folder.
func (t *treeFS) Open(name string) (fs.File, error) {
	n, err := t.find("open", name, true)
	if err != nil {
		return nil, err
	}
	info, err := t.info(n)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if info.IsDir() {
		list, err := t.ReadDir(name)
		return &treeDir{info: info, list: list}, err
	}
	o, err := t.objs.Stream(n.Hash)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &treeFile{info: info, ctx: t.ctx, ReadCloser: o}, nil
}

type treeInfo struct {
	name string
	size int64
	mode fs.FileMode
	when time.Time
}

func (i *treeInfo) Name() string       { return i.name }
func (i *treeInfo) Size() int64        { return i.size }
func (i *treeInfo) Mode() fs.FileMode  { return i.mode }
func (i *treeInfo) ModTime() time.Time { return i.when }
func (i *treeInfo) IsDir() bool        { return i.mode.IsDir() }
func (i *treeInfo) Sys() any           { return nil }

type treeEntry struct {
	t  *treeFS
	it Item
}

func (e treeEntry) Name() string { return e.it.Name }
func (e treeEntry) IsDir() bool  { return e.Type().IsDir() }
func (e treeEntry) Type() fs.FileMode {
	switch e.it.Mode {
	case object.ModeTree, object.ModeGitlink:
		return fs.ModeDir
	case object.ModeSymlink:
		return fs.ModeSymlink
	default:
		return 0
	}
}
func (e treeEntry) Info() (fs.FileInfo, error) { return e.t.info(e.it) }
func (e treeEntry) String() string             { return fs.FormatDirEntry(e) }

type treeFile struct {
	info fs.FileInfo
	ctx  context.Context
	io.ReadCloser
}

func (f *treeFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *treeFile) Read(b []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.ReadCloser.Read(b)
}

type treeDir struct {
	info fs.FileInfo
	list []fs.DirEntry
}

func (d *treeDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *treeDir) Close() error               { return nil }
func (d *treeDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: errors.New("is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *treeDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.list)
	} else if len(d.list) == 0 {
		return nil, io.EOF
	}
	out := d.list[:min(n, len(d.list))]
	d.list = d.list[len(out):]
	return out, nil
}
