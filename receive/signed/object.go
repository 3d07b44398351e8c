package signed

import (
	"bytes"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

// Split separates the signature of a commit or a tag from what was signed. signature is "" for an unsigned object. In a commit it is the header gpgsig,
// whose continuation lines begin with a space; in a tag it is the end of the message. Source: git's commit.c (parse_buffer_signed_by_header) and tag.c.
func Split(t plumbing.ObjectType, data []byte) (payload []byte, signature string, err error) {
	switch t {
	case plumbing.CommitObject:
		return splitCommit(data)
	case plumbing.TagObject:
		return splitTag(data)
	}
	return nil, "", fmt.Errorf("%w: a %s has no signature", object.ErrCorrupt, t)
}

// splitCommit refuses a commit with two signatures: readers could differ in which of them they show.
func splitCommit(data []byte) (payload []byte, signature string, err error) {
	var sig []byte
	found, in, other := 0, false, false
	for rest := data; len(rest) > 0; {
		line := rest
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			line = rest[:n+1]
		}
		if len(line) == 1 && line[0] == '\n' { // the message
			payload = append(payload, rest...)
			break
		}
		rest = rest[len(line):]
		if in && line[0] == ' ' {
			sig = append(sig, line[1:]...)
			continue
		}
		in = false
		if v, ok := bytes.CutPrefix(line, []byte("gpgsig ")); ok {
			found, in, other = found+1, true, false
			sig = append(sig, v...)
			continue
		}
		if other = bytes.HasPrefix(line, []byte("gpgsig")) || other && line[0] == ' '; other {
			continue // for another hash
		}
		payload = append(payload, line...)
	}
	if found > 1 {
		return nil, "", fmt.Errorf("%w: a commit with %d signatures", object.ErrCorrupt, found)
	}
	return payload, string(sig), nil
}

func splitTag(data []byte) (payload []byte, signature string, err error) {
	at := len(data)
	for i := 0; i < len(data); {
		if beginsSignature(string(data[i:min(len(data), i+40)])) {
			at = i // the last one counts, as in git
		}
		n := bytes.IndexByte(data[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
	}
	return data[:at], string(data[at:]), nil
}
