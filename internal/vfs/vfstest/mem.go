package vfstest

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"corpus-git/internal/vfs"
)

// Mem is a file system in memory that can lose its power. What a crash keeps is what real ones promise: content and
// attributes of a file that was synced, and names in the order in which they were made, up to a sync of a folder that
// they touch (a journal is written in order). Of the rest a crash keeps a part that is drawn by lot.
//
// It checks no permissions, knows no mounts, and follows no symbolic link. Each change takes a millisecond of its own
// clock, Now. Safe for many goroutines.
type Mem struct {
	mu    sync.Mutex
	root  *inode
	now   int64
	next  uint64
	log   []change // changes of names that are not durable yet
	limit int64    // bytes of content, 0 for no limit
	used  int64
	dev   uint64 // the device's number: another one after each crash, as after a start with other disks
}

// change is one change of names: the folders it touches, and how to repeat it on the durable names.
type change struct {
	touch []*inode
	apply func()
}

type meta struct {
	mode, uid, gid uint32
	mtime          int64
	xattrs         map[string][]byte
	data           []byte
}

type inode struct {
	meta                // as programs see it
	durable       *meta // as of the last sync, nil before the first
	ino, rdev     uint64
	ctime         int64
	nlink         uint64
	target        string
	names, dnames map[string]*inode // of a folder: seen, durable
}

// NewMem makes an empty file system whose clock starts at start.
func NewMem(start time.Time) *Mem {
	m := &Mem{now: start.UnixNano(), next: 1, dev: 1}
	m.root = m.inode(syscall.S_IFDIR | 0o755)
	m.root.nlink = 2
	m.root.durable = m.root.meta.clone()
	return m
}

// Now is the clock.
func (m *Mem) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Unix(0, m.now)
}

// Advance lets time pass.
func (m *Mem) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now += int64(d)
}

// Limit makes the disk full at that many bytes of content.
func (m *Mem) Limit(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = bytes
}

// Used is the bytes of content.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// FS is the view of programs.
func (m *Mem) FS() vfs.FS { return memDir{m, m.root} }

// Crash gives the file system as it comes back after the power failed at this moment. keep draws what survives of what
// was not synced; nil keeps nothing of it. m itself must not be used afterwards.
func (m *Mem) Crash(keep *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	if keep != nil {
		n = keep.IntN(len(m.log) + 1)
	}
	for _, c := range m.log[:n] {
		c.apply()
	}
	out := &Mem{now: m.now + int64(time.Minute), next: m.next, limit: m.limit, dev: m.dev + 1}
	seen := map[*inode]*inode{}
	out.root = revive(m.root, keep, seen)
	for _, i := range seen {
		out.used += int64(len(i.data))
	}
	return out
}

// Clone gives an independent copy, of which everything is durable.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	m.syncAll()
	m.mu.Unlock()
	c := m.Crash(nil)
	c.now, c.dev = m.now, m.dev
	return c
}

func revive(old *inode, keep *rand.Rand, seen map[*inode]*inode) *inode {
	if i := seen[old]; i != nil {
		i.nlink++
		return i
	}
	state := old.durable
	if state == nil || (keep != nil && keep.IntN(2) == 0) {
		state = old.meta.clone()
		if old.durable == nil && (keep == nil || keep.IntN(2) == 0) {
			state.data = nil // its blocks never reached the disk
		}
	}
	i := &inode{meta: *state.clone(), ino: old.ino, rdev: old.rdev, ctime: old.ctime, nlink: 1, target: old.target}
	i.mode = old.mode&syscall.S_IFMT | i.mode&0o7777
	i.durable = i.meta.clone()
	seen[old] = i
	if old.dnames == nil {
		return i
	}
	i.nlink = 2
	i.names, i.dnames = map[string]*inode{}, map[string]*inode{}
	for _, name := range slices.Sorted(maps.Keys(old.dnames)) {
		c := revive(old.dnames[name], keep, seen)
		i.names[name], i.dnames[name] = c, c
	}
	return i
}

func (s *meta) clone() *meta {
	c := *s
	c.data = slices.Clone(s.data)
	c.xattrs = maps.Clone(s.xattrs)
	return &c
}

