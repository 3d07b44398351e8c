package worktree

import (
	"bytes"
	"strconv"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/fsck"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
)

// Objects is an object store: a repository's own, or that and a quarantine in front of it.
type Objects = store.Reader

// treeItem is one entry of a tree object.
type treeItem struct {
	name string
	mode uint32
	oid  plumbing.Hash
}

func validMode(m uint32) bool {
	return m == modeFile || m == modeExec || m == modeSymlink || m == modeGitlink
}

// parseTree decodes a tree object and refuses what must not reach a file system: names that CheckName refuses, entries
// out of order or twice, unknown modes, a .gitmodules that is a symbolic link. of names the tree in errors.
func parseTree(of plumbing.Hash, data []byte) ([]treeItem, error) {
	refuse := func(format string, args ...any) error {
		return fault.New(fault.Refused, "tree "+of.String(), format, args...)
	}
	items := make([]treeItem, 0, bytes.Count(data, []byte{0})/2+1)
	text := string(data)
	for pos := 0; pos < len(data); {
		sp := bytes.IndexByte(data[pos:], ' ')
		if sp < 0 || sp > 7 {
			return nil, refuse("entry %d is cut", len(items)+1)
		}
		m, err := strconv.ParseUint(text[pos:pos+sp], 8, 32)
		if err != nil {
			return nil, refuse("entry %d has no mode", len(items)+1)
		}
		pos += sp + 1
		nul := bytes.IndexByte(data[pos:], 0)
		if nul < 0 || len(data)-pos-nul-1 < len(plumbing.Hash{}) {
			return nil, refuse("entry %d is cut", len(items)+1)
		}
		it := treeItem{name: text[pos : pos+nul], mode: canonical(uint32(m))}
		pos += nul + 1
		pos += copy(it.oid[:], data[pos:])
		if err := CheckName(it.name); err != nil {
			return nil, refuse("%w", err)
		}
		switch {
		case it.mode != modeDir && !validMode(it.mode):
			return nil, refuse("entry %q has mode %o, which git does not know", it.name, m)
		case it.mode == modeSymlink && fsck.IsDotGitmodules([]byte(it.name)):
			return nil, refuse("entry %q is a symbolic link: git's configuration files must be files", it.name)
		case len(items) > 0 && !before(&items[len(items)-1], &it):
			return nil, refuse("entries %q and %q are out of order or double", items[len(items)-1].name, it.name)
		}
		// A file "a" and a folder "a" need not be neighbours.
		if it.mode == modeDir {
			for i := len(items) - 1; i >= 0 && len(items[i].name) >= len(it.name) && items[i].name[:len(it.name)] == it.name; i-- {
				if items[i].name == it.name {
					return nil, refuse("entry %q is a file and a folder at once", it.name)
				}
			}
		}
		items = append(items, it)
	}
	return items, nil
}

// canonical maps the modes that old versions of git wrote to those of today.
func canonical(m uint32) uint32 {
	switch {
	case m&modeType == 0o100000 && m&0o100 != 0:
		return modeExec
	case m&modeType == 0o100000:
		return modeFile
	case m&modeType == modeDir:
		return modeDir
	default:
		return m
	}
}

// before is git's order of tree entries: bytes, a folder's name taken with a slash behind it.
func before(a, b *treeItem) bool {
	n := min(len(a.name), len(b.name))
	if a.name[:n] != b.name[:n] {
		return a.name[:n] < b.name[:n]
	}
	at := func(t *treeItem) byte {
		switch {
		case len(t.name) > n:
			return t.name[n]
		case t.mode == modeDir:
			return '/'
		default:
			return 0
		}
	}
	return at(a) < at(b)
}

func readTree(objs Objects, h plumbing.Hash) ([]treeItem, error) {
	data, err := get(objs, h, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	return parseTree(h, data)
}

func get(objs Objects, h plumbing.Hash, want plumbing.ObjectType) ([]byte, error) {
	t, data, err := objs.Get(h)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "read "+want.String()+" "+h.String(), "%w", err)
	}
	if t != want {
		return nil, fault.New(fault.Refused, "read object", "%s is a %s where a %s is needed", h, t, want)
	}
	return data, nil
}

