package replica

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"corpus-git/cluster/wal"
	"corpus-git/internal/vfs"
)

// Item is one name in a folder of another hub.
type Item struct {
	Name Text `json:"name"` // whole, not only its last part
	// Kind is file, folder or link.
	Kind   string `json:"kind"`
	Mode   uint32 `json:"mode"`
	UID    uint32 `json:"uid"`
	GID    uint32 `json:"gid"`
	Mtime  int64  `json:"mtime"`
	Size   int64  `json:"size,omitempty"`
	Target Text   `json:"target,omitempty"`
	// Data is the content of a small file; an empty one has none.
	Data []byte `json:"data,omitempty"`
}

const (
	// inline is the size up to which a file is sent with the list that names it, and inlined how much of that a list has, in bytes.
	inline, inlined = 8 << 10, 200 << 10
)

// Remote is the hub that is copied. fs.ErrNotExist means that something is not there, or no longer.
type Remote interface {
	// Items lists a folder: the names after one, "" for the first ones, in byte order, with the content of small files unless bare. more reports whether there are others.
	Items(ctx context.Context, folder, after string, bare bool) (items []Item, more bool, err error)
	// Sum returns the SHA-256 of a file.
	Sum(ctx context.Context, name string) ([]byte, error)
	// Part returns some bytes of a file from a place on, none at its end.
	Part(ctx context.Context, name string, at int64) ([]byte, error)
}

// tops are the folders that are copied.
func tops() []string { return []string{stateDir, projectsDir} }

// folderOf returns the path of a folder that may be listed.
func (f Files) folderOf(name string) (string, error) {
	if name != stateDir && name != projectsDir && !f.valid(name) {
		return "", fs.ErrNotExist
	}
	return f.at(name), nil
}

// Items lists a folder for a hub that copies: at most limit names after one, with the content of small files unless bare.
func (f Files) Items(name, after string, limit int, bare bool) (items []Item, more bool, err error) {
	dir, err := f.folderOf(name)
	if err != nil {
		return nil, false, err
	}
	names, err := f.FS.ReadDir(dir)
	if err != nil {
		return nil, false, err
	}
	data := 0
	for _, base := range names {
		full := name + "/" + base
		if base <= after || !f.common(full) {
			continue
		}
		if len(items) == limit || data > inlined {
			return items, true, nil
		}
		st, err := f.FS.Lstat(f.at(full))
		if errors.Is(err, fs.ErrNotExist) || err == nil && st.IsDir() && f.tree(full) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		i := Item{Name: Text(full), Mode: st.Perm(), UID: st.UID, GID: st.GID, Mtime: st.Mtime}
		switch {
		case st.IsDir():
			i.Kind = folder
		case st.IsRegular():
			i.Kind, i.Size = whole, st.Size
			if st.Size <= inline && !bare {
				i.Data, err = f.Part(full, 0, inline)
				i.Size = int64(len(i.Data))
				data += len(i.Data)
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, false, err
			}
		case st.IsSymlink():
			i.Kind = link
			target, err := f.FS.Readlink(f.at(full))
			if i.Target = Text(target); err != nil {
				return nil, false, err
			}
		default:
			continue
		}
		items = append(items, i)
	}
	return items, false, nil
}

// open opens a file that hubs have in common, or the database.
func (f Files) open(name string) (vfs.File, error) {
	if name != DatabaseName && !f.valid(name) {
		return nil, fs.ErrNotExist
	}
	return f.FS.OpenFile(f.at(name), os.O_RDONLY, 0)
}

// Sum returns the SHA-256 of a file, or of the database.
func (f Files) Sum(name string) ([]byte, error) {
	h, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	s := sha256.New()
	_, err = io.Copy(s, struct{ io.Reader }{h})
	return s.Sum(nil), err
}

// Part returns at most n bytes of a file, or of the database, from a place on.
func (f Files) Part(name string, at int64, n int) ([]byte, error) {
	h, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if _, err := h.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(h, int64(n)))
}

// copiers is how many files are copied at a time, and how many folders in addition.
const copiers = 4

// copier is one copy that is being made.
type copier struct {
	Files
	r Remote
	// slots are those of files, walkers those of folders.
	slots, walkers chan struct{}
	all            sync.WaitGroup
	mu             sync.Mutex
	err            error
}

// one returns an applier for one thing, which is made durable with the whole file system.
func (f Files) one() *applier { return &applier{Files: f, files: synced, dirs: map[string]bool{}} }

// Copy makes what hubs have in common the same as on another hub, which goes on working meanwhile: what it changes is in the log, which is applied afterwards. Files that are the same here are not sent
// again. The database must not be open. It is durable on return; after an error nothing here is of use until another attempt has succeeded.
func (f Files) Copy(ctx context.Context, r Remote) error {
	if err := wal.RemoveLog(f.FS, f.State.Database()); err != nil {
		return err
	}
	c := &copier{Files: f, r: r, slots: make(chan struct{}, copiers), walkers: make(chan struct{}, copiers)}
	c.start(ctx, Item{Name: DatabaseName, Kind: whole, Mode: 0o600, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Size: -1})
	for _, top := range tops() {
		c.folder(ctx, top)
	}
	c.all.Wait()
	if c.err != nil {
		return c.err
	}
	all := f.one()
	all.files++
	return all.sync()
}

