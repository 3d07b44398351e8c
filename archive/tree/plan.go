package tree

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"corpus-git/internal/vfs"
)

// RacyWindow is the longest time in which a change may go unnoticed. Two writes within one tick of the file system's clock leave the same ctime;
// by that clock (vfs.FileTime), a change after the scan began is no older than that. A write notes the time before the content: the window is
// for one that was under way. File systems that store whole seconds are recognised by times without a fraction.
const (
	RacyWindow = 10 * time.Millisecond
	racyWhole  = 2 * time.Second
)

// racy reports whether a file that had this ctime in a scan may have changed since without a trace. begun is by the file system's clock.
func racy(ctime, begun int64) bool {
	if ctime%int64(time.Second) == 0 {
		return ctime >= begun-int64(racyWhole)
	}
	return ctime >= begun-int64(RacyWindow)
}

// MarkRacy sets FlagRacy for a scan that began at the given time by the file system's clock.
func MarkRacy(entries []Entry, begun time.Time) {
	for i := range entries {
		entries[i].Flags &^= FlagRacy
		if racy(entries[i].Live.Ctime, begun.UnixNano()) {
			entries[i].Flags |= FlagRacy
		}
	}
}

// Reference is the newest manifest that can be read, the best record of the live tree. nil if there is none.
type Reference struct {
	Manifest *Manifest
	// LiveSince is when the copies of this archive became the live tree, by the file system's clock or before; 0 if they did not.
	LiveSince int64
}

// match returns w, the recorded state of a live file, or nil if the file may have changed.
func (r *Reference) match(e, w *Entry) *Entry {
	if w == nil || w.Version == 0 || w.Flags&FlagUnstable != 0 || w.Mode != e.Mode || w.Size != e.Size || w.Mtime != e.Mtime || w.Target != e.Target {
		return nil
	}
	if w.Live == e.Live && w.Flags&FlagRacy == 0 && w.UID == e.UID && w.GID == e.GID {
		return w
	}
	// After a rollback the live file is the copy.
	if r.LiveSince != 0 && w.Copy == e.Live && !racy(w.Copy.Ctime, r.LiveSince) {
		return w
	}
	return nil
}

// Plan is what a copy will do with each entry.
type Plan struct {
	acts        []action
	remove      []string
	version     *atomic.Uint64
	Copies      int64 // files to copy
	Bytes       int64 // their allocated bytes
	Inodes      int64 // to create, folders included
	Freed       int64 // allocated bytes of what is removed or replaced in the spare tree
	FreedInodes int64 // Inodes of it
	Kept        int64
	Changed     int64
}

// NewPlan decides for each entry whether the spare tree's entry can be reused: the reference, or the spare tree's own manifest, must prove it
// unchanged in the live tree, and the spare tree must have the same version. When in doubt it is copied.
func NewPlan(entries []Entry, ref *Reference, spare *Manifest, begun time.Time) *Plan {
	p := &Plan{acts: make([]action, len(entries)), version: newVersions()}
	if ref == nil {
		p.Changed = -1
	}
	base := spare.Walk()
	var was Walker
	if ref != nil {
		was = ref.Manifest.Walk()
	}
	own := &Reference{Manifest: spare}
	gone := was.files()
	for i := range entries {
		e := &entries[i]
		w := was.At(e.Path)
		if w != nil && !w.IsDir() && !e.IsDir() {
			gone--
		}
		b := base.At(e.Path)
		if w := ref.match(e, w); w != nil {
			e.Version, e.Xattrs, e.Sum = w.Version, w.Xattrs, w.Sum
		} else {
			if ref != nil && !e.IsDir() {
				p.Changed++
			}
			// A spare tree that was copied after the reference was made knows of changes in between.
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
		p.Changed += gone
	}
	p.regroup(entries, spare)
	p.removals(entries, spare)
	p.tally(entries, spare)
	return p
}

// Recognize gives entries the version that another manifest recorded of them, where it proves them unchanged since. It must be newer than the reference.
func Recognize(entries []Entry, m *Manifest) {
	was, r := m.Walk(), &Reference{Manifest: m}
	for i := range entries {
		if w := r.match(&entries[i], was.At(entries[i].Path)); w != nil {
			entries[i].Version, entries[i].Xattrs, entries[i].Sum = w.Version, w.Xattrs, w.Sum
		}
	}
}

// Nothing reports whether the spare tree is already what is archived.
func (p *Plan) Nothing() bool {
	return len(p.remove) == 0 && !slices.ContainsFunc(p.acts, func(a action) bool { return a != actKeep })
}

// Walker looks up entries for paths that are requested in byte order.
type Walker struct{ rest []Entry }

// Walk returns a walker at the start of a manifest; nil has no entries.
func (m *Manifest) Walk() Walker {
	if m == nil {
		return Walker{}
	}
	return Walker{m.Entries}
}

// At returns the entry of a path, or nil.
func (f *Walker) At(path string) *Entry {
	for len(f.rest) > 0 && f.rest[0].Path < path {
		f.rest = f.rest[1:]
	}
	if len(f.rest) == 0 || f.rest[0].Path != path {
		return nil
	}
	return &f.rest[0]
}

func (f *Walker) files() (n int64) {
	for i := range f.rest {
		if !f.rest[i].IsDir() {
			n++
		}
	}
	return n
}

// newVersions counts up from a random number, so that versions of different archives never coincide.
func newVersions() *atomic.Uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	v := new(atomic.Uint64)
	v.Store(binary.LittleEndian.Uint64(b[:]))
	return v
}

