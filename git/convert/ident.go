package convert

import (
	"bytes"

	"github.com/go-git/go-git/v5/plumbing"
)

// wholeIdent writes the blob's ID into each $Id$ and $Id:…$ of a line, except those of other systems, which have a space in the middle. It
// agrees with git's ident_to_worktree, which is used for text=auto; everything else uses streamIdent.
func wholeIdent(oid plumbing.Hash, data []byte) []byte {
	var out []byte
	done := 0
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte("$Id"))
		if i < 0 {
			break
		}
		from := at + i + 3
		at = from
		if at == len(data) || data[at] != '$' && data[at] != ':' {
			continue
		}
		length := bytes.IndexByte(data[from:], '$')
		if length < 0 {
			break
		}
		if between := data[from : from+length]; bytes.IndexByte(between, '\n') >= 0 || spaced(between) {
			continue
		}
		out = append(out, data[done:from]...)
		out = append(out, ": "+oid.String()+" $"...)
		done = from + length + 1
		at = done
	}
	if out == nil {
		return data
	}
	return append(out, data[done:]...)
}

func spaced(between []byte) bool {
	if len(between) < 4 {
		return false
	}
	space := bytes.IndexByte(between[2:], ' ')
	return space >= 0 && space+2 < len(between)-1
}

// streamIdent is wholeIdent for the cases in which git uses ident_filter_fn, which differs in details: a "$" that ends something begins
// nothing.
func streamIdent(oid plumbing.Hash, data []byte) []byte {
	const head = "$Id"
	var out []byte
	done := 0
	for at := 0; at < len(data); {
		i := bytes.IndexByte(data[at:], '$')
		if i < 0 {
			break
		}
		begin := at + i
		for at = begin; at < len(data) && at-begin < len(head) && data[at] == head[at-begin]; at++ {
		}
		if at == len(data) {
			break
		}
		end := at
		at++
		if at-begin <= len(head) || data[end] != '$' && data[end] != ':' {
			continue
		}
		if data[end] == ':' {
			stop := bytes.IndexAny(data[at:], "\n$")
			if stop < 0 {
				break
			}
			end = at + stop
			at = end + 1
			if data[end] == '\n' || foreign(data[begin:at]) {
				continue
			}
		}
		out = append(out, data[done:begin]...)
		out = append(out, "$Id: "+oid.String()+" $"...)
		done = at
	}
	if out == nil {
		return data
	}
	return append(out, data[done:]...)
}

// foreign reports whether "$Id: …$" is of another version control system: it has a space that is not the last character.
func foreign(keyword []byte) bool {
	rest, ok := bytes.CutPrefix(keyword, []byte("$Id: "))
	if !ok {
		return false
	}
	rest, _, _ = bytes.Cut(rest, []byte{0})
	for i, c := range rest {
		if (c == ' ' || c == '\t' || c == '\r') && (i+1 == len(rest) || rest[i+1] != '$') {
			return true
		}
	}
	return false
}
