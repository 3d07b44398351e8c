package fsck

import (
	"bytes"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// tree checks a tree. If base is given, bounds are its entries', and what data has in common with it at its beginning and its end is
// skipped. If out is not nil, the bounds of data are appended to it.
func tree(data, base []byte, bounds, out Bounds, on Callbacks) (Bounds, *Error) {
	if len(bounds) == 0 {
		return wholeTree(data, out, on)
	}
	keep, tail, from := common(data, base, bounds)
	shift := len(data) - len(base)

	out = append(out, bounds[:keep]...)
	var near []int // entries that may have a duplicate
	at, old, known := from, keep, true
	for at < len(data) {
		for tail < len(bounds) && int(bounds[tail])+shift < at {
			tail++
		}
		same := tail < len(bounds) && int(bounds[tail])+shift == at
		// known reports that the previous entry is also the previous one in base: then their order was checked.
		if old < len(bounds) && !same {
			n := bounds.end(old, base) - int(bounds[old])
			if known && n <= len(data)-at && bytes.Equal(data[at:at+n], base[bounds[old]:int(bounds[old])+n]) {
				out = append(out, uint32(at))
				at += n
				old++
				continue
			}
		}
		e, rest, ok := object.NextEntry(data[at:])
		if !ok {
			return out, broken("badTree", "an entry cannot be read, %d bytes before the end", len(data)-at)
		}
		found := same
		for !same && old < len(bounds) {
			o, _, _ := object.NextEntry(base[bounds[old]:])
			c := object.Compare(&o, &e)
			if c > 0 {
				break
			}
			old++
			if c == 0 {
				found = o.Mode == e.Mode && o.Hash == e.Hash && bounds.end(old-1, base)-int(bounds[old-1]) == len(data)-at-len(rest)
				break
			}
		}
		if !found {
			if err := entry(&e, on); err != nil {
				err.Path = string(e.Name)
				return out, err
			}
		}
		if len(out) > 0 {
			prev, _, _ := object.NextEntry(data[out[len(out)-1]:])
			if err := order(&prev, &e); err != nil {
				return out, err
			}
			if !prev.IsTree() && bytes.HasPrefix(e.Name, prev.Name) {
				near = append(near, len(out)-1)
			}
			if e.IsTree() && bytes.HasPrefix(prev.Name, e.Name) {
				near = append(near, len(out))
			}
		}
		if same {
			break
		}
		if !found && !e.IsGitlink() {
			on.link(e.Hash, e.Type())
		}
		known = found
		out = append(out, uint32(at))
		at = len(data) - len(rest)
	}
	if at < len(data) {
		for _, b := range bounds[tail:] {
			out = append(out, uint32(int(b)+shift))
		}
	}
	return out, firstDuplicate(data, out, near)
}

// common returns how many entries of base are within the common prefix, from which entry on they are within the common suffix, and where
// the first entry that is not kept begins.
func common(data, base []byte, bounds Bounds) (keep, tail, from int) {
	head := commonPrefix(data, base)
	keep = sort.Search(len(bounds), func(i int) bool { return bounds.end(i, base) > head })
	from = len(base)
	if keep < len(bounds) {
		from = int(bounds[keep])
	}
	end := commonSuffix(data[from:], base[from:])
	tail = keep + sort.Search(len(bounds)-keep, func(i int) bool { return len(base)-int(bounds[keep+i]) <= end })
	return keep, tail, from
}

// firstDuplicate refuses the first of the entries near, by their indexes, that has a duplicate.
func firstDuplicate(data []byte, bounds Bounds, near []int) *Error {
	for _, i := range near {
		if hasDuplicate(data, bounds, i) {
			e, _, _ := object.NextEntry(data[bounds[i]:])
			return duplicate(&e)
		}
	}
	return nil
}

// hasDuplicate reports whether entry i has the same name as an entry of another type. A file "a" and a tree "a" are apart in the order if
// "a-b" is between them, and only names that begin with "a" can be: over all entries of a tree it examines no more of them than the tree
// has bytes.
func hasDuplicate(data []byte, all Bounds, i int) bool {
	e, _, _ := object.NextEntry(data[all[i]:])
	step := 1
	if e.IsTree() {
		step = -1
	}
	for j := i + step; j >= 0 && j < len(all); j += step {
		o, _, _ := object.NextEntry(data[all[j]:])
		if !bytes.HasPrefix(o.Name, e.Name) {
			return false
		}
		if len(o.Name) == len(e.Name) {
			return true
		}
	}
	return false
}

func (b Bounds) end(i int, data []byte) int {
	if i+1 < len(b) {
		return int(b[i+1])
	}
	return len(data)
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+64 <= n && bytes.Equal(a[i:i+64], b[i:i+64]); i += 64 {
	}
	for ; i < n && a[i] == b[i]; i++ {
	}
	return i
}

func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[len(a)-n:], b[len(b)-n:]
	i := n
	for ; i >= 64 && bytes.Equal(a[i-64:i], b[i-64:i]); i -= 64 {
	}
	for ; i > 0 && a[i-1] == b[i-1]; i-- {
	}
	return n - i
}

