package object

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrCorrupt is wrapped by errors about bytes that are not a valid object.
var ErrCorrupt = errors.New("corrupt object")

// Head is the part of a commit that a walk through history needs.
type Head struct {
	Tree    plumbing.Hash
	Parents []plumbing.Hash
	// Date is the committer's, in seconds since 1970; 0 if it cannot be read, as in git.
	Date int64
}

// ParseHead reads the headers of a commit up to its committer. id names it in errors.
func ParseHead(id plumbing.Hash, data []byte) (Head, error) {
	c, data, err := parseLinks(id, data)
	if err != nil {
		return c, err
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		if len(line) == 0 {
			break
		}
		if v, ok := bytes.CutPrefix(line, []byte("committer ")); ok {
			c.Date = date(v)
			break
		}
	}
	return c, nil
}

// parseLinks reads the lines tree and parent, which come first, and returns what follows.
func parseLinks(id plumbing.Hash, data []byte) (c Head, rest []byte, err error) {
	bad := func(what string) (Head, []byte, error) {
		return c, nil, fmt.Errorf("%w: commit %s: %s", ErrCorrupt, id, what)
	}
	line, rest, _ := bytes.Cut(data, []byte{'\n'})
	v, ok := bytes.CutPrefix(line, []byte("tree "))
	if !ok || !plumbing.IsHash(string(v)) {
		return bad("no tree")
	}
	c.Tree = plumbing.NewHash(string(v))
	for {
		line, next, _ := bytes.Cut(rest, []byte{'\n'})
		v, ok := bytes.CutPrefix(line, []byte("parent "))
		if !ok {
			return c, rest, nil
		}
		if !plumbing.IsHash(string(v)) {
			return bad("a parent that is not an object name")
		}
		c.Parents = append(c.Parents, plumbing.NewHash(string(v)))
		rest = next
	}
}

// date returns the time in a line "Name <mail> seconds zone", 0 if there is none.
func date(ident []byte) int64 {
	f := bytes.Fields(ident[bytes.LastIndexByte(ident, '>')+1:])
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(f[0]), 10, 64)
	return n
}

// Signature is who made a commit, and when.
type Signature struct {
	Name, Email string
	When        time.Time
}

// Commit is a commit without the body of its message.
type Commit struct {
	Head
	Author, Committer Signature
	// Subject is the first paragraph of the message on one line, as git log --format=%s prints it.
	Subject  string
	Encoding string
}

// ParseCommit reads a commit. id names it in errors.
func ParseCommit(id plumbing.Hash, data []byte) (*Commit, error) {
	head, data, err := parseLinks(id, data)
	if err != nil {
		return nil, err
	}
	c := &Commit{Head: head}
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		if len(line) == 0 {
			c.Subject = subject(data)
			break
		}
		key, value, _ := bytes.Cut(line, []byte{' '})
		switch string(key) {
		case "author":
			c.Author = parseSignature(string(value))
		case "committer":
			c.Committer, c.Date = parseSignature(string(value)), date(value)
		case "encoding":
			c.Encoding = string(value)
		}
	}
	return c, nil
}

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

// parseSignature reads "Name <mail> seconds zone"; missing parts stay empty.
func parseSignature(s string) (sig Signature) {
	lt, gt := strings.IndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if lt < 0 || gt < lt {
		sig.Name = s
		return sig
	}
	sig.Name, sig.Email = strings.TrimSpace(s[:lt]), s[lt+1:gt]
	fields := strings.Fields(s[gt+1:])
	if len(fields) == 0 {
		return sig
	}
	sec, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return sig
	}
	loc := time.UTC
	if len(fields) > 1 {
		if z, err := strconv.Atoi(fields[1]); err == nil && z >= -1400 && z <= 1400 {
			loc = time.FixedZone("", (z/100*60+z%100)*60)
		}
	}
	sig.When = time.Unix(sec, 0).In(loc)
	return sig
}

// Tag is what an annotated tag names.
type Tag struct {
	Target plumbing.Hash
	Type   plumbing.ObjectType
}

// ParseTag reads what an annotated tag names. id names the tag in errors.
func ParseTag(id plumbing.Hash, data []byte) (t Tag, err error) {
	line, rest, _ := bytes.Cut(data, []byte{'\n'})
	v, ok := bytes.CutPrefix(line, []byte("object "))
	if !ok || !plumbing.IsHash(string(v)) {
		return t, fmt.Errorf("%w: tag %s: no object", ErrCorrupt, id)
	}
	t.Target = plumbing.NewHash(string(v))
	line, _, _ = bytes.Cut(rest, []byte{'\n'})
	v, ok = bytes.CutPrefix(line, []byte("type "))
	if ok {
		t.Type, err = plumbing.ParseObjectType(string(v))
	}
	if !ok || err != nil {
		return t, fmt.Errorf("%w: tag %s: no type of what it names", ErrCorrupt, id)
	}
	return t, nil
}
