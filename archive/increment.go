package archive

import (
	"archive/tar"
	"io"
	"strings"

	"corpus-git/archive/tree"
)

// increment is what packing an archive need not write, because the base of another packed archive holds the same.
type increment struct {
	s    *Store
	from Archive
	// holds are the entries of the archive to be packed, by index; held is their number.
	holds []bool
	held  int64
	// move reports that the base was written ahead, and becomes the archive's.
	move bool
}

// increment looks among all archives, newest first, for a packed one whose base can be shared: the newest that holds most of a. It returns nil if there is none, and then a
// is packed whole. Entries that it finds equal get the checksum recorded there.
//
// Entries are equal when both manifests give them the same version and the same attributes, and the other archive has its entry from its
// base: a version is one state of a live file, which both archives copied. A file with several names is always written.
func (w *compaction) increment(all []Archive, a Archive, m *tree.Manifest) (*increment, error) {
	for _, p := range all {
		if p.Packed == nil || !p.Whole || p.ID == a.ID {
			continue
		}
		inc, err := w.incrementOf(p, a, m)
		if inc != nil || w.ctx.Err() != nil {
			return inc, err
		}
		return nil, nil // an older one holds no more; Verify reports what can't be read
	}
	return nil, nil
}

func (w *compaction) incrementOf(p, a Archive, m *tree.Manifest) (*increment, error) {
	s := w.s
	pm, newer, err := s.recentPaths(p.Path)
	if err != nil {
		return nil, err
	}
	if newer == nil {
		newer = map[string]bool{}
		for _, t := range a.Trees {
			if p.Packed.Trees[t].Base == nil {
				continue
			}
			err := s.readTar(p.packedPath(t), w.pause, io.Discard, func(h *tar.Header, _ io.Reader) error {
				newer[strings.TrimSuffix(h.Name, "/")] = true
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return incrementOf(s, p, pm, newer, a, m), nil
}

// incrementOf compares with one packed archive, its manifest, and the paths that are not in its base. It returns nil if that holds too little of a.
func incrementOf(s *Store, p Archive, pm *tree.Manifest, newer map[string]bool, a Archive, m *tree.Manifest) *increment {
	var room int64
	for _, t := range a.Trees {
		of, ok := p.Packed.Trees[t]
		switch {
		case !ok:
			return nil
		case of.Base == nil:
			room += of.Entries
		default:
			room += of.Base.Entries
		}
	}
	inc := &increment{s: s, from: p, holds: make([]bool, len(m.Entries))}
	var all, held int64
	was := pm.Walk()
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Flags&tree.FlagSkipped != 0 {
			continue
		}
		all += e.Size + headerSize
		o := was.At(e.Path)
		if o == nil || newer[e.Path] || !sameEntry(o, e) {
			continue
		}
		if e.IsRegular() {
			e.Sum = o.Sum
		}
		held += e.Size + headerSize
		inc.holds[i] = true
		inc.held++
	}
	// If much has changed or is gone, a new base is due.
	if held < all/4*3 || inc.held < room/4*3 {
		return nil
	}
	return inc
}

// sameEntry reports whether two archives hold the same under one name, as far as tar records it.
func sameEntry(o, e *tree.Entry) bool {
	const lacks = tree.FlagSkipped | tree.FlagUnstable
	if o.Flags&^tree.FlagRacy != e.Flags&^tree.FlagRacy || e.Flags&lacks != 0 || o.Link != 0 || e.Link != 0 || o.Mode != e.Mode || o.UID != e.UID || o.GID != e.GID ||
		o.Mtime != e.Mtime || o.Xattrs != e.Xattrs || o.Rdev != e.Rdev || o.Target != e.Target {
		return false
	}
	if !e.IsRegular() {
		return o.Xattrs == 0 || o.Version == e.Version
	}
	return o.Size == e.Size && o.Version != 0 && o.Version == e.Version && o.Sum.Known() && (!e.Sum.Known() || e.Sum == o.Sum)
}

// has reports whether the entry with an index need not be written.
func (i *increment) has(entry int) bool { return i != nil && i.holds[entry] }

// link hard-links the base of a tree into the archive, or moves one that was written ahead; it does nothing if there is no increment.
func (i *increment) link(name, to string) (*PackedBase, error) {
	if i == nil {
		return nil, nil
	}
	of := i.from.Packed.Trees[name]
	from := i.from.packedPath(name)
	base := of.Base
	if base != nil {
		from = i.from.basePath(name)
	} else {
		base = &PackedBase{Entries: of.Entries, Bytes: of.Bytes, SHA256: of.SHA256}
	}
	if i.move {
		return base, i.s.fs.Rename(from, to)
	}
	return base, i.s.fs.Link(from, to)
}

// share records that a file has more links than its names in this archive.
func (a *Archive) share(ino uint64, disk int64) {
	if a.shared == nil {
		a.shared = map[uint64]int64{}
	}
	a.shared[ino] = disk
	a.Shared += disk
}

// SharedFile identifies by content the file that the archive shares: archives with the same result share the same file. It returns "" if
// nothing is shared.
func (a Archive) SharedFile() string {
	if a.Shared == 0 || a.Packed == nil {
		return ""
	}
	var names []string
	for _, t := range a.Trees {
		of := a.Packed.Trees[t]
		if of.Base != nil {
			of.SHA256 = of.Base.SHA256
		}
		names = append(names, of.SHA256[:min(len(of.SHA256), 16)])
	}
	return strings.Join(names, "-")
}

// Incremental reports whether a packed tree is in two files, neither of which is the whole tree.
func (a Archive) Incremental() bool { return a.Packed.shares() }

// usedDisk is the disk space that archives take together, each shared file counted once.
type usedDisk struct {
	total int64
	users map[uint64]int
}

func usageOf(all []Archive) *usedDisk {
	u := &usedDisk{users: map[uint64]int{}}
	for _, a := range all {
		u.total += a.Own
		for ino, n := range a.shared {
			if u.users[ino]++; u.users[ino] == 1 {
				u.total += n
			}
		}
	}
	return u
}

// without removes an archive from the sum, and returns how much less the rest take.
func (u *usedDisk) without(a Archive) (freed int64) {
	freed = a.Own
	for ino, n := range a.shared {
		if u.users[ino]--; u.users[ino] == 0 {
			freed += n
		}
	}
	u.total -= freed
	return freed
}

// Disk returns the disk space that archives take together, each shared file counted once.
func Disk(all []Archive) int64 { return usageOf(all).total }
