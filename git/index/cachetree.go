package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// Tree is a node of the index's TREE extension: count entries below it make up the tree oid; count -1 means unknown.
type Tree struct {
	Name  string
	Count int
	Hash  plumbing.Hash
	// subs are in git's order; sub and append parse them from closed first.
	subs []*Tree
	// closed are the unparsed bytes below a node, inner the number of subs in them; most are written again unchanged.
	closed []byte
	inner  int
}

// subOrder is git's order: it looks up subtrees by length, then bytes.
func subOrder(a, b string) int {
	if len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return cmp.Compare(a, b)
}

// Sub finds a subtree. It is not safe for concurrent use.
func (c *Tree) Sub(name string) *Tree {
	if c == nil {
		return nil
	}
	c.open()
	i, ok := slices.BinarySearchFunc(c.subs, name, func(s *Tree, name string) int { return subOrder(s.Name, name) })
	if !ok {
		return nil
	}
	return c.subs[i]
}

// open parses the subs, whose bytes parseCacheTree skipped.
func (c *Tree) open() {
	if c.inner == 0 {
		return
	}
	b := c.closed
	nodes := make([]Tree, c.inner)
	c.subs = make([]*Tree, c.inner)
	for i := range nodes {
		n, rest, _ := parseTreeNode(b)
		b, _ = skipTreeNodes(rest, n.inner, math.MaxInt)
		nodes[i] = Tree{Name: string(n.name), Count: n.count, inner: n.inner, closed: rest[:len(rest)-len(b)]}
		copy(nodes[i].Hash[:], n.oid)
		c.subs[i] = &nodes[i]
	}
	c.closed, c.inner = nil, 0
	c.order()
}

// order puts the subs in git's order.
func (c *Tree) order() {
	byName := func(a, b *Tree) int { return subOrder(a.Name, b.Name) }
	if !slices.IsSortedFunc(c.subs, byName) {
		slices.SortFunc(c.subs, byName)
	}
}

// parseCacheTree parses the extension of an index of count entries. It returns nil for damaged data or impossible counts: the extension
// only saves work.
func parseCacheTree(b []byte, count int) *Tree {
	n, below, ok := parseTreeNode(b)
	if !ok || n.count > count {
		return nil
	}
	if rest, ok := skipTreeNodes(below, n.inner, count); !ok || len(rest) > 0 {
		return nil
	}
	c := &Tree{Name: string(n.name), Count: n.count, inner: n.inner, closed: below}
	copy(c.Hash[:], n.oid)
	return c
}

// treeNode is a node without its children, in the bytes of the extension.
type treeNode struct {
	name, oid    []byte
	count, inner int
}

// parseTreeNode parses a node without its children.
func parseTreeNode(b []byte) (n treeNode, rest []byte, ok bool) {
	nul := bytes.IndexByte(b, 0)
	if nul < 0 {
		return n, nil, false
	}
	n.name, b = b[:nul], b[nul+1:]
	unknown := len(b) > 0 && b[0] == '-'
	if unknown {
		b = b[1:]
	}
	if n.count, b, ok = treeNumber(b, ' '); !ok || unknown && n.count != 1 {
		return n, nil, false
	}
	if n.inner, b, ok = treeNumber(b, '\n'); !ok {
		return n, nil, false
	}
	if unknown {
		n.count = -1
		return n, b, true
	}
	if len(b) < len(plumbing.Hash{}) {
		return n, nil, false
	}
	n.oid, b = b[:len(plumbing.Hash{})], b[len(plumbing.Hash{}):]
	return n, b, true
}

// treeNumber reads decimal digits up to end.
func treeNumber(b []byte, end byte) (n int, rest []byte, ok bool) {
	for i, c := range b {
		switch {
		case c == end:
			return n, b[i+1:], i > 0
		case c < '0' || c > '9' || i >= 10:
			return 0, nil, false
		}
		n = 10*n + int(c-'0')
	}
	return 0, nil, false
}

// skipTreeNodes skips nodes and all below them, none of more than count entries.
func skipTreeNodes(b []byte, some, count int) (rest []byte, ok bool) {
	for ; some > 0; some-- {
		n, rest, ok := parseTreeNode(b)
		// A node takes several bytes, so the bytes left limit the number of nodes.
		if !ok || n.count > count || n.inner > len(rest) {
			return nil, false
		}
		some, b = some+n.inner, rest
	}
	return b, true
}

// room returns the maximal size of the extension, with its name, its length, and counts of any size.
func (c *Tree) room() int {
	if c == nil {
		return 8
	}
	n := len(c.Name) + 1 + 2*len("-2147483648 ") + len(c.Hash) + 8 + len(c.closed)
	for _, s := range c.subs {
		n += s.room()
	}
	return n
}

func (c *Tree) append(b []byte) []byte {
	b = append(b, c.Name...)
	b = append(b, 0)
	b = strconv.AppendInt(b, int64(c.Count), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(c.subs)+c.inner), 10)
	b = append(b, '\n')
	if c.Count >= 0 {
		b = append(b, c.Hash[:]...)
	}
	b = append(b, c.closed...)
	c.order()
	for _, s := range c.subs {
		b = s.append(b)
	}
	return b
}

// extension returns the TREE extension, empty if no trees are known.
func (c *Tree) extension() []byte {
	if c == nil {
		return nil
	}
	b := append(make([]byte, 0, c.room()), "TREE\x00\x00\x00\x00"...)
	b = c.append(b)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// Add adds a tree below another.
func (c *Tree) Add(sub *Tree) {
	c.Count += sub.Count
	if sub.Count > 0 {
		c.subs = append(c.subs, sub)
	}
}

// Is reports whether a node is known to be the tree to, of count entries.
func (c *Tree) Is(to plumbing.Hash, count int) bool {
	return c != nil && c.Count == count && c.Hash == to && !to.IsZero()
}
