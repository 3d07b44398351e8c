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
	idx map[string]*Entry
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
		r := &reference{idx: m.index()}
		if a.Rollback != nil && a.Rollback.Method == methodExchange {
			r.wentLive = a.Rollback.Begun.UnixNano()
		}
		return r
	}
	return nil
}

// match finds the recorded state of a live file, nil when it may have changed.
func (r *reference) match(e *Entry) *Entry {
	if r == nil {
		return nil
	}
	w := r.idx[e.Path]
	if w == nil || w.Flags&FlagUnstable != 0 || w.Mode != e.Mode || w.Size != e.Size || w.Mtime != e.Mtime || w.Target != e.Target {
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

// plan decides entry by entry what can be taken over from the spare tree: what the reference proves unchanged in the live
// tree, and of which the spare tree has the same version. When in doubt it is copied.
func plan(entries []Entry, ref *reference, spare *Manifest, begun time.Time) *planned {
	p := &planned{acts: make([]action, len(entries)), version: newVersions()}
	if ref == nil {
		p.changed = -1
	}
	base := spare.index()
	for i := range entries {
		e := &entries[i]
		if w := ref.match(e); w != nil {
			e.Version, e.Xattrs, e.Sum = w.Version, w.Xattrs, w.Sum
		} else {
			e.Version = p.version.Add(1)
			if ref != nil && !e.IsDir() {
				p.changed++
			}
		}
		if b := base[e.Path]; b != nil && b.Version == e.Version && b.Flags&(FlagSkipped|FlagUnstable) == 0 && (b.Link == 0) == (e.Link == 0) {
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
		p.changed += missing(entries, ref.idx)
	}
	p.regroup(entries, base)
	p.removals(entries, spare)
	p.tally(entries, base)
	return p
}

// newVersions counts up from a random place, so that versions of different archives never meet.
func newVersions() *atomic.Uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	v := new(atomic.Uint64)
	v.Store(binary.LittleEndian.Uint64(b[:]))
	return v
}

func missing(entries []Entry, idx map[string]*Entry) (n int64) {
	have := 0
	files := 0
	for i := range entries {
		if !entries[i].IsDir() && idx[entries[i].Path] != nil {
			have++
		}
	}
	for _, e := range idx {
		if !e.IsDir() {
			files++
		}
	}
	return int64(max(0, files-have))
}

// regroup keeps the names of one file only together: all of them as they were, or all made again.
func (p *planned) regroup(entries []Entry, base map[string]*Entry) {
	whole := map[uint32]bool{}
	groups := map[uint32]uint32{} // group here to group in the spare tree
	sizes, had := map[uint32]int{}, map[uint32]int{}
	for _, b := range base {
		had[b.Link]++
	}
	for i := range entries {
		e := &entries[i]
		if e.Link == 0 {
			continue
		}
		sizes[e.Link]++
		if _, seen := whole[e.Link]; !seen {
			whole[e.Link] = true
		}
		b := base[e.Path]
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
	idx := (&Manifest{Entries: entries}).index()
	under := ""
	for i := range spare.Entries {
		b := &spare.Entries[i]
		if b.Flags&FlagSkipped != 0 {
			continue
		}
		e := idx[b.Path]
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

func (p *planned) tally(entries []Entry, base map[string]*Entry) {
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
		if b := base[e.Path]; b != nil && !b.IsDir() && b.Link == 0 {
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