func (m *Mem) tick() int64 {
	m.now += int64(time.Millisecond) + 1
	return m.now
}

func (m *Mem) inode(mode uint32) *inode {
	t := m.tick()
	m.next++
	i := &inode{meta: meta{mode: mode, mtime: t}, ino: m.next, ctime: t, nlink: 1}
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		i.names, i.dnames, i.nlink = map[string]*inode{}, map[string]*inode{}, 2
	}
	return i
}

func (i *inode) dir() bool { return i.names != nil }

func (m *Mem) stat(i *inode) vfs.Stat {
	size := int64(len(i.data))
	if i.target != "" {
		size = int64(len(i.target))
	}
	return vfs.Stat{
		Mode: i.mode, UID: i.uid, GID: i.gid, Nlink: i.nlink, Size: size, Blocks: (size + 511) / 512,
		Mtime: i.mtime, Ctime: i.ctime, Ino: i.ino, Dev: m.dev, Rdev: i.rdev,
	}
}

// sync makes content and attributes durable, and the names of a folder with all that happened before.
func (m *Mem) sync(i *inode) {
	i.durable = i.meta.clone()
	last := -1
	for n, c := range m.log {
		if slices.Contains(c.touch, i) {
			last = n
		}
	}
	for _, c := range m.log[:last+1] {
		c.apply()
	}
	m.log = m.log[last+1:]
}

func (m *Mem) syncAll() {
	for _, c := range m.log {
		c.apply()
	}
	m.log = nil
	var walk func(*inode)
	walk = func(i *inode) {
		i.durable = i.meta.clone()
		for _, c := range i.names {
			walk(c)
		}
	}
	walk(m.root)
}

// set changes the names of one folder.
func (m *Mem) set(d *inode, name string, i *inode) {
	t := m.tick()
	d.mtime, d.ctime = t, t
	if i == nil {
		delete(d.names, name)
	} else {
		d.names[name] = i
	}
}

func (m *Mem) record(apply func(), touch ...*inode) {
	m.log = append(m.log, change{touch: touch, apply: apply})
}

func setDurable(d *inode, name string, i *inode) {
	if i == nil {
		delete(d.dnames, name)
	} else {
		d.dnames[name] = i
	}
}

func (m *Mem) unlink(i *inode) {
	i.ctime = m.tick()
	if i.nlink--; i.nlink == 0 {
		m.used -= int64(len(i.data))
	}
}

// memDir is Mem seen from one folder.
type memDir struct {
	m    *Mem
	here *inode
}

var _ vfs.Dir = memDir{}

func (d memDir) Close() error { return nil }

// walk finds the folder of a path and its last name, which is "." for the folder itself.
func (d memDir) walk(path string) (*inode, string, error) {
	at := d.here
	if strings.HasPrefix(path, "/") {
		at = d.m.root
	}
	parts := slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" || s == "." })
	if len(parts) == 0 {
		return at, ".", nil
	}
	for _, p := range parts[:len(parts)-1] {
		next := at.names[p]
		switch {
		case next == nil:
			return nil, "", syscall.ENOENT
		case next.target != "":
			return nil, "", syscall.ELOOP
		case !next.dir():
			return nil, "", syscall.ENOTDIR
		}
		at = next
	}
	last := parts[len(parts)-1]
	if len(last) > 255 {
		return nil, "", syscall.ENAMETOOLONG
	}
	return at, last, nil
}

// find gives the inode of a path.
func (d memDir) find(path string) (*inode, error) {
	at, name, err := d.walk(path)
	if err != nil || name == "." {
		return at, err
	}
	if i := at.names[name]; i != nil {
		return i, nil
	}
	return nil, syscall.ENOENT
}

// fresh finds the folder of a path at which nothing is.
func (d memDir) fresh(path string) (*inode, string, error) {
	at, name, err := d.walk(path)
	if err == nil && (name == "." || at.names[name] != nil) {
		err = syscall.EEXIST
	}
	return at, name, err
}

func (d memDir) lock() func() { d.m.mu.Lock(); return d.m.mu.Unlock }

func wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func wrap2(op, a, b string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: a, New: b, Err: err}
}

