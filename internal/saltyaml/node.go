package saltyaml

import (
	"strings"

	"corpus-git/internal/fault"
)

// Kind is the shape of a Node.
type Kind uint8

// The shapes of a Node.
const (
	Scalar Kind = iota + 1
	Sequence
	Mapping
)

// Node is a value with its place. Nodes of an aliased value are shared; they are read only.
type Node struct {
	Kind Kind
	// Value is the value itself, the same that its parent's value holds.
	Value any
	// Line and Col are where the value begins, from 1; Col counts characters. A value that an alias or a merge
	// key inserted has the place where it was written.
	Line, Col int
	// Keys are the key nodes of a Mapping, in the order of the value's keys; empty for any other.
	Keys []*Node
	// Items are the items of a Sequence, or the values of a Mapping beside Keys.
	Items []*Node
	// size is the number of nodes below, aliases followed.
	size int
}

// Doc is a parsed document.
type Doc struct {
	// Value is the document: nil, a bool, a number, a string, *py.List, *py.Dict.
	Value any
	// Root is the same with places; nil for an empty document.
	Root *Node

	src source
}

// Pos returns the place of a node of this document, with the text of its line unless the parse was private.
func (d *Doc) Pos(n *Node) fault.Pos {
	if n == nil {
		return fault.Pos{File: d.src.name}
	}
	return d.src.pos(n.Line, n.Col)
}

// source is the text that was parsed, for places in errors.
type source struct {
	name    string
	text    string
	private bool
}

func (s source) pos(line, col int) fault.Pos {
	p := fault.Pos{File: s.name, Line: line, Col: col}
	if !s.private {
		p.Text = s.line(line)
	}
	return p
}

// line returns the text of one line, from 1, without its end. Lines end as in YAML 1.1: LF, CR, CRLF, NEL, LS, PS.
func (s source) line(n int) string {
	rest := s.text
	for i := 1; ; i++ {
		end, width := lineEnd(rest)
		if i == n {
			return strings.TrimPrefix(rest[:end], "\ufeff")
		}
		if width == 0 {
			return ""
		}
		rest = rest[end+width:]
	}
}

// lineEnd returns the index of the first line break and its length in bytes; width is 0 if there is none.
func lineEnd(s string) (end, width int) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\n':
			return i, 1
		case '\r':
			if i+1 < len(s) && s[i+1] == '\n' {
				return i, 2
			}
			return i, 1
		case 0xc2:
			if i+1 < len(s) && s[i+1] == 0x85 {
				return i, 2
			}
		case 0xe2:
			if i+2 < len(s) && s[i+1] == 0x80 && (s[i+2] == 0xa8 || s[i+2] == 0xa9) {
				return i, 3
			}
		}
	}
	return len(s), 0
}

// place converts a byte offset to a line and a column.
func (s source) place(off int) (line, col int) {
	off = min(max(off, 0), len(s.text))
	rest, line := s.text[:off], 1
	for {
		end, width := lineEnd(rest)
		if width == 0 {
			return line, len([]rune(rest)) + 1
		}
		rest = rest[end+width:]
		line++
	}
}