func order(prev, e *object.Entry) *Error {
	if c := object.Compare(prev, e); c > 0 {
		return &Error{Rule: "treeNotSorted", Detail: "the entries are not in order", Path: string(e.Name)}
	} else if c == 0 || bytes.Equal(prev.Name, e.Name) {
		return duplicate(e)
	}
	return nil
}

func wholeTree(data []byte, out Bounds, on Callbacks) (Bounds, *Error) {
	var prev object.Entry
	var files [][]byte // entries that are not trees, each a prefix of the next and of what follows
	size := len(data)
	for first := true; len(data) > 0; first = false {
		e, rest, ok := object.NextEntry(data)
		if !ok {
			return out, broken("badTree", "an entry cannot be read, %d bytes before the end", len(data))
		}
		if out != nil {
			out = append(out, uint32(size-len(data)))
		}
		data = rest
		if err := entry(&e, on); err != nil {
			err.Path = string(e.Name)
			return out, err
		}
		if !first {
			if err := order(&prev, &e); err != nil {
				return out, err
			}
		}
		// A file "a" and a tree "a" are apart in the order if "a-b" is between them.
		for len(files) > 0 && !bytes.HasPrefix(e.Name, files[len(files)-1]) {
			files = files[:len(files)-1]
		}
		if e.IsTree() {
			for _, f := range files {
				if len(f) == len(e.Name) {
					return out, duplicate(&e)
				}
			}
		} else {
			files = append(files, e.Name)
		}
		prev = e
		if !e.IsGitlink() {
			on.link(e.Hash, e.Type())
		}
	}
	return out, nil
}

func duplicate(e *object.Entry) *Error {
	return &Error{Rule: "duplicateEntries", Detail: "two entries have one name", Path: string(e.Name)}
}

func entry(e *object.Entry, on Callbacks) *Error {
	if len(e.Name) == 0 {
		return broken("emptyName", "an entry has no name")
	}
	if bytes.IndexByte(e.Name, '/') >= 0 {
		return broken("fullPathname", "a name holds a slash")
	}
	switch e.Mode & object.ModeType {
	case object.ModeTree, object.ModeRegular, object.ModeSymlink, object.ModeGitlink:
	default:
		return broken("badFilemode", "unknown type of file %06o", e.Mode)
	}
	if e.Mode > 0o177777 {
		return broken("badFilemode", "unknown type of file %06o", e.Mode)
	}
	if e.Hash.IsZero() {
		return broken("nullSha1", "an entry names the null object")
	}
	if !suspect(e.Name) {
		return nil
	}
	switch {
	case len(e.Name) == 1 && e.Name[0] == '.':
		return broken("hasDot", "an entry is named \".\"")
	case string(e.Name) == "..":
		return broken("hasDotdot", "an entry is named \"..\"")
	case IsDotGit(e.Name):
		return broken("hasDotgit", "an entry would be, or be taken for, the repository's own .git")
	case IsDotGitmodules(e.Name):
		if e.IsSymlink() {
			return broken("gitmodulesSymlink", ".gitmodules is a symbolic link")
		}
		if e.Type() == plumbing.BlobObject && on.Modules != nil {
			on.Modules(e.Hash)
		}
	}
	return nil
}

// suspect returns a cheap filter: only names that pass it need the other checks.
func suspect(name []byte) bool {
	switch c := name[0]; {
	case c == '.' || c == 'g' || c == 'G' || c >= 0x80:
		return true
	}
	return bytes.IndexByte(name, '\\') >= 0
}
