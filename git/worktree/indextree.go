package worktree

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// cacheTree is a node of the index's TREE extension: count entries below it make up the tree oid; count -1 means unknown.
type cacheTree struct {
	name  string
	count int
	oid   plumbing.Hash
	// subs are in git's order; sub and append see to it that they are read from closed before.
	subs []*cacheTree
	// closed are the bytes of what is below a node that was read, inner how many subs are in them, until somebody asks for one: most
	// are written again as they are.
	closed []byte
	inner  int
}

// subOrder is git's: it looks subtrees up by length, then bytes.
func subOrder(a, b string) int {
	if len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return cmp.Compare(a, b)
}

// sub finds a subtree. It is not for two goroutines at once.
func (c *cacheTree) sub(name string) *cacheTree {
	if c == nil {
		return nil
	}
	c.open()
	i, ok := slices.BinarySearchFunc(c.subs, name, func(s *cacheTree, name string) int { return subOrder(s.name, name) })
	if !ok {
		return nil
	}
	return c.subs[i]
}

// open reads the subs, whose bytes parseCacheTree went through.
func (c *cacheTree) open() {
	if c.inner == 0 {
		return
	}
	b := c.closed
	nodes := make([]cacheTree, c.inner)
	c.subs = make([]*cacheTree, c.inner)
	for i := range nodes {
		n, rest, _ := parseTreeNode(b)
		b, _ = skipTreeNodes(rest, n.inner, math.MaxInt)
		nodes[i] = cacheTree{name: string(n.name), count: n.count, inner: n.inner, closed: rest[:len(rest)-len(b)]}
		copy(nodes[i].oid[:], n.oid)
		c.subs[i] = &nodes[i]
	}
	c.closed, c.inner = nil, 0
	c.order()
}

// order puts the subs in git's order.
func (c *cacheTree) order() {
	byName := func(a, b *cacheTree) int { return subOrder(a.name, b.name) }
	if !slices.IsSortedFunc(c.subs, byName) {
		slices.SortFunc(c.subs, byName)
	}
}

// parseCacheTree reads the extension of an index of count entries. Nil is for what is damaged or cannot be about that many: it is only a
// lost short cut.
func parseCacheTree(b []byte, count int) *cacheTree {
	n, below, ok := parseTreeNode(b)
	if !ok || n.count > count {
		return nil
	}
	if rest, ok := skipTreeNodes(below, n.inner, count); !ok || len(rest) > 0 {
		return nil
	}
	c := &cacheTree{name: string(n.name), count: n.count, inner: n.inner, closed: below}
	copy(c.oid[:], n.oid)
	return c
}

// treeNode is a node without what is below it, in the bytes of the extension.
type treeNode struct {
	name, oid    []byte
	count, inner int
}

// parseTreeNode reads what a node says of itself.
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

// skipTreeNodes goes over some nodes and all below them, none of more than count entries.
func skipTreeNodes(b []byte, some, count int) (rest []byte, ok bool) {
	for ; some > 0; some-- {
		n, rest, ok := parseTreeNode(b)
		// A node takes bytes: as many as there may be nodes left are too many.
		if !ok || n.count > count || n.inner > len(rest) {
			return nil, false
		}
		some, b = some+n.inner, rest
	}
	return b, true
}

// room is what the extension takes at most: with its name and length, and with counts of any size.
func (c *cacheTree) room() int {
	if c == nil {
		return 8
	}
	n := len(c.name) + 1 + 2*len("-2147483648 ") + len(c.oid) + 8 + len(c.closed)
	for _, s := range c.subs {
		n += s.room()
	}
	return n
}

func (c *cacheTree) append(b []byte) []byte {
	b = append(b, c.name...)
	b = append(b, 0)
	b = strconv.AppendInt(b, int64(c.count), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(c.subs)+c.inner), 10)
	b = append(b, '\n')
	if c.count >= 0 {
		b = append(b, c.oid[:]...)
	}
	b = append(b, c.closed...)
	c.order()
	for _, s := range c.subs {
		b = s.append(b)
	}
	return b
}

// treePart is the TREE extension, empty where nothing is known of trees.
func (x *gitIndex) treePart() []byte {
	if x.tree == nil {
		return nil
	}
	b := append(make([]byte, 0, x.tree.room()), "TREE\x00\x00\x00\x00"...)
	b = x.tree.append(b)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}
