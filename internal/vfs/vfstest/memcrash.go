package vfstest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// Crash returns the file system after a power cut now. keep chooses what survives of what was not synced; nil keeps none of it. m itself
// must not be used afterwards.
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
	out := &Mem{now: m.now + int64(time.Minute), next: m.next, limit: m.limit, dev: m.dev}
	if keep == nil || keep.IntN(2) == 0 {
		out.dev++ // the disk has another number
	}
	seen := map[*inode]*inode{}
	out.root = cloneInode(m.root, keep, seen)
	for _, i := range seen {
		out.used += int64(len(i.data))
	}
	return out
}

// Clone returns an independent copy in which everything is durable.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	m.syncAll()
	m.mu.Unlock()
	c := m.Crash(nil)
	c.now, c.dev = m.now, m.dev
	return c
}

func cloneInode(old *inode, keep *rand.Rand, seen map[*inode]*inode) *inode {
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
		c := cloneInode(old.dnames[name], keep, seen)
		i.names[name], i.dnames[name] = c, c
	}
	return i
}

// sync makes content and attributes durable, and the names of a folder with everything that happened before.
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