func (c *copier) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *copier) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// list returns everything in a folder of the other hub.
func list(ctx context.Context, r Remote, name string, bare bool) (all []Item, err error) {
	for more, after := true, ""; more; {
		var items []Item
		if items, more, err = r.Items(ctx, name, after, bare); err != nil {
			return nil, err
		}
		if len(items) == 0 {
			break
		}
		all, after = append(all, items...), path.Base(string(items[len(items)-1].Name))
	}
	return all, nil
}

// folder copies what is in a folder, and removes the rest; perhaps in the background.
func (c *copier) folder(ctx context.Context, name string) {
	do := func() {
		if err := c.contents(ctx, name); err != nil {
			c.fail(err)
		}
	}
	select {
	case c.walkers <- struct{}{}:
		c.all.Go(func() {
			defer func() { <-c.walkers }()
			do()
		})
	default:
		do()
	}
}

func (c *copier) contents(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), c.failed()); err != nil {
		return err
	}
	items, err := list(ctx, c.r, name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := vfs.MkdirAll(c.FS, c.at(name), 0o755); err != nil {
		return err
	}
	if err := c.prune(name, items); err != nil {
		return err
	}
	for _, i := range items {
		full := string(i.Name)
		if !c.valid(full) || path.Dir(full) != name {
			return errors.New("the other hub lists what hubs do not have in common")
		}
		switch i.Kind {
		case folder:
			if err := c.one().folder(c.at(full), i.record()); err != nil {
				return err
			}
			c.folder(ctx, full)
		case link:
			if err := c.one().link(c.at(full), i.record()); err != nil {
				return err
			}
		case whole:
			if i.Size > int64(len(i.Data)) {
				c.start(ctx, i)
			} else if err := c.inline(c.at(full), i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i Item) record() record {
	return record{Kind: i.Kind, Name: i.Name, Mode: i.Mode, UID: i.UID, GID: i.GID, Mtime: i.Mtime, Target: i.Target}
}

// prune removes names in a folder that the other hub does not have.
func (f Files) prune(name string, items []Item) error {
	there := map[string]bool{}
	for _, i := range items {
		there[string(i.Name)] = true
	}
	names, err := f.FS.ReadDir(f.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, base := range names {
		full := name + "/" + base
		if there[full] || !f.common(full) {
			continue
		}
		if st, err := f.FS.Lstat(f.at(full)); err == nil && st.IsDir() && f.tree(full) {
			continue
		}
		if err := vfs.RemoveAll(f.FS, f.at(full)); err != nil {
			return err
		}
	}
	return nil
}

// inline writes a file whose content is known, unless it is the same here.
func (f Files) inline(p string, i Item) error {
	one := f.one()
	if st, err := f.FS.Lstat(p); err == nil && st.IsRegular() && st.Size == i.Size {
		here, err := vfs.ReadFile(f.FS, p)
		if err != nil {
			return err
		}
		if string(here) == string(i.Data) {
			return one.attributes(p, i.record())
		}
	}
	if err := one.make(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, i.record(), func(h vfs.File) error {
		_, err := h.Write(i.Data)
		return err
	}); err != nil {
		return err
	}
	return one.place(p)
}

// start copies a file in the background.
func (c *copier) start(ctx context.Context, i Item) {
	c.slots <- struct{}{}
	c.all.Go(func() {
		defer func() { <-c.slots }()
		if err := c.file(ctx, i); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.fail(err)
		}
	})
}

// file copies one file, unless it is the same here.
func (c *copier) file(ctx context.Context, i Item) error {
	if err := errors.Join(ctx.Err(), c.failed()); err != nil {
		return err
	}
	name := string(i.Name)
	p := c.at(name)
	one := c.one()
	if st, err := c.FS.Lstat(p); err == nil && st.IsRegular() && (st.Size == i.Size || i.Size < 0) {
		here, err := c.Sum(name)
		if err != nil {
			return err
		}
		there, err := c.r.Sum(ctx, name)
		if err != nil {
			return err
		}
		if string(here) == string(there) {
			return one.attributes(p, i.record())
		}
	}
	if err := vfs.MkdirAll(c.FS, filepath.Dir(p), 0o755); err != nil {
		return err
	}
	err := one.make(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, i.record(), func(h vfs.File) error {
		for at := int64(0); ; {
			part, err := c.r.Part(ctx, name, at)
			if err != nil || len(part) == 0 {
				return err
			}
			if _, err := h.Write(part); err != nil {
				return err
			}
			at += int64(len(part))
		}
	})
	if err != nil {
		_ = c.FS.Remove(temp(p))
		return err
	}
	return one.place(p)
}

// Prune removes what the other hub does not have: what it made and removed while it was copied, which no batch mentions.
func (f Files) Prune(ctx context.Context, r Remote) error {
	var walk func(name string) error
	walk = func(name string) error {
		items, err := list(ctx, r, name, true)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := f.prune(name, items); err != nil {
			return err
		}
		for _, i := range items {
			full := string(i.Name)
			if st, err := f.FS.Lstat(f.at(full)); i.Kind == folder && err == nil && st.IsDir() {
				if err := walk(full); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, top := range tops() {
		if err := walk(top); err != nil {
			return err
		}
	}
	return nil
}