// regroup treats all names of one file alike: all are kept, or all made again.
func (p *Plan) regroup(entries []Entry, spare *Manifest) {
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
	base := spare.Walk()
	for i := range entries {
		e := &entries[i]
		if e.Link == 0 {
			continue
		}
		sizes[e.Link]++
		if _, seen := whole[e.Link]; !seen {
			whole[e.Link] = true
		}
		b := base.At(e.Path)
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

// removals lists what exists in the spare tree and does not exist, or has another type, in the live one.
func (p *Plan) removals(entries []Entry, spare *Manifest) {
	if spare == nil {
		return
	}
	live := Walker{entries}
	under := ""
	for i := range spare.Entries {
		b := &spare.Entries[i]
		if b.Flags&FlagSkipped != 0 {
			continue
		}
		e := live.At(b.Path)
		if e != nil && e.IsDir() == b.IsDir() {
			continue
		}
		p.Freed += b.Blocks * 512
		p.FreedInodes++
		if under != "" && strings.HasPrefix(b.Path, under) {
			continue // removed with its folder
		}
		p.remove = append(p.remove, b.Path)
		if b.IsDir() {
			under = b.Path + "/"
		}
	}
}

func (p *Plan) tally(entries []Entry, spare *Manifest) {
	base := spare.Walk()
	seen := map[uint32]bool{}
	for i := range entries {
		e := &entries[i]
		switch {
		case p.acts[i] == actKeep:
			if !e.IsDir() {
				p.Kept++
			}
			continue
		case p.acts[i] == actAttr:
			continue
		case e.IsDir():
			p.Inodes++
			p.Bytes += 4096
			continue
		}
		if b := base.At(e.Path); b != nil && !b.IsDir() && b.Link == 0 {
			p.Freed += b.Blocks * 512
			p.FreedInodes++
		}
		if e.Link != 0 && seen[e.Link] {
			continue
		}
		seen[e.Link] = e.Link != 0
		p.Copies++
		p.Inodes++
		p.Bytes += e.Blocks * 512
	}
}

// PlanAll plans to make everything, in an empty destination.
func PlanAll(entries []Entry) *Plan {
	p := &Plan{acts: make([]action, len(entries)), version: newVersions()}
	p.tally(entries, nil)
	return p
}

// PlanRestore decides what to copy so that a live tree, got, becomes equal to a manifest.
func PlanRestore(want, got []Entry) *Plan {
	live := (&Manifest{Entries: got}).index()
	acts := make([]action, len(want))
	var remove []string
	group := map[uint32]bool{} // groups with a name that must be made
	for i := range want {
		w := &want[i]
		g := live[w.Path]
		same := g != nil && w.Flags&FlagRacy == 0 && g.Live == w.Live
		switch {
		case w.Flags&FlagSkipped != 0, same:
			acts[i] = actKeep
		case w.IsDir() && g != nil && g.IsDir():
			acts[i] = actAttr
		default:
			acts[i] = actMake
			if w.Link != 0 {
				group[w.Link] = true
			}
		}
		if g != nil && g.IsDir() != w.IsDir() {
			remove = append(remove, w.Path)
		}
	}
	for i := range want {
		if group[want[i].Link] {
			acts[i] = actMake
		}
	}
	wanted := (&Manifest{Entries: want}).index()
	under := ""
	for i := range got {
		p := got[i].Path
		if wanted[p] != nil || (under != "" && strings.HasPrefix(p, under)) {
			continue
		}
		remove = append(remove, p)
		if got[i].IsDir() {
			under = p + "/"
		}
	}
	return &Plan{acts: acts, remove: remove, version: newVersions()}
}

// RefreshRoots records the identity of the trees' roots, which moving the spare tree has changed.
func RefreshRoots(dst vfs.Dir, entries []Entry) error {
	for i := range entries {
		if strings.Contains(entries[i].Path, "/") {
			continue
		}
		st, err := dst.Lstat(entries[i].Path)
		if err != nil {
			return err
		}
		entries[i].Copy = IdentOf(st)
	}
	return nil
}
