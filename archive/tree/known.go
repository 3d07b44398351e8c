package tree

import (
	"context"
	"strings"

	"corpus-git/internal/vfs"
)

// Known are the names that an earlier scan of the same folders found. A folder that is the same inode with the same times has the same names: on ext4 and
// tmpfs, each name that is added, removed or replaced changes them. On other file systems, use none.
type Known struct {
	was []Entry
	// folders are those among the entries, number where one is by its path.
	folders []contents
	number  map[string]int32
}

// contents are the places of a folder, and of what is in it in byte order, among the entries.
type contents struct {
	self  int32
	names []int32
}

// KnownFrom returns what a manifest knows of the trees that were archived, nil if m is nil. The manifest must not be changed any more.
func KnownFrom(m *Manifest) *Known {
	if m == nil {
		return nil
	}
	k := &Known{was: m.Entries, number: map[string]int32{}}
	var counts []int                       // of what is in each folder
	above := make([]int32, len(m.Entries)) // the number of the folder that an entry is in
	dir, number := "", int32(-1)
	for i := range m.Entries {
		e := &m.Entries[i]
		if p := e.Path[:max(strings.LastIndexByte(e.Path, '/'), 0)]; p != dir {
			n, ok := k.number[p]
			if dir, number = p, n; !ok {
				number = -1
			}
		}
		if above[i] = number; number >= 0 {
			counts[number]++
		}
		if e.IsDir() {
			k.number[e.Path] = int32(len(k.folders))
			k.folders, counts = append(k.folders, contents{self: int32(i)}), append(counts, 0)
		}
	}
	for n, count := range counts {
		k.folders[n].names = make([]int32, 0, count)
	}
	for i, n := range above {
		if n >= 0 {
			k.folders[n].names = append(k.folders[n].names, int32(i))
		}
	}
	return k
}

// of returns what is in a folder, if it is still as it was.
func (k *Known) of(self *Entry) (names []int32, ok bool) {
	if k == nil {
		return nil, false
	}
	n, ok := k.number[self.Path]
	if !ok {
		return nil, false
	}
	c := k.folders[n]
	w := &k.was[c.self]
	same := w.Live == self.Live && w.Mtime == self.Mtime && w.Flags&(FlagRacy|FlagUnstable|FlagSkipped) == 0
	return c.names, same
}

// ScanKnown is Scan that does not list the folders whose names are known. known is called for each folder, by several goroutines; it may return nil. A folder
// that is replaced by another one during the scan may be described with the names of the old one: the caller must know what changes from before the scan, and look at that again.
func ScanKnown(ctx context.Context, d vfs.Dir, names []string, workers int, known func() *Known) (*Scanned, error) {
	return scan(ctx, d, names, workers, known)
}

func noneKnown() *Known { return nil }

// look describes the content of one open folder.
func (k *Known) look(d vfs.Dir, self *Entry) (found []Entry, vanished int, err error) {
	names, ok := k.of(self)
	if !ok {
		return list(d, self.Path)
	}
	found = make([]Entry, 0, len(names))
	skip := len(self.Path) + 1
	for _, i := range names {
		w := &k.was[i]
		if found, err = describe(found, d, w.Path, w.Path[skip:]); err != nil {
			return nil, 0, err
		}
	}
	return found, len(names) - len(found), nil
}