// commit is the part of a commit object that this package uses.
type commit struct {
	tree      plumbing.Hash
	parents   []plumbing.Hash
	author    Signature
	committer Signature
	subject   string
	encoding  string
}

// Signature is who, and when, of a commit.
type Signature struct {
	Name, Email string
	When        time.Time
}

// peel follows tags to a commit.
func peel(objs Objects, h plumbing.Hash) (plumbing.Hash, []byte, error) {
	for range 16 {
		t, data, err := objs.Get(h)
		if err != nil {
			return h, nil, fault.New(fault.KindOf(err), "read "+h.String(), "%w", err)
		}
		switch t {
		case plumbing.CommitObject:
			return h, data, nil
		case plumbing.TagObject:
			to, ok := headerHash(data, "object ")
			if !ok {
				return h, nil, fault.New(fault.Refused, "read tag "+h.String(), "no object line")
			}
			h = to
		default:
			return h, nil, fault.New(fault.Refused, "read object", "%s is a %s where a commit is needed", h, t)
		}
	}
	return h, nil, fault.New(fault.Refused, "read tag", "more than 16 tags on top of each other")
}

func headerHash(data []byte, key string) (plumbing.Hash, bool) {
	if !bytes.HasPrefix(data, []byte(key)) || len(data) < len(key)+40 {
		return plumbing.ZeroHash, false
	}
	s := string(data[len(key) : len(key)+40])
	return plumbing.NewHash(s), plumbing.IsHash(s)
}

func readCommit(objs Objects, h plumbing.Hash) (*commit, error) {
	data, err := get(objs, h, plumbing.CommitObject)
	if err != nil {
		return nil, err
	}
	return parseCommit(h, data)
}

func parseCommit(h plumbing.Hash, data []byte) (*commit, error) {
	c, ok := &commit{}, false
	if c.tree, ok = headerHash(data, "tree "); !ok {
		return nil, fault.New(fault.Refused, "read commit "+h.String(), "no tree line")
	}
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		if len(line) == 0 {
			c.subject = subject(data)
			break
		}
		key, value, _ := bytes.Cut(line, []byte{' '})
		switch string(key) {
		case "parent":
			if p, ok := headerHash(line, "parent "); ok {
				c.parents = append(c.parents, p)
			}
		case "author":
			c.author = parseSignature(string(value))
		case "committer":
			c.committer = parseSignature(string(value))
		case "encoding":
			c.encoding = string(value)
		}
	}
	return c, nil
}

// subject is the first paragraph of a message on one line, as git log --format=%s prints it.
func subject(msg []byte) string {
	msg = bytes.TrimLeft(msg, "\n")
	if para, _, ok := bytes.Cut(msg, []byte("\n\n")); ok {
		msg = para
	}
	lines := bytes.Split(bytes.TrimSpace(msg), []byte{'\n'})
	for i := range lines {
		lines[i] = bytes.TrimSpace(lines[i])
	}
	return string(bytes.Join(lines, []byte{' '}))
}

// parseSignature reads "Name <mail> seconds zone"; what is missing stays empty.
func parseSignature(s string) (sig Signature) {
	lt := bytes.IndexByte([]byte(s), '<')
	gt := bytes.LastIndexByte([]byte(s), '>')
	if lt < 0 || gt < lt {
		sig.Name = s
		return sig
	}
	sig.Name, sig.Email = string(bytes.TrimSpace([]byte(s[:lt]))), s[lt+1:gt]
	fields := bytes.Fields([]byte(s[gt+1:]))
	if len(fields) == 0 {
		return sig
	}
	sec, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return sig
	}
	loc := time.UTC
	if len(fields) > 1 {
		if z, err := strconv.Atoi(string(fields[1])); err == nil && z >= -1400 && z <= 1400 {
			loc = time.FixedZone("", (z/100*60+z%100)*60)
		}
	}
	sig.When = time.Unix(sec, 0).In(loc)
	return sig
}
