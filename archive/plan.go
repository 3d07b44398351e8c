package archive

import (
	"crypto/rand"
	"encoding/binary"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"corpus-git/internal/vfs"
)

// racyWindow is how long a change may go unseen: two writes within one tick of the file system's clock leave the same
// ctime. Kernels tick every 1 to 10 ms; file systems that keep whole seconds show it by times without a fraction.
const (
	racyWindow = 50 * time.Millisecond
	racyWhole  = 2 * time.Second
)

func racy(ctime, begun int64) bool {
	if ctime%int64(time.Second) == 0 {
		return ctime >= begun-int64(racyWhole)
	}
	return ctime >= begun-int64(racyWindow)
}

func markRacy(entries []Entry, begun time.Time) {
	for i := range entries {
		entries[i].Flags &^= FlagRacy
		if racy(entries[i].Live.Ctime, begun.UnixNano()) {
			entries[i].Flags |= FlagRacy
		}
	}
}

// reference is the newest manifest that can be read, which knows best what the live tree was. nil where there is none.
type reference struct {
	m *Manifest
	// wentLive is when the copies of this archive became the live tree, 0 if they did not.
	wentLive int64
}

func (s *Store) reference() *reference {
	all, err := s.List()
	if err != nil {
		return nil // a full copy needs no reference
	}
	for _, a := range all {
		m, err := s.manifest(a.Path)
		if err != nil {
			continue
		}
		r := &reference{m: m}
		if a.Rollback != nil && a.Rollback.Method == methodExchange {
			r.wentLive = a.Rollback.Begun.UnixNano()
		}
		return r
	}
	return nil
}

// match is w, the recorded state of a live file, or nil when that may have changed.
func (r *reference) match(e, w *Entry) *Entry {
	if w == nil || w.Version == 0 || w.Flags&FlagUnstable != 0 || w.Mode != e.Mode || w.Size != e.Size || w.Mtime != e.Mtime || w.Target != e.Target {
		return nil
	}
	if w.Live == e.Live && w.Flags&FlagRacy == 0 && w.UID == e.UID && w.GID == e.GID {
		return w
	}
	// After a rollback the live file is the copy.
	if r.wentLive != 0 && w.Copy == e.Live && !racy(w.Copy.Ctime, r.wentLive) {
		return w
	}
	return nil
}

func (s *Store) manifest(dir string) (*Manifest, error) {
	b, err := vfs.ReadFile(s.fs, filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	return DecodeManifest(b)
}

// planned is what a Make will do.
type planned struct {
	acts    []action
	remove  []string
	version *atomic.Uint64
	copies  int64 // files to copy
	bytes   int64 // their allocated bytes
	inodes  int64 // to create, folders included
	freed   int64 // allocated bytes of what is removed or replaced in the spare tree
	freedN  int64 // inodes of it
	kept    int64
	changed int64
}

// plan decides entry by entry what can be taken over from the spare tree: what the reference, or the spare tree's own manifest, proves
// unchanged in the live tree, and of which the spare tree has the same version. When in doubt it is copied.
func plan(entries []Entry, ref *reference, spare *Manifest, begun time.Time) *planned {
	p := &planned{acts: make([]action, len(entries)), version: newVersions()}
	if ref == nil {
		p.changed = -1
	}
	base := spare.walk()
	var was follower
	if ref != nil {
		was = ref.m.walk()
	}
	own := &reference{m: spare}
	gone := was.files()
	for i := range entries {
		e := &entries[i]
		w := was.at(e.Path)
		if w != nil && !w.IsDir() && !e.IsDir() {
			gone--
		}
		b := base.at(e.Path)
		if w := ref.match(e, w); w != nil {
			e.Version, e.Xattrs, e.Sum = w.Version, w.Xattrs, w.Sum
		} else {
			if ref != nil && !e.IsDir() {
				p.changed++
			}
			// A spare tree that was copied from the live one after the reference was made knows what changed in between.
			if w := own.match(e, b); w != nil {
				e.Version, e.Xattrs, e.Sum = w.Version, w.Xattrs, w.Sum
			} else {
				e.Version = p.version.Add(1)
			}
		}
		if b != nil && b.Version == e.Version && b.Flags&(FlagSkipped|FlagUnstable) == 0 && (b.Link == 0) == (e.Link == 0) {
			p.acts[i] = actKeep
			e.Copy, e.Xattrs = b.Copy, b.Xattrs
			if !e.Sum.Known() {
				e.Sum = b.Sum // the same version
			}
			e.Flags = b.Flags &^ FlagRacy
		} else if b != nil && b.IsDir() && e.IsDir() {
			p.acts[i] = actAttr
		}
	}
	if ref != nil {
		p.changed += gone
	}
	p.regroup(entries, spare)
	p.removals(entries, spare)
	p.tally(entries, spare)
	return p
}

// follower looks entries up whose paths are asked for in byte order.
type follower struct{ rest []Entry }

// walk follows a manifest, from its start; one that is nil has no entries.
func (m *Manifest) walk() follower {
	if m == nil {
		return follower{}
	}
	return follower{m.Entries}
}

func (f *follower) at(path string) *Entry {
	for len(f.rest) > 0 && f.rest[0].Path < path {
		f.rest = f.rest[1:]
	}
	if len(f.rest) == 0 || f.rest[0].Path != path {
		return nil
	}
	return &f.rest[0]
}

func (f *follower) files() (n int64) {
	for i := range f.rest {
		if !f.rest[i].IsDir() {
			n++
		}
	}
	return n
}

// newVersions counts up from a random place, so that versions of different archives never meet.
func newVersions() *atomic.Uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	v := new(atomic.Uint64)
	v.Store(binary.LittleEndian.Uint64(b[:]))
	return v
}

