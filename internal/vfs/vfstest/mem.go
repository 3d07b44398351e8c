package vfstest

import (
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"corpus-git/internal/vfs"
)

// Mem is a file system in memory that can simulate power cuts. A crash keeps what real file systems promise: content and attributes of a
// file that was synced, and names in the order in which they were made, up to a sync of a folder that they affect (a journal is written in
// order). Of the rest a crash keeps a random part.
//
// It checks no permissions, knows no mounts, and follows no symbolic link. Each change advances its own clock, Now, by a
// millisecond. Safe for concurrent use.
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

// NewMem returns an empty file system whose clock starts at start.
func NewMem(start time.Time) *Mem {
	m := &Mem{now: start.UnixNano(), next: 1, dev: 1}
	m.root = m.inode(syscall.S_IFDIR | 0o755)
	m.root.nlink = 2
	m.root.durable = m.root.meta.clone()
	return m
}

// Now returns the time of the clock.
func (m *Mem) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Unix(0, m.now)
}

// Advance advances the clock.
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

// Used returns the bytes of content.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// FS returns the file system as programs see it.
func (m *Mem) FS() vfs.FS { return memDir{m, m.root} }

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

func (m *Mem) unlink(i *inode) {
	i.ctime = m.tick()
	if i.nlink--; i.nlink == 0 {
		m.used -= int64(len(i.data))
	}
}