func (d memDir) add(op, path string, i *inode) error {
	at, name, err := d.fresh(path)
	if err != nil {
		return wrap(op, path, err)
	}
	d.m.set(at, name, i)
	d.m.record(func() { setDurable(at, name, i) }, at)
	return nil
}

func (d memDir) OpenFile(path string, flag int, perm uint32) (vfs.File, error) {
	defer d.lock()()
	i, err := d.find(path)
	switch {
	case err == syscall.ENOENT && flag&os.O_CREATE != 0: //nolint:errorlint // find returns it bare
		i = d.m.inode(syscall.S_IFREG | perm)
		if err := d.add("open", path, i); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, wrap("open", path, err)
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, wrap("open", path, syscall.EEXIST)
	case i.target != "":
		return nil, wrap("open", path, syscall.ELOOP)
	case flag&syscall.O_DIRECTORY != 0 && !i.dir():
		return nil, wrap("open", path, syscall.ENOTDIR)
	}
	if flag&os.O_TRUNC != 0 {
		d.m.used -= int64(len(i.data))
		i.data = nil
	}
	return &memFile{d: d, i: i, path: path, appendTo: flag&os.O_APPEND != 0}, nil
}

func (d memDir) OpenDir(path string) (vfs.Dir, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err == nil && i.target != "" {
		err = syscall.ELOOP
	} else if err == nil && !i.dir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, wrap("opendir", path, err)
	}
	return memDir{d.m, i}, nil
}

func (d memDir) ReadDir(path string) ([]string, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err == nil && !i.dir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, wrap("readdir", path, err)
	}
	return slices.Sorted(maps.Keys(i.names)), nil
}

func (d memDir) Lstat(path string) (vfs.Stat, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err != nil {
		return vfs.Stat{}, wrap("lstat", path, err)
	}
	return d.m.stat(i), nil
}

func (d memDir) Readlink(path string) (string, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err == nil && i.target == "" {
		err = syscall.EINVAL
	}
	if err != nil {
		return "", wrap("readlink", path, err)
	}
	return i.target, nil
}

func (d memDir) Mkdir(path string, perm uint32) error {
	defer d.lock()()
	return d.add("mkdir", path, d.m.inode(syscall.S_IFDIR|perm))
}

func (d memDir) Mknod(path string, mode uint32, dev uint64) error {
	defer d.lock()()
	i := d.m.inode(mode)
	i.rdev = dev
	return d.add("mknod", path, i)
}

func (d memDir) Symlink(target, path string) error {
	defer d.lock()()
	i := d.m.inode(syscall.S_IFLNK | 0o777)
	i.target = target
	return d.add("symlink", path, i)
}

func (d memDir) Link(oldPath, newPath string) error {
	defer d.lock()()
	i, err := d.find(oldPath)
	if err == nil && i.dir() {
		err = syscall.EPERM
	}
	if err != nil {
		return wrap2("link", oldPath, newPath, err)
	}
	if err := d.add("link", newPath, i); err != nil {
		return err
	}
	i.nlink++
	i.ctime = d.m.now
	return nil
}

func (d memDir) Rename(oldPath, newPath string) error {
	defer d.lock()()
	from, a, err := d.walk(oldPath)
	if err != nil {
		return wrap2("rename", oldPath, newPath, err)
	}
	to, b, err := d.walk(newPath)
	if err != nil {
		return wrap2("rename", oldPath, newPath, err)
	}
	i, old := from.names[a], to.names[b]
	switch {
	case i == nil:
		err = syscall.ENOENT
	case old == i:
		return nil
	case old != nil && old.dir() && !i.dir():
		err = syscall.EISDIR
	case old != nil && !old.dir() && i.dir():
		err = syscall.ENOTDIR
	case old != nil && len(old.names) > 0:
		err = syscall.ENOTEMPTY
	}
	if err != nil {
		return wrap2("rename", oldPath, newPath, err)
	}
	if old != nil {
		d.m.unlink(old)
	}
	d.m.set(from, a, nil)
	d.m.set(to, b, i)
	i.ctime = d.m.now
	d.m.record(func() { setDurable(from, a, nil); setDurable(to, b, i) }, from, to)
	return nil
}