// regroup keeps the names of one file only together: all of them as they were, or all made again.
func (p *planned) regroup(entries []Entry, spare *Manifest) {
	if spare == nil {
		return // all are made
	}
	whole := map[uint32]bool{}
	groups := map[uint32]uint32{} // group here to group in the spare tree
	sizes, had := map[uint32]int{}, map[uint32]int{}
	for i := range spare.Entries {
		if l := spare.Entries[i].Link; l != 0 {
			had[l]++
		}
	}
	base := spare.walk()
	for i := range entries {
		e := &entries[i]
		if e.Link == 0 {
			continue
		}
		sizes[e.Link]++
		if _, seen := whole[e.Link]; !seen {
			whole[e.Link] = true
		}
		b := base.at(e.Path)
		if p.acts[i] != actKeep || b == nil {
			whole[e.Link] = false
			continue
		}
		if g, seen := groups[e.Link]; seen && g != b.Link {
			whole[e.Link] = false
		}
		groups[e.Link] = b.Link
	}
	for i := range entries {
		if l := entries[i].Link; l != 0 && (!whole[l] || sizes[l] != had[groups[l]]) {
			p.acts[i] = actMake
		}
	}
}

// removals lists what the spare tree has and the live one has not, or has as something else.
func (p *planned) removals(entries []Entry, spare *Manifest) {
	if spare == nil {
		return
	}
	live := follower{entries}
	under := ""
	for i := range spare.Entries {
		b := &spare.Entries[i]
		if b.Flags&FlagSkipped != 0 {
			continue
		}
		e := live.at(b.Path)
		if e != nil && e.IsDir() == b.IsDir() {
			continue
		}
		p.freed += b.Blocks * 512
		p.freedN++
		if under != "" && strings.HasPrefix(b.Path, under) {
			continue // goes with its folder
		}
		p.remove = append(p.remove, b.Path)
		if b.IsDir() {
			under = b.Path + "/"
		}
	}
}

func (p *planned) tally(entries []Entry, spare *Manifest) {
	base := spare.walk()
	seen := map[uint32]bool{}
	for i := range entries {
		e := &entries[i]
		switch {
		case p.acts[i] == actKeep:
			if !e.IsDir() {
				p.kept++
			}
			continue
		case p.acts[i] == actAttr:
			continue
		case e.IsDir():
			p.inodes++
			p.bytes += 4096
			continue
		}
		if b := base.at(e.Path); b != nil && !b.IsDir() && b.Link == 0 {
			p.freed += b.Blocks * 512
			p.freedN++
		}
		if e.Link != 0 && seen[e.Link] {
			continue
		}
		seen[e.Link] = e.Link != 0
		p.copies++
		p.inodes++
		p.bytes += e.Blocks * 512
	}
}
