package convert

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/git/attributes"
	"corpus-git/git/object"
	"corpus-git/git/tree"
)

// No .gitattributes hangs or breaks a checkout, and what checkout writes is recognised as clean.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte("* text=auto eol=crlf\n"), "a/b.txt", []byte("a\nb"))
	f.Add([]byte("[attr]x y x\n[attr]y x eol=crlf\n\"q\\\"\\303\\251\" x\n"), "q", []byte("\r\n\n"))
	f.Add([]byte("a/**/b eol=crlf -text\n"), "a/b", []byte("\x00"))
	f.Add([]byte("* eol=crlf ident working-tree-encoding=UTF-16\n"), "b", []byte("$Id$\r\né\U0001d11e"))
	f.Add([]byte("* working-tree-encoding=latin1\n"), "b", []byte("é\n"))
	f.Add([]byte("[[:alpha:]\\]-x]* ident\n"), "b", []byte("$Id$ $Id: x $ $Id: a b $Id$"))
	f.Fuzz(func(t *testing.T, file []byte, name string, data []byte) {
		if tree.CheckPath(name) != nil || name == "" {
			return
		}
		a := attributes.Parse([]attributes.Text{{Data: file}})
		c := Of(a, name)
		oid := object.BlobHash(data)
		out := c.Apply(oid, data)
		if c == AsIs {
			require.Equal(t, data, out)
			return
		}
		lf, crlf, _, _ := lineStats(data)
		// Mixed line ends, and another blob's ID, cannot be recognised.
		require.True(t, lf > 0 && crlf > 0 || c&(withIdent|autoIdent) != 0 && bytes.Contains(data, []byte("$Id:")) || c.IsFrom(oid, out))
	})
}
