package worktree

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/object"
	"corpus-git/internal/fault"
)

// Whatever an index holds, its paths stay inside the tree, and what is written is read back.
func FuzzIndex(f *testing.F) {
	good := &gitIndex{
		entries: []entry{{path: "a", mode: object.ModeFile}, {path: "b/c", mode: object.ModeExecutable, st: stat{size: 3}}, {path: "b/d", mode: object.ModeSymlink}},
		tree:    &cacheTree{count: 3, subs: []*cacheTree{{name: "b", count: 2}}},
	}
	f.Add(good.encode()[:len(good.encode())-sha1.Size])
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\x00", 26) + "\x81\xa4" + strings.Repeat("\x00", 34) + "\x00\x01\x00a\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha1.Sum(body)
		x, err := parseIndex(append(append([]byte(nil), body...), sum[:]...), false)
		if err != nil {
			require.ErrorIs(t, err, errIndex)
			return
		}
		last := ""
		for _, e := range x.entries {
			require.Greater(t, e.path, last)
			last = e.path
			require.Equal(t, path.Clean(e.path), e.path)
			require.False(t, path.IsAbs(e.path) || strings.HasPrefix(e.path, "../"))
			require.NoError(t, checkPath(e.path))
		}
		again, err := parseIndex(x.encode(), false)
		require.NoError(t, err)
		for i := range x.entries {
			require.Equal(t, i+1, int(x.entries[i].was))
			x.entries[i].at, again.entries[i].at = 0, 0
		}
		require.Equal(t, x.entries, again.entries)
	})
}

// A tree that is accepted has good names, in order.
func FuzzTree(f *testing.F) {
	h := strings.Repeat("x", 20)
	f.Add([]byte("100644 a\x00" + h + "40000 b\x00" + h))
	f.Add([]byte("120000 .gitmodules\x00" + h))
	f.Add([]byte("160000 a\x00" + h + "100664 b\x00" + h))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := parseTree(plumbing.ZeroHash, data)
		if err != nil {
			require.Equal(t, fault.Refused, fault.KindOf(err))
			return
		}
		seen := map[string]bool{}
		for i, it := range items {
			require.NoError(t, CheckName(it.name))
			require.False(t, seen[it.name])
			seen[it.name] = true
			require.True(t, i == 0 || before(&items[i-1], &it))
		}
	})
}

// No .gitattributes hangs or breaks a checkout, and what checkout writes is recognised as clean.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte("* text=auto eol=crlf\n"), "a/b.txt", []byte("a\nb"))
	f.Add([]byte("[attr]x y x\n[attr]y x eol=crlf\n\"q\\\"\\303\\251\" x\n"), "q", []byte("\r\n\n"))
	f.Add([]byte("a/**/b eol=crlf -text\n"), "a/b", []byte("\x00"))
	f.Add([]byte("* eol=crlf ident working-tree-encoding=UTF-16\n"), "b", []byte("$Id$\r\né\U0001d11e"))
	f.Add([]byte("* working-tree-encoding=latin1\n"), "b", []byte("é\n"))
	f.Add([]byte("[[:alpha:]\\]-x]* ident\n"), "b", []byte("$Id$ $Id: x $ $Id: a b $Id$"))
	f.Fuzz(func(t *testing.T, file []byte, name string, data []byte) {
		if checkPath(name) != nil || name == "" {
			return
		}
		a := newAttributes()
		a.parse("", file)
		a.settle()
		c := a.conversion(name)
		oid := blobHash(data)
		out := c.checkout(oid, data)
		if c == asIs {
			require.Equal(t, data, out)
			return
		}
		lf, crlf, _, _ := lineStats(data)
		// Mixed line ends, and another blob's ID, cannot be told back.
		require.True(t, lf > 0 && crlf > 0 || c&(withIdent|autoIdent) != 0 && bytes.Contains(data, []byte("$Id:")) || c.isFrom(oid, out))
	})
}

func TestErrNameIsPlain(t *testing.T) {
	require.True(t, errors.Is(CheckName(".."), errName))
	require.NoError(t, CheckName(".github"))
	require.NoError(t, CheckName("git~2"))
}
