package tree

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"corpus-git/internal/vfs"
)

// Proof is the result of comparing a tree with a manifest, entry by entry.
type Proof struct {
	// Entries were compared; Proved of them are the recorded files themselves, untouched since (device, inode and change time are the
	// same); the rest agree in type, mode, owner, size, time, target and links.
	Entries int64 `json:"entries"`
	Proved  int64 `json:"proved"`
	// Hashed files were read completely, and their content compared with what was recorded.
	Hashed int64 `json:"hashed,omitempty"`
	// Different is the number of entries that differ; Differences are the first of them.
	Different   int64        `json:"different"`
	Differences []Difference `json:"differences,omitempty"`
}

// Exact reports that there are no differences.
func (p Proof) Exact() bool { return p.Different == 0 }

// Differ counts an entry that differs, and records in which respect.
func (p *Proof) Differ(path, what string) {
	p.Different++
	if len(p.Differences) < 100 {
		p.Differences = append(p.Differences, Difference{Path: path, What: what})
	}
}

// Difference is one entry that is not as recorded.
type Difference struct {
	Path string `json:"path"`
	What string `json:"what"` // missing, extra, type, mode, owner, size, mtime, target, device, links, xattrs, content
}

// String returns one line; a path that is not printable is quoted.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s", d.What, strings.Trim(fmt.Sprintf("%q", d.Path), `"`))
}

// Describe describes named folders below dir as they are now. It writes nothing. Extended attributes are read when withXattrs is set;
// otherwise their digests are 0.
func Describe(ctx context.Context, f vfs.FS, dir string, withXattrs bool, names ...string) (*Manifest, error) {
	d, err := f.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	t, err := Scan(ctx, d, names, 8)
	if err != nil {
		return nil, err
	}
	if withXattrs {
		c := NewCursor(d)
		defer c.Close()
		for i := range t.Entries {
			at, name, err := c.At(t.Entries[i].Path)
			if err != nil {
				return nil, err
			}
			xs, err := at.Xattrs(name)
			if err != nil {
				return nil, err
			}
			t.Entries[i].Xattrs = XattrDigest(xs)
		}
	}
	return &Manifest{Entries: t.Entries}, nil
}

// groupLinks numbers the files that have several names among entries.
func groupLinks(entries []Entry) {
	type id struct{ dev, ino uint64 }
	first := map[id]int{}
	var next uint32
	for i := range entries {
		e := &entries[i]
		e.Link = 0
		if e.IsDir() || e.nlink < 2 {
			continue
		}
		k := id{e.Live.Dev, e.Live.Ino}
		j, seen := first[k]
		if !seen {
			first[k] = i
			continue
		}
		if entries[j].Link == 0 {
			next++
			entries[j].Link = next
		}
		e.Link = entries[j].Link
	}
}

// Compare reports how got, as Scan returned it, differs from what a manifest records. Owners and attributes that the manifest marks as
// not archived are not compared. Extended attributes are compared if got has digests.
func Compare(want, got *Manifest) Proof {
	var p Proof
	diff := p.Differ
	links := map[uint32]uint32{}
	i, j := 0, 0
	for i < len(want.Entries) || j < len(got.Entries) {
		switch {
		case j == len(got.Entries) || (i < len(want.Entries) && want.Entries[i].Path < got.Entries[j].Path):
			if want.Entries[i].Flags&FlagSkipped == 0 {
				p.Entries++
				diff(want.Entries[i].Path, "missing")
			}
			i++
		case i == len(want.Entries) || got.Entries[j].Path < want.Entries[i].Path:
			p.Entries++
			diff(got.Entries[j].Path, "extra")
			j++
		default:
			w, g := &want.Entries[i], &got.Entries[j]
			p.Entries++
			if what := differs(w, g, links); what != "" {
				diff(w.Path, what)
			} else if sameFile(w, g.Live) {
				p.Proved++
			}
			i++
			j++
		}
	}
	return p
}

// sameFile reports whether a live file is the recorded one or its copy, unchanged. The root of a tree gets a new ctime when it is moved.
func sameFile(w *Entry, live Ident) bool {
	was, copied := w.Live, w.Copy
	if !strings.Contains(w.Path, "/") {
		was.Ctime, copied.Ctime = live.Ctime, live.Ctime
	}
	return live == copied || live == was
}

func differs(w, g *Entry, links map[uint32]uint32) string {
	switch {
	case w.Type() != g.Type():
		return "type"
	case w.Target != g.Target:
		return "target"
	case w.Rdev != g.Rdev:
		return "device"
	case w.Type() == syscall.S_IFSOCK:
		return "" // its listener creates it again
	case w.Type() != syscall.S_IFLNK && w.Mode != g.Mode:
		return "mode"
	case w.Flags&FlagOwner == 0 && (w.UID != g.UID || w.GID != g.GID):
		return "owner"
	case w.IsRegular() && w.Size != g.Size:
		return "size"
	case w.Mtime != g.Mtime:
		return "mtime"
	case g.Xattrs != 0 && w.Flags&FlagXattr == 0 && w.Xattrs != g.Xattrs:
		return "xattrs"
	case (w.Link == 0) != (g.Link == 0):
		return "links"
	}
	if w.Link != 0 {
		if l, ok := links[w.Link]; ok && l != g.Link {
			return "links"
		}
		links[w.Link] = g.Link
	}
	return ""
}
