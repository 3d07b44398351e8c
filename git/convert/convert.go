package convert

import (
	"bytes"

	"corpus-git/git/attributes"
	"corpus-git/git/object"

	"github.com/go-git/go-git/v5/plumbing"
)

// Conversion is how a checkout changes a file's content: the flags below, and its encoding in the upper byte.
type Conversion uint16

const encodingShift = 8

func (c Conversion) encoding() encoding { return encoding(c >> encodingShift) }

// What is changed. AsIs changes nothing.
const (
	AsIs      Conversion = 0
	toCRLF    Conversion = 1 << iota // LF becomes CRLF
	autoCRLF                         // LF becomes CRLF in what looks like text
	withIdent                        // $Id$ becomes $Id: <the blob's ID> $
	autoIdent                        // the same in what looks like text, which git implements differently
)

// Of reports how a path is written on Linux, where the native end of lines is LF: only eol=crlf, ident
// and working-tree-encoding change anything. Source: gitattributes(5), "End-of-line conversion", "working-tree-encoding" and "ident".
func Of(a *attributes.Attributes, p string) Conversion {
	if !a.Changes() {
		return AsIs
	}
	at := a.Of(p)
	text := at[attributes.AttrText]
	if text.State != attributes.Set && text.State != attributes.Unset && !text.Is("auto") && !text.Is("input") {
		text = at[attributes.AttrCRLF]
	}
	c := AsIs
	if v := at[attributes.AttrEncoding]; v.State == attributes.HasValue && v.Text != "" {
		if e := encodingOf(v.Text); e != otherEncoding {
			c |= Conversion(e) << encodingShift
		}
	}
	switch {
	case at[attributes.AttrIdent].State != attributes.Set:
	case text.Is("auto") && !at[attributes.AttrEOL].Is("lf"), c.encoding() != asUTF8:
		c |= autoIdent
	default:
		c |= withIdent
	}
	switch {
	case text.State == attributes.Unset || !at[attributes.AttrEOL].Is("crlf"):
	case text.Is("auto"):
		c |= autoCRLF
	default:
		c |= toCRLF
	}
	return c
}

// Apply converts the blob oid to what is written. It returns data itself if nothing changes.
func (c Conversion) Apply(oid plumbing.Hash, data []byte) []byte {
	switch {
	case c&withIdent != 0:
		data = streamIdent(oid, data)
	case c&autoIdent != 0:
		data = wholeIdent(oid, data)
	}
	return c.encoding().encode(c.lineEnds(data))
}

func (c Conversion) lineEnds(data []byte) []byte {
	if c&(toCRLF|autoCRLF) == 0 {
		return data
	}
	lone, crlf, cr, binary := lineStats(data)
	if lone == 0 || c&autoCRLF != 0 && (cr > 0 || crlf > 0 || binary) {
		return data
	}
	out := make([]byte, 0, len(data)+lone)
	for i, c := range data {
		if c == '\n' && (i == 0 || data[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	return out
}

// IsFrom reports whether a checkout of the blob oid results in data. Any step of a conversion may have had nothing to change.
func (c Conversion) IsFrom(oid plumbing.Hash, data []byte) bool {
	for _, text := range [][]byte{c.encoding().decode(data), data} {
		if c&(withIdent|autoIdent) != 0 {
			text = bytes.ReplaceAll(text, []byte("$Id: "+oid.String()+" $"), []byte("$Id$"))
		}
		if object.BlobHash(text) != oid && c&(toCRLF|autoCRLF) != 0 {
			text = bytes.ReplaceAll(text, []byte("\r\n"), []byte{'\n'})
		}
		if object.BlobHash(text) == oid {
			return bytes.Equal(c.Apply(oid, text), data)
		}
		if c.encoding() == asUTF8 {
			break
		}
	}
	return false
}

// lineStats counts lone LF, CRLF and lone CR, and guesses as git does whether data is binary.
func lineStats(data []byte) (lf, crlf, cr int, binary bool) {
	printable, odd, nul := 0, 0, 0
	for i, c := range data {
		switch {
		case c == '\r' && i+1 < len(data) && data[i+1] == '\n':
			crlf++
		case c == '\r':
			cr++
		case c == '\n' && (i == 0 || data[i-1] != '\r'):
			lf++
		case c == '\n':
		case c == 127:
			odd++
		case c >= 32, c == '\b', c == '\t', c == '\033', c == '\014':
			printable++
		default:
			if c == 0 {
				nul++
			}
			odd++
		}
	}
	if n := len(data); n > 0 && data[n-1] == '\032' {
		odd--
	}
	return lf, crlf, cr, cr > 0 || nul > 0 || printable>>7 < odd
}