func (d memDir) Exchange(x, y string) error {
	defer d.lock()()
	xd, xn, err := d.walk(x)
	if err != nil {
		return wrap2("exchange", x, y, err)
	}
	yd, yn, err := d.walk(y)
	if err != nil {
		return wrap2("exchange", x, y, err)
	}
	xi, yi := xd.names[xn], yd.names[yn]
	if xi == nil || yi == nil {
		return wrap2("exchange", x, y, syscall.ENOENT)
	}
	d.m.set(xd, xn, yi)
	d.m.set(yd, yn, xi)
	xi.ctime, yi.ctime = d.m.now, d.m.now
	d.m.record(func() { setDurable(xd, xn, yi); setDurable(yd, yn, xi) }, xd, yd)
	return nil
}

func (d memDir) Remove(path string) error {
	defer d.lock()()
	at, name, err := d.walk(path)
	if err != nil {
		return wrap("remove", path, err)
	}
	i := at.names[name]
	switch {
	case i == nil:
		return wrap("remove", path, syscall.ENOENT)
	case len(i.names) > 0:
		return wrap("remove", path, syscall.ENOTEMPTY)
	}
	d.m.set(at, name, nil)
	d.m.unlink(i)
	d.m.record(func() { setDurable(at, name, nil) }, at)
	return nil
}

// change alters the attributes of an inode.
func (d memDir) change(op, path string, f func(*inode) error) error {
	defer d.lock()()
	i, err := d.find(path)
	if err == nil {
		i.ctime = d.m.tick()
		err = f(i)
	}
	return wrap(op, path, err)
}

func chmod(i *inode, mode uint32) error {
	if i.target != "" {
		return syscall.EOPNOTSUPP
	}
	i.mode = i.mode&syscall.S_IFMT | mode&0o7777
	return nil
}

func chown(i *inode, uid, gid int) {
	if uid >= 0 {
		i.uid = uint32(uid)
	}
	if gid >= 0 {
		i.gid = uint32(gid)
	}
	if !i.dir() {
		i.mode &^= 0o6000
	}
}

func (d memDir) Chmod(path string, mode uint32) error {
	return d.change("chmod", path, func(i *inode) error { return chmod(i, mode) })
}

func (d memDir) Lchown(path string, uid, gid int) error {
	return d.change("lchown", path, func(i *inode) error { chown(i, uid, gid); return nil })
}

func (d memDir) Lutimes(path string, mtime int64) error {
	return d.change("utimes", path, func(i *inode) error { i.mtime = mtime; return nil })
}

func (d memDir) Xattrs(path string) ([]vfs.Xattr, error) {
	defer d.lock()()
	i, err := d.find(path)
	if err != nil {
		return nil, wrap("xattrs", path, err)
	}
	return i.listXattrs(), nil
}

func (i *inode) listXattrs() (out []vfs.Xattr) {
	for _, n := range slices.Sorted(maps.Keys(i.xattrs)) {
		out = append(out, vfs.Xattr{Name: n, Value: slices.Clone(i.xattrs[n])})
	}
	return out
}

func (d memDir) SetXattr(path string, x vfs.Xattr) error {
	return d.change("setxattr", path, func(i *inode) error { i.setXattr(x); return nil })
}

func (i *inode) setXattr(x vfs.Xattr) {
	if x.Value == nil {
		delete(i.xattrs, x.Name)
		return
	}
	if i.xattrs == nil {
		i.xattrs = map[string][]byte{}
	}
	i.xattrs[x.Name] = slices.Clone(x.Value)
}

func (d memDir) SyncFS(path string) error {
	defer d.lock()()
	if _, err := d.find(path); err != nil {
		return wrap("syncfs", path, err)
	}
	d.m.syncAll()
	return nil
}

func (d memDir) StatFS(path string) (vfs.Space, error) {
	defer d.lock()()
	if _, err := d.find(path); err != nil {
		return vfs.Space{}, wrap("statfs", path, err)
	}
	total := int64(1 << 50)
	if d.m.limit > 0 {
		total = d.m.limit
	}
	return vfs.Space{Total: uint64(total), Free: uint64(max(0, total-d.m.used))}, nil
}
